"""The person at the keyboard."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ai_platform_engineering.terminal.dialogue import Tone
from ai_platform_engineering.terminal.editor import edit, editor_of
from ai_platform_engineering.terminal.prompt import without_history
from ai_platform_engineering.terminal.rendering import marks_for

_STYLES: Final[dict[Tone, str]] = {"heading": "bold yellow", "plain": "", "quiet": "dim", "problem": "red"}


class AtKeyboard:
    """Asks in the terminal that `console` draws on."""

    def __init__(self, console: Console, environ: Mapping[str, str]) -> None:
        self._console = console
        self._editor = editor_of(environ)
        self._mark = marks_for(console.encoding).prompt

    def tell(self, text: str, tone: Tone = "plain") -> None:
        words = text.lstrip(" ")
        # What does not fit goes on below its beginning.
        self._console.print(Padding(Text(words, style=_STYLES[tone]), (0, 0, 0, len(text) - len(words))))

    def ask(self, label: str, *, hidden: bool = False) -> str:
        sign = f"  {label} {self._mark} " if label else f"  {self._mark} "
        shown = sign.encode(self._console.encoding, "replace").decode(self._console.encoding)
        try:
            if hidden:
                return getpass.getpass(shown)
            with without_history():
                return input(shown)
        except (EOFError, KeyboardInterrupt):
            print()  # noqa: T201
            raise

    def edit(self, text: str, name: str) -> str | None:
        return None if self._editor is None else edit(self._editor, text, name)
