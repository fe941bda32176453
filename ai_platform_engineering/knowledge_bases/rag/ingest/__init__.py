"""Ingest: bringing the documents of a source into a store, so that only what changed is read, cut and embedded.

`source` is what a source is, `engine` is the work. Sources on the web live in `web`, reading and chunking beside it.
"""
