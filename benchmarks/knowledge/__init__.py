"""The knowledge base as it is measured: what is asked and what answers it, texts of any number, and who searches them.

The measuring is in `benchmarks.measurements.retrieval` and `benchmarks.measurements.knowledge`.
"""
