"""The address of a Postgres server: how it is connected to, and what is said when it cannot be used.

No sentence has the password. libpq itself shows parts of one that was not percent-encoded, as it takes them for a host
or a port: such addresses are told apart before anything is connected to.
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
    # A server that vanished without a word is noticed in half a minute, not in two hours.
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_TRY_AGAIN: Final = "Try again; if it stays so, the log of the server says more"


class PostgresAddress:
    """A subclass says which setting has the address, what the server is for, and which error is raised."""

    setting: ClassVar[str]
    purpose: ClassVar[str]
    error: ClassVar[type[Exception]]
    tables_gone: ClassVar[str]
    """What to do when the tables do not exist any more."""

    def __init__(self, url: str) -> None:
        try:
            given = conninfo_to_dict(url)
        except (psycopg.Error, UnicodeError):
            raise self._unreadable() from None
        host, port, database = (str(given.get(key) or "") for key in ("host", "port", "dbname"))
        if "@" in host + port + database or (port and not port.replace(",", "").isdecimal()):
            raise self._unreadable()
        self.conninfo = make_conninfo(url, **{key: value for key, value in _DEFAULTS.items() if key not in given})
        self._place = f"{host or 'localhost'}{port and f':{port}'}{database and f'/{database}'}"

    def __str__(self) -> str:
        return f"Postgres at {self._place}"

    def unusable(self, error: psycopg.Error) -> Exception:
        # An error without a code is libpq's own: there is no connection. 57P are the codes of a server that stops.
        is_away = error.sqlstate is None or error.sqlstate.startswith("57P")
        check = f"Check that the server is running, and the host, user and password in {self.setting}"
        ways_out = self._ways_out().items()
        way_out = next((text for kind, text in ways_out if isinstance(error, kind)), check if is_away else _TRY_AGAIN)
        return self.unusable_because(_reason(error), way_out)

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
            "postgresql://user:password@host:5432/database, with characters such as @ / : in the password "
            "percent-encoded."
        )


def _reason(error: psycopg.Error) -> str:
    """What the server says or, where there is none, the last thing libpq says about it."""
    if error.diag.message_primary:
        return error.diag.message_primary
    line = str(error).strip().partition("\n")[0]
    return line.rpartition(" failed: ")[2].removeprefix("FATAL:").strip().rstrip(".") or type(error).__name__
