"""The lines that open and close fenced code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# Longer runs are rulers, and deeper ones are quoted from somewhere: neither opens code. What has to be written to open
# and close a fence again is therefore never long.
_MAX_MARK_LENGTH: Final = 10
_MAX_DEPTH: Final = 16
_MAX_INFO_LENGTH: Final = 30
MAX_REOPENING_LENGTH: Final = _MAX_DEPTH + _MAX_MARK_LENGTH + _MAX_INFO_LENGTH + 1
MAX_CLOSING_LENGTH: Final = 1 + _MAX_DEPTH + _MAX_MARK_LENGTH

_ITEM: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+")
_MARK: Final = re.compile(r"`{3,}|~{3,}")


@dataclass(frozen=True, slots=True)
class Fence:
    """The line that opens code. `lead` is the list item on the same line, if there is one; `indent` is the column of
    the mark."""

    lead: str
    indent: int
    mark: str
    info: str

    @property
    def language(self) -> str:
        word = re.match(r"\{?\.?([\w+#-]*)", self.info)
        return word[1].lower() if word else ""

    @property
    def reopening(self) -> str:
        """The line that opens the rest of this code somewhere else."""
        info = next(info for info in (self.info, self.language, "") if len(info) <= _MAX_INFO_LENGTH)
        return f"{' ' * self.indent}{self.mark}{info}\n"

    @property
    def closing(self) -> str:
        return " " * self.indent + self.mark

    @property
    def closings(self) -> re.Pattern[str]:
        """Finds every line that closes the code, and some that are indented too far."""
        return re.compile(rf"^[^\S\n]*{self.mark}{self.mark[0]}*[^\S\n]*$", re.MULTILINE)

    def closed_by(self, line: str) -> bool:
        if self.mark not in line:
            return False
        content = line.strip()
        is_mark = content == self.mark[0] * len(content)
        return is_mark and _column(line[: line.index(content)]) <= self.indent + 3


def opened_by(line: str) -> Fence | None:
    """The fence that a whole line opens. In lists code is indented, so it may be everywhere."""
    if "```" not in line and "~~~" not in line:
        return None
    begin = mark_position(line)
    match = _MARK.match(line, begin)
    if match is None:
        return None
    info = line[match.end() :].strip()
    indent = _column(line[:begin])
    if indent > _MAX_DEPTH or len(match[0]) > _MAX_MARK_LENGTH or (match[0][0] == "`" and "`" in info):
        return None
    return Fence(line[:begin] if line[:begin].strip() else "", indent, match[0], info)


def may_open(line: str) -> bool:
    """Whether a line that is not finished yet may turn out to open code."""
    begin = mark_position(line)
    rest = line[begin:]
    if not rest or rest[0] not in "`~":
        return False
    if len(rest) < 3:
        return rest == rest[0] * len(rest)
    return opened_by(line) is not None


def mark_position(line: str) -> int:
    """Where the mark is, if the line opens code: after white space and the beginning of a list item."""
    begin = len(line) - len(line.lstrip(" \t"))
    item = _ITEM.match(line, begin)
    return item.end() if item else begin


def open_at_end(text: str) -> Fence | None:
    """The fence that is not closed within `text`."""
    if "```" not in text and "~~~" not in text:
        return None
    fence: Fence | None = None
    for line in text.split("\n"):
        if fence is None:
            fence = opened_by(line)
        elif fence.closed_by(line):
            fence = None
    return fence


def _column(space: str) -> int:
    return len(space.expandtabs(4))
