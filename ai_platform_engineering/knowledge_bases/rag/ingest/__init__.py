"""Ingest: brings the documents of a source into a store. Only changed documents are read, chunked and embedded.

`engine` does the work; the other modules are sources. The interface of a source is `rag.source`; `web` crawls sites.
"""
