"""Stores of the audit record: a SQLite file, or Postgres where several processes share the tasks.

`stores.py` chooses. The entries and their verification are in the package `audit`.
"""
