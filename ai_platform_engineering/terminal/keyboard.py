"""Keyboard input, one line at a time, with the history of earlier questions where readline is available."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ai_platform_engineering.utils.private_files import create_private_file

try:
    import readline
except ImportError:  # not available on every system
    readline = None  # type: ignore[assignment]

try:
    import termios
except ImportError:
    termios = None  # type: ignore[assignment]

_HISTORY_LENGTH: Final = 500


@contextmanager
def question_history(path: Path) -> Iterator[None]:
    """Load the questions of earlier sessions from `path`, and store them with the new ones at the end."""
    if readline is None:
        yield
        return
    with suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(_HISTORY_LENGTH)
    try:
        yield
    finally:
        with suppress(OSError):
            create_private_file(path)
            readline.write_history_file(path)


@contextmanager
def without_history() -> Iterator[None]:
    """Keep the input out of the history of questions."""
    if readline is None:
        yield
        return
    readline.set_auto_history(False)
    try:
        yield
    finally:
        readline.set_auto_history(True)


def discard_typed_input() -> None:
    """Discard input that was typed before the prompt: it could approve a call that the person has not read."""
    if termios is not None and sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


@contextmanager
def echo_off() -> Iterator[None]:
    """Do not echo typed characters into the drawing; the next prompt reads them."""
    if termios is None or not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    without_echo = list(before)
    without_echo[3] &= ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, without_echo)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def read_question(prompt: str) -> str | None:
    """The next line, or None after Ctrl-D or Ctrl-C."""
    try:
        return input(prompt).strip()
    except EOFError:
        if sys.stdin.isatty():
            print()  # noqa: T201
        return None
    except KeyboardInterrupt:
        print()  # noqa: T201
        return None
