"""Random keys in files of the data directory, which the processes of one user share."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from ai_platform_engineering.utils.private_files import make_private_directory

_KEY_BYTES: Final = 32


class KeyFileError(Exception):
    """The file has no usable key; the text is a sentence that names the file."""


def read_or_create_key(path: Path) -> bytes:
    """The key in the file. The first process that needs it creates the file."""
    try:
        with suppress(FileNotFoundError):
            return _read(path)
        make_private_directory(path.parent)
        _create(path)
        return _read(path)
    except OSError as error:
        raise KeyFileError(f"{path} cannot be used ({error.strerror}).") from error


def _read(path: Path) -> bytes:
    try:
        key = bytes.fromhex(path.read_text("ascii"))
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise KeyFileError(f"{path} contains no valid key. Delete the file; a new key is created.")
    return key


def _create(path: Path) -> None:
    """Write a new key to a temporary file, then link it into place, so that a reader never sees half a key."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(_KEY_BYTES))
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
