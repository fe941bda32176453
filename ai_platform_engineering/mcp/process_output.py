"""The output of a server's process: lines of a byte stream, and the last lines of its standard error."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Final

from ai_platform_engineering.utils.redact import Redactor

MAX_LENGTH: Final = 200
_STORED_LINES: Final = 40
_CONTROL: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
# Node and npm print these after the error itself: stack frames, lone brackets, the version, the path of the log.
_EPILOGUE: Final = re.compile(r"at .+|Node\.js v[\d.]+|[\s{}()\[\]^~;,-]*|npm err(or|!) A complete log of this run .*")


class LineSplitter:
    """Splits a stream of bytes into lines. A line above the limit is discarded and reported."""

    def __init__(self, on_line: Callable[[bytes], None], on_overflow: Callable[[], None], limit: int) -> None:
        self._on_line = on_line
        self._on_overflow = on_overflow
        self._limit = limit
        self._rest = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> None:
        first, *others = data.split(b"\n")
        self._rest += first
        for following in others:
            self._finish()
            self._rest += following
        if len(self._rest) > self._limit:
            self._rest.clear()
            self._skipping = True
            self._on_overflow()

    def end(self) -> None:
        """The stream has ended. The rest of the buffer is the last line."""
        self._finish()

    def _finish(self) -> None:
        line = bytes(self._rest)
        self._rest.clear()
        if self._skipping:
            self._skipping = False
        elif line.strip():
            self._on_line(line)


class StderrTail:
    """The last lines of standard error, of which `last_line` is the one that explains a failure."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._lines: deque[bytes] = deque(maxlen=_STORED_LINES)

    def add(self, line: bytes) -> None:
        self._lines.append(line)

    @property
    def last_line(self) -> str:
        """The last meaningful line, without secrets; empty if the server wrote nothing."""
        lines = [text for line in reversed(self._lines) if (text := _plain(line))]
        text = self._redact(next((line for line in lines if not _EPILOGUE.fullmatch(line)), lines[0] if lines else ""))
        return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1].rstrip()}…"


def _plain(line: bytes) -> str:
    return _CONTROL.sub("", line.decode(errors="replace")).strip()
