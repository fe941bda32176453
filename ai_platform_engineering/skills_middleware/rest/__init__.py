"""The skills API. At startup only `mount` is imported, because the other modules import FastAPI."""
