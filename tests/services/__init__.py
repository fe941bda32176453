"""Real servers that tests talk to, from packages that carry them (`.ci/services.in`), in an environment of their own.

`postgres.py` runs one; `fixtures.py` lends it to tests that name it in `pytest_plugins`.
"""
