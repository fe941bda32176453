"""Errors of the durable logs that people see."""

from __future__ import annotations

from typing import Literal

from ai_platform_engineering.utils.errors import ReadableError


class LogWriteError(ReadableError):
    """Events could not be stored, so followers do not see them."""

    def __init__(self, store: Literal["disk", "database"]) -> None:
        way_out = "the disk has room again" if store == "disk" else "the database of the server can be used again"
        super().__init__(
            "The server cannot store the events of this task, so the work was stopped and the last outcome is unknown. "
            f"Its log says why. When {way_out}, check what was done before you ask again."
        )


class RequestNotStoredError(LogWriteError):
    """A new message could not be stored."""

    def __init__(self) -> None:
        ReadableError.__init__(
            self,
            "The server cannot store this request, because its database cannot be used. Its log says why. Send the "
            "request again when the database can be used again; with the same message id it is not worked on twice.",
        )


class LogReadError(ReadableError):
    """Tasks could not be read."""

    def __init__(self) -> None:
        super().__init__(
            "The server cannot read its tasks, because its database does not answer. Its log says why. Try again when "
            "the database can be used again."
        )


class LogClosedError(ReadableError):
    """The log is used before it was opened or after it was closed."""

    code = "stopped"

    def __init__(self) -> None:
        super().__init__("The server is not running. Ask again when it is.")
