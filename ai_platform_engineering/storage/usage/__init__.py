"""Stores of the usage of each day: a SQLite file, memory, or Postgres where several processes share the tasks.

`stores.py` chooses. What usage is, and the budgets, are in the package `budgets`.
"""
