"""What is shown of a text that a model is still writing: Markdown that calls nobody, and files for what is too long.

What has been shown is never taken back. Code and tables appear when they are finished, because only then it is known
whether they are short enough to be read in a message.
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

_ROWS_OF_A_LONG_TABLE: Final = 3
_MAX_ROWS_LENGTH: Final = 600


@dataclass(frozen=True, slots=True)
class Presented:
    """`attachments` are what is too long for a message, with their numbers."""

    text: str
    attachments: tuple[tuple[Block, int], ...]

    @property
    def files(self) -> tuple[File, ...]:
        """Made when they are needed: the text is asked for again and again while it is written."""
        return tuple(attached(block, number) for block, number in self.attachments)


def present(raw: str, *, complete: bool) -> Presented:
    """What is shown of `raw`. Whatever is added to it, this stays the beginning of what is shown."""
    page = _Page()
    for passage in passages(raw, complete=complete):
        page.add(passage)
    text = "".join(page.parts)
    return Presented(text if complete else mentions.decided(text), tuple(page.attachments))


class _Page:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.attachments: list[tuple[Block, int]] = []
        self._numbers: Counter[type[Block]] = Counter()
        self._after_note = False

    def add(self, passage: Passage) -> None:
        match passage:
            case Prose():
                self._write(mentions.silent(passage.text))
            case Code() if is_long(passage):
                self._attach(passage, "" if passage.lead else " " * passage.fence.indent)
            case Code():
                self._write(mentions.silent_code(_after_lead(passage, passage.text)))
            case Table() if is_long(passage):
                self._write(mentions.silent(_after_lead(passage, "".join(_first_lines(passage)))))
                self._attach(passage)
            case Table():
                self._write(mentions.silent(_after_lead(passage, passage.text)))

    def _attach(self, block: Block, indent: str = "") -> None:
        self._numbers[type(block)] += 1
        number = self._numbers[type(block)]
        self.attachments.append((block, number))
        what = "code" if isinstance(block, Code) else "whole table"
        self._write_note(f"{indent}_The {what} is in the file_ `{file_name(block, number)}` _({size(block)})._\n")

    def _write_note(self, note: str) -> None:
        """A paragraph of its own, whatever is before and after it."""
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
    """Enough to see what is in the file; the header at least."""
    lines = table.lines(2 + _ROWS_OF_A_LONG_TABLE)
    is_cheap = sum(map(len, lines)) <= _MAX_ROWS_LENGTH and table.columns <= MAX_COLUMNS
    return lines if is_cheap else lines[:1]
