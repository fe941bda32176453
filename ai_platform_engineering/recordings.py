"""Reads recordings, the output of `chat --json` and `tasks export`: one event or question per line."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from ai_platform_engineering.events_json import Asked, EventFormatError, Line, decode_line

CUT_SHORT: Final = "The recording ends here, before the run did."


class RecordingError(Exception):
    """A recording cannot be read; the text names the file and the reason."""


def read_recording(file: str) -> list[Line]:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise RecordingError(f"{file} cannot be read: {error.strerror}.") from None
    lines = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                lines.append(decode_line(line))
            except EventFormatError as error:
                raise RecordingError(f"{file}, line {number}: {error}") from None
    if not lines:
        raise RecordingError(f"{file} is empty; a recording has one JSON object a line.")
    return lines


def runs_of(lines: Iterable[Line]) -> Iterator[tuple[Asked | None, list[Line]]]:
    """The runs of a recording, each with its question if the recording has it."""
    asked: Asked | None = None
    for is_question, group in groupby(lines, key=lambda line: isinstance(line.item, Asked)):
        if is_question:
            *_, last = group
            asked = last.item if isinstance(last.item, Asked) else None
        else:
            yield asked, list(group)
            asked = None
