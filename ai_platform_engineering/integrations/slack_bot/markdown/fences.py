"""The lines that open and close fenced code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# Longer runs of backticks are rulers, and deeply indented ones are quoted text: neither opens code. This bounds the
# text that closes a fence in one message and opens it again in the next.
_MAX_DELIMITER_LENGTH: Final = 10
_MAX_DEPTH: Final = 16
_MAX_INFO_LENGTH: Final = 30
MAX_REOPENING_LENGTH: Final = _MAX_DEPTH + _MAX_DELIMITER_LENGTH + _MAX_INFO_LENGTH + 1
MAX_CLOSING_LENGTH: Final = 1 + _MAX_DEPTH + _MAX_DELIMITER_LENGTH

_ITEM: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+")
_DELIMITER: Final = re.compile(r"`{3,}|~{3,}")


@dataclass(frozen=True, slots=True)
class Fence:
    """The line that opens a code block. `lead` is the start of a list item on the same line, if there is one; `indent`
    is the column of the delimiter."""

    lead: str
    indent: int
    delimiter: str
    info: str

    @property
    def language(self) -> str:
        word = re.match(r"\{?\.?([\w+#-]*)", self.info)
        return word[1].lower() if word else ""

    @property
    def reopening(self) -> str:
        """The line that opens the rest of the code in another message."""
        info = next(info for info in (self.info, self.language, "") if len(info) <= _MAX_INFO_LENGTH)
        return f"{' ' * self.indent}{self.delimiter}{info}\n"

    @property
    def closing(self) -> str:
        return " " * self.indent + self.delimiter

    @property
    def closings(self) -> re.Pattern[str]:
        """Matches every line that closes the code, and also some that are indented too far."""
        return re.compile(rf"^[^\S\n]*{self.delimiter}{self.delimiter[0]}*[^\S\n]*$", re.MULTILINE)

    def closed_by(self, line: str) -> bool:
        if self.delimiter not in line:
            return False
        content = line.strip()
        is_delimiter = content == self.delimiter[0] * len(content)
        return is_delimiter and _column(line[: line.index(content)]) <= self.indent + 3


def opened_by(line: str) -> Fence | None:
    """The fence that a complete line opens. Code in lists is indented, so the delimiter may be at any column."""
    if "```" not in line and "~~~" not in line:
        return None
    begin = delimiter_position(line)
    match = _DELIMITER.match(line, begin)
    if match is None:
        return None
    info = line[match.end() :].strip()
    indent = _column(line[:begin])
    if indent > _MAX_DEPTH or len(match[0]) > _MAX_DELIMITER_LENGTH or (match[0][0] == "`" and "`" in info):
        return None
    return Fence(line[:begin] if line[:begin].strip() else "", indent, match[0], info)


def may_open(line: str) -> bool:
    """Whether an unfinished line may become one that opens code."""
    begin = delimiter_position(line)
    rest = line[begin:]
    if not rest or rest[0] not in "`~":
        return False
    if len(rest) < 3:
        return rest == rest[0] * len(rest)
    return opened_by(line) is not None


def delimiter_position(line: str) -> int:
    """The position of the delimiter, if the line opens code: after white space and the start of a list item."""
    begin = len(line) - len(line.lstrip(" \t"))
    item = _ITEM.match(line, begin)
    return item.end() if item else begin


def open_at_end(text: str) -> Fence | None:
    """The fence that is still open at the end of `text`."""
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
