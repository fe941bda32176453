"""Where documents, chunks and vectors are kept: in a SQLite file, or in Postgres. One interface, in `store.py`."""
