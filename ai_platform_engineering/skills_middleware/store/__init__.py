"""Skills that were created through the API, in SQLite or Postgres.

Checking a skill comes before: a store keeps what it is given.
"""
