"""Runs as rows of a table: the message as JSON, the state as bytes."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Final

from ai_platform_engineering.integrations.slack_bot.places import Incoming, SlackUser, ThreadPlace
from ai_platform_engineering.integrations.slack_bot.store.values import StoredRun

WRITTEN: Final = "id, place, begun, done, context_id, task_id, trace_id, seen, incoming, state"
"""The columns of `row_of`."""

READ: Final = "id, incoming, context_id, task_id, trace_id, seen, state, done, begun"
"""The columns of `run_from`."""


def row_of(run: StoredRun) -> tuple[str | float | bytes, ...]:
    # A message may contain a lone surrogate, which UTF-8 cannot encode; JSON escapes it.
    incoming = json.dumps(asdict(run.incoming))
    state = run.state.encode("utf-8", "surrogatepass")
    place = run.incoming.place.key
    ids = (run.context_id, run.task_id, run.trace_id)
    return (run.id, place, run.begun, run.done, *ids, run.seen, incoming, state)


def run_from(row: tuple[Any, ...]) -> StoredRun:
    """Raises `ValueError`, `TypeError` or `KeyError` if another version has written the row."""
    run_id, incoming, context_id, task_id, trace_id, seen, state, done, begun = row
    return StoredRun(
        id=run_id,
        incoming=_incoming(json.loads(incoming)),
        context_id=context_id,
        task_id=task_id,
        trace_id=trace_id,
        seen=seen,
        state=state.decode("utf-8", "surrogatepass"),
        done=bool(done),
        begun=begun,
    )


def _incoming(values: dict[str, Any]) -> Incoming:
    return Incoming(**{**values, "place": ThreadPlace(**values["place"]), "person": SlackUser(**values["person"])})
