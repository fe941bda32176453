"""The end of a server's standard error: the line that says why it does not start, or why it died."""

from __future__ import annotations

import re
from collections import deque
from typing import Final

from ai_platform_engineering.utils.redact import Redactor

MAX_LENGTH: Final = 200
_KEPT_LINES: Final = 40
_CONTROL: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
# What Node and npm print after the error itself: frames of the stack, lone brackets, the version, where the log is.
_EPILOGUE: Final = re.compile(r"at .+|Node\.js v[\d.]+|[\s{}()\[\]^~;,-]*|npm err(or|!) A complete log of this run .*")


class StderrTail:
    """Keeps the last lines, and gives the last one that says something, without secrets."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._lines: deque[bytes] = deque(maxlen=_KEPT_LINES)

    def add(self, line: bytes) -> None:
        self._lines.append(line)

    @property
    def last_line(self) -> str:
        """Empty if the server wrote nothing."""
        lines = [text for line in reversed(self._lines) if (text := _plain(line))]
        text = self._redact(next((line for line in lines if not _EPILOGUE.fullmatch(line)), lines[0] if lines else ""))
        return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1].rstrip()}…"


def _plain(line: bytes) -> str:
    return _CONTROL.sub("", line.decode(errors="replace")).strip()
