"""Real servers that tests talk to, from packages that carry them (`.ci/services.in`), in an environment of their own.

`postgres.py`, `mongodb.py` and `redis.py` run one each; `fixtures.py` provides them to tests that name it in
`pytest_plugins`.
"""
