"""The knowledge base over plain HTTP: search, documents, datasources, ingest. Only this package imports FastAPI.

`lazy` is the way in for whoever serves other things too: it loads the rest when the first request comes.
"""
