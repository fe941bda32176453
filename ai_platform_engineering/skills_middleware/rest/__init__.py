"""The skills API. Only `mount` may be imported before the first request: the other modules import FastAPI."""
