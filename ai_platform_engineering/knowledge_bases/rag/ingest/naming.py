"""Names for datasources that were given none: like the folder or the host they come from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

_UNNAMED: Final = "documents"
_MAX_LENGTH: Final = 100


def folder_name(path: Path) -> str:
    return _usable(path.resolve().name)


def host_name(url: str) -> str:
    return _usable(urlsplit(url).hostname or "")


def _usable(text: str) -> str:
    """The text with only what the name of a datasource may have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("._-")[:_MAX_LENGTH] or _UNNAMED
