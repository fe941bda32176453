"""The section about stores and replicas in docs/performance.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.markdown import cell, table
from benchmarks.measurements.access import MAX_STREAMS as ACCESS_STREAMS
from benchmarks.measurements.access import RULES
from benchmarks.measurements.replicas import LABELS as PLACES
from benchmarks.measurements.stores import MAX_STREAMS as STORE_STREAMS
from benchmarks.measurements.workers import LABELS as WORKERS
from benchmarks.measurements.workers import MAX_STREAMS as WORKER_STREAMS
from benchmarks.measurements.workers import SHARES
from benchmarks.rows import AIMS, Row, by_name
from benchmarks.stores.storages import LABELS, STORAGES

_SECTION: Final = """\
## Stores and replicas

The product with the model behind the OpenAI API, as in the first section, and its agent in the same process. Database
servers are on the same machine, Postgres without `fsync`, as in the tests.

### CPU by store

{stores}

- {streams} requests at once. All combinations ran side by side and took turns. In brackets: compared with memory for
  both, the median of the ratios of all rounds. The aim for the default, SQLite for both, is {aim}x or less;
  measured: {default}. Several supervisors need Postgres for the event log and a server for conversations.
- The CPU of the database server is in addition to that of the product. With the event log in Postgres, each request is
  also a job there that any of several supervisors can run.
{missing}
### From a kill to the next event

{takeover}

- The process that runs the task is killed (SIGKILL) while its agent waits for the model. The time ends when a
  subscriber has the next event of the task: at the other replica, to which it was subscribed before, or at the
  restarted process, to which it subscribes with `Last-Event-ID` as soon as that is ready.
- A replica takes over the tasks of another one that has had no heartbeat for three seconds. The aim is {kill} s or
  less, also for the slowest.
{replicas}{access}
{run}

"""
_REPLICAS: Final = """
### Two replicas

{subscribers}

- Medians of subscribers to the same tasks, with the event log in Postgres. A replica sends its own events from memory;
  another one is notified by Postgres and reads them there. In brackets: compared with the replica that runs the task.
- Postgres sends a notification with each commit; its arrival counts as the time of the commit. A new subscription opens
  a connection and asks for the last events with `Last-Event-ID`, while the task is running.

### Two workers

{workers}

- `platform-engineer serve --workers N` with {streams} requests at once, event log and conversations in Postgres. Two
  workers compared with one, the median of the ratios of all rounds: {ratio}. The aim is {aim}x or more on
  two cores.
- The workers share the cores of the machine with Postgres, the model's server and the client, whose CPU is in the
  table. On two cores, a sum near 200 % means that the machine limits the requests per second.
- Requests per second are those while all streams are busy. Two processes that only compute, measured between the
  rounds, did {cores} of the work of one: no more than that can be expected of two workers.
"""
_ACCESS: Final = """
### Sign-in, policy and audit

{access}

- {streams} requests at once. One server is open to everybody and writes no audit record. The other one requires access
  tokens of an issuer (ES256), has a policy of {rules} rules, and writes the audit record. They took turns; compared is
  the median of the ratios of all rounds. The aim is {aim}x or less.
"""
_MISSING: Final = "- Not measured, because it is not installed (`make services`): {names}.\n"
_KILLS: Final = {"replica": "two replicas, Postgres", "restart": "one process, SQLite, restarted at once"}
_KILL_MEASURES: Final = {"": "Median", ".slowest": "Slowest", ".start": "Start of the process"}
_SUBSCRIBERS: Final = {
    "live": "From the commit of an event to a subscriber",
    "subscribe": "From a new subscription to its first event",
}


def section(rows: Sequence[Row], run: str) -> str:
    """Empty as long as nothing was measured."""
    if not rows:
        return ""
    found = by_name(rows)
    missing = [label for kind, label in LABELS.items() if f"stores.{kind}.memory" not in found]
    return _SECTION.format(
        stores=_stores(found),
        streams=STORE_STREAMS,
        aim=f"{AIMS['stores.default'].limit:g}",
        default=cell(found.get("stores.default")),
        missing=_MISSING.format(names=", ".join(missing)) if missing else "",
        takeover=_takeover(found),
        kill=f"{AIMS['takeover.replica.slowest'].limit:g}",
        replicas=_replicas(found) if "workers.ratio" in found else "",
        access=_access(found) if "access.ratio" in found else "",
        run=run,
    )


def _stores(found: Mapping[str, Row]) -> str:
    lines = []
    for storage in STORAGES:
        name = ".".join(("stores", *storage))
        if name in found:
            kinds = (LABELS[storage.checkpointer], LABELS[storage.event_log])
            lines.append((*kinds, cell(found[name]), cell(found.get(f"{name}.server"))))
    return table(("Conversations", "Event log", "CPU per request", "Database server"), lines, names=2)


def _takeover(found: Mapping[str, Row]) -> str:
    lines = [
        (label, *(cell(found.get(f"takeover.{kind}{measure}")) for measure in _KILL_MEASURES))
        for kind, label in _KILLS.items()
        if f"takeover.{kind}" in found
    ]
    return table(("", *_KILL_MEASURES.values()), lines)


def _access(found: Mapping[str, Row]) -> str:
    rows = [found[name] for name in ("access.open", "access.protected", "access.ratio")]
    return _ACCESS.format(
        access=table(("What", "Value"), [(row.label, cell(row)) for row in rows]),
        streams=ACCESS_STREAMS,
        rules=RULES,
        aim=f"{AIMS['access.ratio'].limit:g}",
    )


def _replicas(found: Mapping[str, Row]) -> str:
    subscribers = [
        (label, *(cell(found[f"replicas.{measure}.{place}"], ratio=place != "own") for place in PLACES))
        for measure, label in _SUBSCRIBERS.items()
    ]
    workers = [("Requests per second", *(cell(found[f"workers.{count}"]) for count in WORKERS))]
    for name, label in SHARES.items():
        if f"workers.1.{name}" in found:
            cells = (cell(found[f"workers.{count}.{name}"]) for count in WORKERS)
            workers.append((f"{label}, of one core", *cells))
    return _REPLICAS.format(
        subscribers=table(("", *PLACES.values()), subscribers),
        workers=table(("", *WORKERS.values()), workers),
        streams=WORKER_STREAMS,
        ratio=cell(found["workers.ratio"]),
        cores=cell(found["workers.cores"]),
        aim=f"{AIMS['workers.ratio'].limit:g}",
    )
