"""Logging to standard error, as text or JSON lines, with credentials redacted."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Final

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.characters import escaped
from ai_platform_engineering.utils.redact import Redactor

FRAMES: Final = "frames"
"""Key in `extra` of a record: the frames of a traceback, without the text of the exception."""

_OURS: Final = "ai_platform_engineering"
_INDENT: Final = "    "

# Libraries that log every request or connection at INFO; only their warnings are of interest.
_VERBOSE: Final = ("a2a", "fastmcp", "httpx", "httpx2", "mcp", "procrastinate", "sse_starlette", "uvicorn")
_DEBUG_VERBOSE: Final = ("asyncio", "hpack", "httpcore", "httpcore2", "h11")
# Warns repeatedly while a database is unreachable. Each failed request reports that already.
_REPEATING: Final = ("psycopg.pool",)


class RedactingFormatter(logging.Formatter):
    """Formats a record as text, and redacts it with its traceback.

    The message is one line and begins with the time; the lines of a traceback are indented. So no value in a record
    can look like another record.
    """

    def __init__(self, redactor: Redactor, worker: int | None = None) -> None:
        prefix = "" if worker is None else f"worker {worker}: "
        super().__init__(f"%(asctime)s {prefix}%(levelname)-7s %(source)s: %(message)s", "%H:%M:%S")
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        # For our own loggers the name of the module is enough.
        record.source = record.name.rpartition(".")[2] if record.name.startswith(f"{_OURS}.") else record.name
        record.message = record.getMessage()
        record.asctime = self.formatTime(record, self.datefmt)
        lines = [self._redactor(self.formatMessage(record))]
        if frames := _frames(self, record):
            lines += (f"{_INDENT}{line}" for line in self._redactor(frames).split("\n"))
        return "\n".join(map(escaped, lines))


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object per line, with redacted texts."""

    def __init__(self, redactor: Redactor, worker: int | None = None) -> None:
        super().__init__()
        self._redactor = redactor
        self._worker = {} if worker is None else {"worker": worker}

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC)
        line = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            **self._worker,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redactor(record.getMessage()),
        }
        if frames := _frames(self, record):
            line["exception"] = self._redactor(frames)
        return escaped(json.dumps(line, ensure_ascii=False))


def _frames(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """The traceback of a record. A record whose exception has a private text brings its frames alone."""
    if record.exc_info:
        return formatter.formatException(record.exc_info)
    return str(getattr(record, FRAMES, "")).rstrip()


def configure_logging(settings: Settings, *, quiet: bool = False, worker: int | None = None) -> None:
    """Configure logging of the whole process. Call it once, at start.

    `quiet` is for commands that print a report: only errors are logged, unless `LOG_LEVEL` is set. Lines of one of
    several worker processes have its number.
    """
    level_name = "error" if quiet and "LOG_LEVEL" not in settings.environ else settings.log_level
    redactor = Redactor.of(settings)
    handler = logging.StreamHandler()
    formatter = JsonFormatter if settings.log_format == "json" else RedactingFormatter
    handler.setFormatter(formatter(redactor, worker))
    level: int = logging.getLevelNamesMapping()[level_name.upper()]
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _VERBOSE:
        logging.getLogger(name).setLevel(level if level <= logging.DEBUG else max(level, logging.WARNING))
    for name in _DEBUG_VERBOSE:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    for name in _REPEATING:
        logging.getLogger(name).setLevel(logging.ERROR)
