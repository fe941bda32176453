"""The `Prompter` for the keyboard, with the person's own editor for long input."""

from __future__ import annotations

import getpass
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ai_platform_engineering.terminal.form_dialogue import EditorError, Tone
from ai_platform_engineering.terminal.keyboard import without_history
from ai_platform_engineering.terminal.rendering import symbols_for
from ai_platform_engineering.utils.characters import clean

_STYLES: Final[dict[Tone, str]] = {"heading": "bold yellow", "plain": "", "quiet": "dim", "problem": "red"}


class TerminalPrompter:
    def __init__(self, console: Console, environ: Mapping[str, str]) -> None:
        self._console = console
        self._editor = editor_command(environ)
        self._symbol = symbols_for(console.encoding).prompt

    def show(self, text: str, tone: Tone = "plain") -> None:
        text = clean(text)
        words = text.lstrip(" ")
        # Wrapped lines keep the indentation of the first line.
        self._console.print(Padding(Text(words, style=_STYLES[tone]), (0, 0, 0, len(text) - len(words))))

    def ask(self, label: str, *, hidden: bool = False) -> str:
        prompt = f"  {clean(label)} {self._symbol} " if label else f"  {self._symbol} "
        printable = prompt.encode(self._console.encoding, "replace").decode(self._console.encoding)
        try:
            if hidden:
                return getpass.getpass(printable)
            with without_history():
                return input(printable)
        except (EOFError, KeyboardInterrupt):
            print()  # noqa: T201
            raise

    def edit(self, text: str, name: str) -> str | None:
        return None if self._editor is None else edit(self._editor, text, name)


def editor_command(environ: Mapping[str, str]) -> str | None:
    return environ.get("VISUAL") or environ.get("EDITOR") or None


def edit(command: str, text: str, name: str) -> str:
    """Open `text` as a file called `name` in the editor, and return the saved text."""
    # Only its owner can read this directory.
    with tempfile.TemporaryDirectory(prefix="platform-engineer-") as directory:
        path = Path(directory) / name
        path.write_text(text, encoding="utf-8")
        try:
            # The command is the person's own setting.
            completed = subprocess.run([*shlex.split(command), str(path)], check=False)  # noqa: S603
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise EditorError(f"The editor {command!r} cannot be started: {reason}. Set EDITOR to another.") from None
        if completed.returncode:
            raise EditorError(f"The editor {command!r} exited with {completed.returncode}; nothing was changed.")
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise EditorError(f"The file from the editor {command!r} cannot be read; nothing was changed.") from None
