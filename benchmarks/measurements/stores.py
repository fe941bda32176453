"""The CPU of a request by the stores of conversations and events, compared with memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Final

from benchmarks.databases import DATABASE, SERVERS, DatabaseServer
from benchmarks.effort import Effort, in_turns
from benchmarks.processes import started
from benchmarks.rows import Row
from benchmarks.samples import bests, middle_ratio
from benchmarks.stores.storages import DEFAULT, MEMORY, STORAGES, Storage, storage_settings
from benchmarks.subjects import Served, product, together
from benchmarks.watched import Watched

MAX_STREAMS: Final = 8


def stores(effort: Effort) -> list[Row]:
    with ExitStack() as stack:
        servers: dict[str, DatabaseServer] = {}
        for kind, start in SERVERS.items():
            if (server := stack.enter_context(start())) is not None:
                servers[kind] = server
        model = stack.enter_context(started("benchmarks.provider.server"))
        storages = [storage for storage in STORAGES if storage.server in (None, *servers)]
        wanted = {storage: _product(storage, servers, model.url) for storage in storages}
        found = stack.enter_context(together(wanted))
        clocks = {kind: server.clocks() for kind, server in servers.items()}
        watched = {
            storage: Watched(subject, clocks.get(storage.server or "", {})) for storage, subject in found.items()
        }
        return _rows(watched, effort)


@contextmanager
def _product(storage: Storage, servers: Mapping[str, DatabaseServer], provider: str) -> Iterator[Served]:
    # A store that cannot be used must not be replaced by memory.
    strict = {} if storage.checkpointer == "memory" else {"REQUIRE_PERSISTENCE": "true"}
    with (
        storage_settings(storage, servers) as settings,
        product({**settings, **strict}, provider=provider) as subject,
    ):
        yield subject


def _rows(watched: Mapping[Storage, Watched], effort: Effort) -> list[Row]:
    streams = min(MAX_STREAMS, max(effort.streams))
    rounds = in_turns(watched, effort.store_rounds, 2 * streams, streams=streams)
    found = bests(rounds)
    rows: list[Row] = []
    for storage, subject in watched.items():
        name, ratio = ".".join(("stores", *storage)), middle_ratio(rounds, storage, to=MEMORY)
        rows.append(Row(name, f"CPU per request: {storage.label}", found[storage].cpu_ms, "ms", ratio))
        if subject.clocks:
            rows.append(
                Row(f"{name}.server", "… of the database server, in addition", subject.per_request_ms(DATABASE), "ms")
            )
    default = middle_ratio(rounds, DEFAULT, to=MEMORY)
    return [*rows, Row("stores.default", "Default storage (SQLite) compared with memory", default, "x")]
