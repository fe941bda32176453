"""The commits of an event log in Postgres, seen from outside: its notifications are sent when a commit is complete."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import psycopg

from ai_platform_engineering.events import SUPERVISOR


class Commits:
    """Those since `listening`, of the tasks that there were."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], numbers: Mapping[str, int]) -> None:
        self._connection = connection
        self._numbers = numbers
        self._committed: dict[int, list[tuple[int, float]]] = defaultdict(list)

    @classmethod
    async def listening(cls, connection: psycopg.AsyncConnection[Any]) -> Commits:
        await connection.execute(f'LISTEN "event_log_{SUPERVISOR}"')
        tasks = await connection.execute("SELECT id, number FROM event_log.task")
        return cls(connection, dict(await tasks.fetchall()))

    async def collect(self) -> None:
        async for notification in self._connection.notifies():
            arrived = time.perf_counter()
            for news in notification.payload.split():
                number, last, _ = map(int, news.split(":"))
                self._committed[number].append((last, arrived))

    def latencies(self, task_id: str, arrivals: Mapping[int, float]) -> list[float]:
        """The seconds from the commit of each event to its arrival. The last notifications may be missing."""
        committed = self._committed[self._numbers[task_id]]
        found = []
        for number, arrived in arrivals.items():
            notified = [seconds for last, seconds in committed if last >= number]
            if notified:
                found.append(arrived - notified[0])
        return found
