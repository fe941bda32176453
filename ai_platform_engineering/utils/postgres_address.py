"""The address of a Postgres server: its connection parameters, and the sentences of its errors.

No sentence contains the password. libpq shows parts of a password that is not percent-encoded, because it parses them
as host or port: these addresses are rejected before a connection is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

_DEFAULTS: Final[dict[str, str | int]] = {
    "application_name": "platform-engineer",
    "connect_timeout": 5,
    # A server that disappears is detected in half a minute, not in two hours.
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_TRY_AGAIN: Final = "Try again; if the error persists, see the log of the server"


class PostgresAddress:
    """A subclass defines the setting with the address, the purpose of the server, and the error that is raised."""

    setting: ClassVar[str]
    purpose: ClassVar[str]
    error: ClassVar[type[Exception]]
    tables_gone: ClassVar[str]
    """What to do if the tables no longer exist."""

    def __init__(self, url: str) -> None:
        try:
            given = conninfo_to_dict(url)
        except (psycopg.Error, UnicodeError):
            raise self._unreadable() from None
        host, port, database = (str(given.get(key) or "") for key in ("host", "port", "dbname"))
        if "@" in host + port + database or (port and not port.replace(",", "").isdecimal()):
            raise self._unreadable()
        self.conninfo = make_conninfo(url, **{key: value for key, value in _DEFAULTS.items() if key not in given})
        self.place = f"{host or 'localhost'}{port and f':{port}'}{database and f'/{database}'}"

    def __str__(self) -> str:
        return f"Postgres at {self.place}"

    def connect(self, **options: int) -> psycopg.Connection[tuple[object, ...]]:
        """A connection in autocommit mode, with `options` in place of the parameters of the address."""
        try:
            return psycopg.connect(make_conninfo(self.conninfo, **options), autocommit=True)
        except psycopg.Error as error:
            raise self.unusable(error) from error

    def unusable(self, error: psycopg.Error) -> Exception:
        return self.unusable_because(self.reason(error), self.way_out(error))

    def way_out(self, error: psycopg.Error) -> str:
        # An error without a code comes from libpq: there is no connection. 57P are the codes of a server that stops.
        is_unreachable = error.sqlstate is None or error.sqlstate.startswith("57P")
        check = f"Check that the server is running, and the host, user and password in {self.setting}"
        default = check if is_unreachable else _TRY_AGAIN
        return next((text for kind, text in self._ways_out().items() if isinstance(error, kind)), default)

    @staticmethod
    def reason(error: psycopg.Error) -> str:
        """The message of the server or, if there is none, the last one of libpq."""
        if error.diag.message_primary:
            return error.diag.message_primary
        line = str(error).strip().partition("\n")[0]
        return line.rpartition(" failed: ")[2].removeprefix("FATAL:").strip().rstrip(".") or type(error).__name__

    def unusable_because(self, reason: str, way_out: str) -> Exception:
        return self.error(f"{self} cannot be used {self.purpose}: {reason}. {way_out}.")

    def _ways_out(self) -> Mapping[type[psycopg.Error], str]:
        return {
            errors.InsufficientPrivilege: f"Grant it, or name another user in {self.setting}",
            errors.ReadOnlySqlTransaction: f"Name the primary server in {self.setting}",
            errors.DiskFull: "Make room on its disk and try again",
            errors.TooManyConnections: "Raise max_connections of the server, or try again later",
            errors.UndefinedTable: self.tables_gone,
        }

    def _unreadable(self) -> Exception:
        return self.error(
            f"{self.setting} is not the address of a Postgres database: it has to look like "
            "postgresql://user:password@host:5432/database, with @, / and : in the password "
            "percent-encoded."
        )
