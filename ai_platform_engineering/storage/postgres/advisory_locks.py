"""Advisory locks: of several processes, one does the work. The locks of a process that is killed are free at once."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import Final

import psycopg

from ai_platform_engineering.storage.postgres.schema import PgConnection
from ai_platform_engineering.utils.postgres_address import PostgresAddress

# The server notices a lost machine after half a minute. Its own defaults are two hours.
_DETECT_LOST_CLIENTS: Final = """
SET tcp_keepalives_idle = 15;
SET tcp_keepalives_interval = 5;
SET tcp_keepalives_count = 3;
SET tcp_user_timeout = 30000
"""


def lockable(address: PostgresAddress, **options: int) -> PgConnection:
    """A new connection for session locks, in autocommit mode. It must not go through a pooler for transactions."""
    connection = address.connect(**options)
    try:
        connection.execute(_DETECT_LOST_CLIENTS)
    except psycopg.Error as error:
        connection.close()
        raise address.unusable(error) from error
    return connection


def try_lock(connection: PgConnection, *names: str) -> bool:
    """Take the lock with these names for the session, unless another session has it."""
    row = connection.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", ["/".join(names)]).fetchone()
    return bool(row and row[0])


def unlock(connection: PgConnection, *names: str) -> None:
    connection.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", ["/".join(names)])


class AdvisoryLocks:
    """The locks of one process, all on one connection. Opened on first use; its methods block on network I/O."""

    def __init__(self, address: PostgresAddress, purpose: str) -> None:
        self._address = address
        self._purpose = purpose
        self._lock = Lock()
        self._connection: PgConnection | None = None

    def acquire(self, name: str = "") -> bool:
        """False if another process has this lock. The locks of this process are not counted: acquire each only once.

        A lost connection loses the locks on it, so another process may have acquired them before this one notices.
        """
        with self._lock:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = lockable(self._address)
                return try_lock(self._connection, self._purpose, name)
            except psycopg.Error as error:
                self._disconnect()
                raise self._address.unusable(error) from error

    def release(self, name: str = "") -> None:
        with self._lock:
            if self._connection is not None:
                try:
                    unlock(self._connection, self._purpose, name)
                except psycopg.Error:  # which has released the lock
                    self._disconnect()

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None
