"""The presentation of a text that a model is still writing: Markdown without active mentions, long blocks as files.

Text that was shown is never removed. Code and tables appear when they are complete, because only then their size
decides whether they fit in a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.integrations.slack_bot.markdown import mentions
from ai_platform_engineering.integrations.slack_bot.markdown.passages import (
    Block,
    Code,
    Passage,
    Prose,
    Table,
    passages,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.attachments import (
    MAX_COLUMNS,
    attached,
    file_name,
    is_long,
    size,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import File

_PREVIEW_ROWS: Final = 3
_MAX_PREVIEW_LENGTH: Final = 600


@dataclass(frozen=True, slots=True)
class Presented:
    """`attachments` are the blocks that are too long for a message, with their numbers."""

    text: str
    attachments: tuple[tuple[Block, int], ...]

    @property
    def files(self) -> tuple[File, ...]:
        """Built on demand, because the text is presented again for every delta."""
        return tuple(attached(block, number) for block, number in self.attachments)


def present(raw: str, *, complete: bool) -> Presented:
    """The presentation of `raw`. It stays a prefix of the presentation of any longer `raw`."""
    page = _Page()
    for passage in passages(raw, complete=complete):
        page.add(passage)
    text = "".join(page.parts)
    return Presented(text if complete else mentions.without_partial_mention(text), tuple(page.attachments))


class _Page:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.attachments: list[tuple[Block, int]] = []
        self._numbers: Counter[type[Block]] = Counter()
        self._after_note = False

    def add(self, passage: Passage) -> None:
        match passage:
            case Prose():
                self._write(mentions.disarm_mentions(passage.text))
            case Code() if is_long(passage):
                self._attach(passage, "" if passage.lead else " " * passage.fence.indent)
            case Code():
                self._write(mentions.disarm_code_mentions(_after_lead(passage, passage.text)))
            case Table() if is_long(passage):
                self._write(mentions.disarm_mentions(_after_lead(passage, "".join(_first_lines(passage)))))
                self._attach(passage)
            case Table():
                self._write(mentions.disarm_mentions(_after_lead(passage, passage.text)))

    def _attach(self, block: Block, indent: str = "") -> None:
        self._numbers[type(block)] += 1
        number = self._numbers[type(block)]
        self.attachments.append((block, number))
        what = "code" if isinstance(block, Code) else "whole table"
        self._write_note(f"{indent}_The {what} is in the file_ `{file_name(block, number)}` _({size(block)})._\n")

    def _write_note(self, note: str) -> None:
        """Write the note as a separate paragraph."""
        above = "".join(self.parts[-2:])
        is_below_text = above.endswith("\n") and not above.endswith("\n\n")
        self.parts.append("\n" + note if is_below_text else note)
        self._after_note = True

    def _write(self, text: str) -> None:
        if not text:
            return
        if self._after_note and not text.startswith(("\n", "\r")):
            self.parts.append("\n")
        self.parts.append(text)
        self._after_note = False


def _after_lead(block: Block, text: str) -> str:
    return text[len(block.lead) :]


def _first_lines(table: Table) -> Sequence[str]:
    """The first rows as a preview of the file; only the header if they are long."""
    lines = table.lines(2 + _PREVIEW_ROWS)
    is_short = sum(map(len, lines)) <= _MAX_PREVIEW_LENGTH and table.columns <= MAX_COLUMNS
    return lines if is_short else lines[:1]
