"""Page tokens: a position in a listing as text that clients send back."""

from __future__ import annotations

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

_MAX_NS: Final = 2**63 - 1


def page_token(position: tuple[int, str]) -> str:
    return urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def read_page_token(token: str) -> tuple[int, str] | None:
    """The position in a token; None if it is no token of this server."""
    try:
        changed_ns, item_id = json.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        return None
    if type(changed_ns) is not int or not 0 <= changed_ns <= _MAX_NS or not isinstance(item_id, str):
        return None
    return changed_ns, item_id
