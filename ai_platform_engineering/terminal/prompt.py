"""Where a person types: one line at a time, with the history of earlier questions where readline is there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ai_platform_engineering.utils.private_files import create_private_file

try:
    import readline
except ImportError:  # not on every system
    readline = None  # type: ignore[assignment]

try:
    import termios
except ImportError:
    termios = None  # type: ignore[assignment]

_HISTORY_LENGTH: Final = 500


@contextmanager
def history_in(path: Path) -> Iterator[None]:
    """Questions of earlier sessions can be called back; those of this one are added when it ends."""
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
    """What is typed meanwhile is not called back as a question."""
    if readline is None:
        yield
        return
    readline.set_auto_history(False)
    try:
        yield
    finally:
        readline.set_auto_history(True)


def forget_keys() -> None:
    """What was typed before it was asked for is no answer: it could approve what nobody has read."""
    if termios is not None and sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


@contextmanager
def silent_keys() -> Iterator[None]:
    """What is typed meanwhile is not shown, where it would tear apart what is drawn; the next prompt gets it."""
    if termios is None or not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    silent = list(before)
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def read_question(sign: str) -> str | None:
    """The next line, nothing when the person is done: Ctrl-D or Ctrl-C."""
    try:
        return input(sign).strip()
    except EOFError:
        if sys.stdin.isatty():
            print()  # noqa: T201
        return None
    except KeyboardInterrupt:
        print()  # noqa: T201
        return None
