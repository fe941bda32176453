"""Names of fields and forms as people write them."""

from __future__ import annotations

import re
from typing import Final

_BETWEEN: Final = re.compile(r"[\s_-]+")


def same_name(name: str) -> str:
    """`name` so that two spellings of it are equal: case does not count, nor which of space, dash and underscore."""
    return _BETWEEN.sub("_", name.casefold()).strip("_")
