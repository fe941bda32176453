"""The output of commands. Texts may be untrusted: control characters never reach the terminal."""

from __future__ import annotations

import sys

from ai_platform_engineering.utils.characters import clean


def print_lines(*lines: str) -> None:
    """Print to standard output."""
    sys.stdout.write("".join(f"{clean(line)}\n" for line in lines))


def print_note(text: str) -> None:
    """Print to standard error."""
    sys.stderr.write(f"{clean(text)}\n")
