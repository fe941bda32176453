"""The knowledge base: read documents, cut them into chunks, store and search them, and serve all that.

`KnowledgeBase` is the entry point. Limits on a model's calls and on the size of its results are not set here.
"""
