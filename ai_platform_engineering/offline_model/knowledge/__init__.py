"""The knowledge base: search it, read documents, rank their passages, and answer with quotations and sources.

Deciding which questions are for the knowledge base is in `planning.request_split`.
"""
