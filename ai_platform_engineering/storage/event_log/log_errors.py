"""Errors of the durable logs that people see."""

from __future__ import annotations

from typing import Final, Literal

from ai_platform_engineering.utils.errors import ReadableError


class LogWriteError(ReadableError):
    """Events could not be stored, so followers do not see them."""

    def __init__(self, store: Literal["disk", "database"]) -> None:
        way_out = "the disk can be written again" if store == "disk" else "the database of the server can be used again"
        super().__init__(
            "The server cannot store the events of this task, so the work was stopped and the last outcome is unknown. "
            f"Its log says why. When {way_out}, check what was done before you ask again."
        )


class RequestNotStoredError(LogWriteError):
    """A new message could not be stored."""

    def __init__(self, store: Literal["disk", "database"] = "database") -> None:
        problem = "disk cannot be written" if store == "disk" else "database cannot be used"
        ReadableError.__init__(
            self,
            f"The server cannot store this request, because its {problem}. Its log says why. Send the request again "
            f"when the {problem.replace('cannot', 'can')} again; with the same message id it is not worked on twice.",
        )


_UNREADABLE: Final = "file of tasks cannot be read", "file"


class LogReadError(ReadableError):
    """Tasks could not be read."""

    def __init__(self, store: Literal["disk", "database"] = "database") -> None:
        problem, place = ("database does not answer", "database") if store == "database" else _UNREADABLE
        super().__init__(
            f"The server cannot read its tasks, because its {problem}. Its log says why. Try again when the {place} "
            "can be used again."
        )


class LogClosedError(ReadableError):
    """The log is used before it was opened or after it was closed."""

    code = "stopped"

    def __init__(self) -> None:
        super().__init__("The server is not running. Ask again when it is.")
