"""The inputs of the knowledge base benchmarks: questions with their answers, generated documents, searching processes.

`benchmarks.measurements.retrieval` and `benchmarks.measurements.knowledge` measure with them.
"""
