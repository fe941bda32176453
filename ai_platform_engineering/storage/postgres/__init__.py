"""Postgres databases that several processes share: schemas with a format, connections, and advisory locks.

The tables of each store are in the module of the store. Needs the extra `postgres`.
"""
