"""Exit codes of commands, and the message of a command that cannot run."""

from __future__ import annotations

import sys
from typing import Final

FAILED: Final = 1
MISCONFIGURED: Final = 2
INTERRUPTED: Final = 130


def refuse(error: Exception | str) -> int:
    """Print why the command cannot run; the exit code for wrong arguments and wrong settings."""
    print(f"platform-engineer: {error}", file=sys.stderr)
    return MISCONFIGURED


def fail(error: Exception | str) -> int:
    """Print why the command failed; its exit code."""
    refuse(error)
    return FAILED
