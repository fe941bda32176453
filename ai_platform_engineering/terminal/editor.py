"""The person's own editor, for what is too long for a line."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path


class EditorError(Exception):
    """The editor cannot be used; the text says why."""


def editor_of(environ: Mapping[str, str]) -> str | None:
    return environ.get("VISUAL") or environ.get("EDITOR") or None


def edit(command: str, text: str, name: str) -> str:
    """`text` as it was left in the editor; `name` is that of the file it is shown as."""
    # Only its owner can look into this directory.
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
            raise EditorError(f"The editor {command!r} ended with {completed.returncode}; nothing was changed.")
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise EditorError(f"What the editor {command!r} left cannot be read; nothing was changed.") from None
