"""Exit codes of commands, and functions that print an error and return its exit code."""

from __future__ import annotations

from typing import Final

from ai_platform_engineering.cli.printing import print_note

FAILED: Final = 1
MISCONFIGURED: Final = 2
INTERRUPTED: Final = 130


def refuse(error: Exception | str) -> int:
    """Print why the command cannot run, and return the exit code for invalid arguments or settings."""
    print_note(f"platform-engineer: {error}")
    return MISCONFIGURED


def fail(error: Exception | str) -> int:
    """Print why the command failed, and return the exit code of a failure."""
    refuse(error)
    return FAILED
