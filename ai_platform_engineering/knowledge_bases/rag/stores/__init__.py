"""The stores for documents, chunks and vectors: a SQLite file, or Postgres. Both implement the interface in `store`.

They know nothing about embedding models, file formats or web pages.
"""
