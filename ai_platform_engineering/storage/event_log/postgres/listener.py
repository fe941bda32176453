"""Receives the commits of other processes: one connection per process that listens for notifications.

No follower depends on a notification alone. After a lost connection, and every few seconds, all followed tasks are
compared with the database.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

import psycopg
from psycopg import sql

from ai_platform_engineering.storage.event_log.postgres.problem import LogProblem
from ai_platform_engineering.storage.event_log.postgres.reader import LogReader
from ai_platform_engineering.storage.event_log.postgres.replicas import Replica
from ai_platform_engineering.storage.event_log.postgres.schema import LogAddress
from ai_platform_engineering.storage.postgres.async_connections import STATEMENT_SECONDS, Connection, connect
from ai_platform_engineering.utils.background_tasks import stop_tasks

logger = logging.getLogger(__name__)

_CHECK_SECONDS: Final = 3.0
_MIN_RECONNECT_SECONDS: Final = 0.05
_MAX_RECONNECT_SECONDS: Final = 1.0


class LogListener:
    """`behind` is called for a followed task that the database has more of.

    `own_pid` is the server process of the writer: its commits are in memory already.
    """

    def __init__(
        self,
        address: LogAddress,
        channel: str,
        followed: Mapping[int, Replica],
        behind: Callable[[Replica], None],
        own_pid: Callable[[], int | None],
        problem: LogProblem,
    ) -> None:
        self._address = address
        self._channel = channel
        self._followed = followed
        self._behind = behind
        self._own_pid = own_pid
        self._problem = problem
        self._task = asyncio.create_task(self._run(), name="event-log-listener")

    async def aclose(self) -> None:
        await stop_tasks(self._task)

    async def _run(self) -> None:
        delay = _MIN_RECONNECT_SECONDS
        while True:
            try:
                async with await connect(self._address.conninfo) as connection:
                    await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
                    delay = _MIN_RECONNECT_SECONDS
                    await self._listen(connection)
            except (psycopg.Error, OSError, TimeoutError) as error:
                self._problem.note(error)
            except Exception:  # a defect must not stop the followers
                logger.exception("the listener of the event log failed")
            await asyncio.sleep(delay)
            delay = min(2 * delay, _MAX_RECONNECT_SECONDS)

    async def _listen(self, connection: Connection) -> None:
        reader = LogReader(connection, "")
        while True:
            async with asyncio.timeout(STATEMENT_SECONDS + 5):
                places = await reader.places(self._followed)
            self._problem.clear()
            for number, place in places.items():
                self._note(number, place)
            async for notification in connection.notifies(timeout=_CHECK_SECONDS):
                if notification.pid != self._own_pid():
                    for news in notification.payload.split():
                        number, last, messages = map(int, news.split(":"))
                        self._note(number, (last, messages))

    def _note(self, number: int, place: tuple[int, int]) -> None:
        replica = self._followed.get(number)
        if replica is not None and replica.lacks(*place):
            self._behind(replica)
