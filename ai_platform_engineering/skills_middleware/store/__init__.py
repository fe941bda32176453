"""The stores of skills that were created through the API: SQLite or Postgres.

Stores do not validate skills; callers check them first.
"""
