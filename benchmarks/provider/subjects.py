"""The three subjects that ask the model's server over HTTP."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from benchmarks.processes import Process
from benchmarks.subjects import Subject, bare, product

LABELS: Final = {"bare": "plain graph", "product": "product", "remote": "product, agent remote"}


def subjects(server: Process) -> dict[str, AbstractContextManager[Subject]]:
    return {
        "bare": bare(provider=server.url),
        "product": product(provider=server.url),
        "remote": product(remote=True, provider=server.url),
    }
