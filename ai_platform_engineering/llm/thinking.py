"""Removal of the `<think>` blocks that local models write into their text, also from streamed text."""

from __future__ import annotations

import re
from typing import Final

_TAG: Final = re.compile(r"<(/?)think(?:ing)?>", re.I)
_CLOSING: Final = re.compile(r"</think(?:ing)?>", re.I)
_MAX_TAG_LENGTH: Final = len("</thinking>")
_BEGINS_TAG: Final = re.compile(r"</?(?:t(?:h(?:i(?:n(?:k(?:i(?:n(?:g)?)?)?)?)?)?)?)?$", re.I)
_FENCE: Final = "```"


class VisibleText:
    """Filters the chunks of one message and returns the visible text. Tags inside Markdown code are text.

    Some servers put the opening tag into the prompt, so that a message begins inside a block. At its closing tag, all
    text before it turns out to be thinking: `section` increases, and the message restarts after the tag.
    """

    def __init__(self) -> None:
        self.section = 0
        self._pending = ""
        self._hidden = False
        self._blank = True
        self._after_block = False
        self._line = ""
        self._fenced = False

    def feed(self, text: str) -> str:
        if "<" not in text and not (self._pending or self._hidden or self._blank):
            return self._show(text)
        self._pending += text
        shown = ""
        while self._pending:
            if self._hidden:
                closing = _CLOSING.search(self._pending)
                if closing is None:
                    self._pending = self._pending[-(_MAX_TAG_LENGTH - 1) :]
                    break
                self._hidden = False
                self._after_block = True
                self._pending = self._pending[closing.end() :]
                continue
            if self._blank and self._after_block:
                self._pending = self._pending.lstrip()
            tag = _TAG.search(self._pending)
            if tag is None:
                held = self._held_back()
                shown += self._show(self._pending[: len(self._pending) - held])
                self._pending = self._pending[len(self._pending) - held :]
                break
            before = self._pending[: tag.start()]
            if self._in_code(before):
                shown += self._show(self._pending[: tag.end()])
                self._pending = self._pending[tag.end() :]
            elif tag[1]:
                shown = ""
                self.section += 1
                self._blank, self._after_block, self._line, self._fenced = True, True, "", False
                self._pending = self._pending[tag.end() :]
            else:
                shown += self._show("" if self._blank and not before.strip() else before)
                self._hidden = True
                self._pending = self._pending[tag.end() :]
        return shown

    def end(self) -> str:
        """The buffered rest of the text. A block without a closing tag stays hidden."""
        rest = "" if self._hidden else self._pending
        self._pending = ""
        return self._show(rest)

    def _held_back(self) -> int:
        """The number of characters at the end of the buffer that may be the start of a tag."""
        if self._blank and not self._pending.strip():
            return len(self._pending)
        begun = _BEGINS_TAG.search(self._pending)
        if begun is None:
            return 0
        return len(self._pending) if self._blank and not self._pending[: begun.start()].strip() else len(begun[0])

    def _show(self, text: str) -> str:
        if self._blank and text.strip():
            self._blank = False
        self._line, self._fenced = self._position(text)
        return text

    def _in_code(self, before: str) -> bool:
        line, fenced = self._position(before)
        return fenced or line.count("`") % 2 == 1 or line.lstrip().startswith(_FENCE)

    def _position(self, text: str) -> tuple[str, bool]:
        """The unfinished line after `text`, and whether it is inside a fenced block."""
        if "\n" not in text:
            return self._line + text, self._fenced
        *whole, line = (self._line + text).split("\n")
        fences = sum(one.lstrip().startswith(_FENCE) for one in whole)
        return line, self._fenced != (fences % 2 == 1)


def visible(text: str) -> str:
    """A complete text without its thinking blocks."""
    if "<" not in text:
        return text
    message = VisibleText()
    shown = message.feed(text)
    return shown + message.end()
