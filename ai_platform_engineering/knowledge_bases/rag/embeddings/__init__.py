"""Embeddings: text to unit vectors, by a model on this machine or by a provider.

Which of the two, and whether at all, is decided in `embedder`. Keeping and comparing vectors is the store's work.
"""
