"""A memory, its owner, and the errors of the store."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self

from ai_platform_engineering.identity.principal import KEY_SUBJECT, Principal
from ai_platform_engineering.text.plain_text import one_line
from ai_platform_engineering.utils.errors import ReadableError

MAX_MEMORIES: Final = 200
"""Memories of one owner."""
MAX_LENGTH: Final = 1_000
"""Characters of one memory."""

_ID_LENGTH: Final = 10
_MS: Final = 1_000


class UnusableTextError(ReadableError):
    """The text cannot be remembered."""


class MemoriesFullError(ReadableError):
    def __init__(self) -> None:
        super().__init__(f"{MAX_MEMORIES} memories are stored, which is the maximum. One has to be forgotten first.")


class UnknownMemoryError(ReadableError):
    def __init__(self, memory_id: str) -> None:
        super().__init__(f"There is no memory {one_line(memory_id)[:100]!r}.")


class MemoriesUnavailableError(ReadableError):
    """The store cannot be used now. The text has the reason, without addresses."""


@dataclass(frozen=True, slots=True)
class Memory:
    """`created` is in UTC, with milliseconds."""

    id: str
    text: str
    created: datetime

    @classmethod
    def new(cls, text: str, created: datetime) -> Self:
        """A memory of this text on one line. The same text has the same id, so a repeated call adds nothing."""
        line = one_line(text)
        if not line:
            raise UnusableTextError("An empty text cannot be remembered.")
        if len(line) > MAX_LENGTH:
            raise UnusableTextError(
                f"The text has {len(line)} characters. A memory may have at most {MAX_LENGTH}: make it shorter."
            )
        digest = hashlib.sha256(line.encode()).hexdigest()[:_ID_LENGTH]
        return cls(digest, line, from_ms(to_ms(created)))

    @classmethod
    def read(cls, memory_id: str, value: Any) -> Self | None:
        """The memory with this stored value; None if the value is no memory."""
        match value:
            case {"text": str(text), "created": int() | float() as created}:
                return cls(memory_id, text, from_ms(created))
            case _:
                return None

    def after(self, other: Memory) -> Memory:
        """This memory as one that is newer than `other`, which may be of the same millisecond."""
        return replace(self, created=max(self.created, other.created + timedelta(milliseconds=1)))

    def value(self) -> dict[str, Any]:
        """The value to store under the id."""
        return {"text": self.text, "created": to_ms(self.created)}

    def facts(self) -> dict[str, Any]:
        return {"id": self.id, "text": self.text, "created": self.created.isoformat(timespec="milliseconds")}


def owner_of(caller: Principal, user: str | None) -> str | None:
    """The owner of memories, as a key that is safe in any store; None for a token without a subject.

    A user that the holder of an access token names is known to that caller only, because any caller could name it.
    Where no authentication is required, a user is the same for all callers. Callers without a user are one owner.
    """
    match caller:
        case Principal(verified_by="token", subject=None):
            return None
        case Principal(verified_by="token", subject=subject):
            identity = ["token", subject, user or ""]
        case Principal(verified_by="statement", subject=subject):
            identity = ["user", subject]
        case Principal(verified_by="key", subject=subject) if subject != KEY_SUBJECT:
            identity = ["key", subject]
        case _:
            identity = ["user", user] if user else ["shared"]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()


def to_ms(moment: datetime) -> int:
    """Milliseconds since 1970."""
    return round(moment.timestamp() * _MS)


def from_ms(milliseconds: float) -> datetime:
    return datetime.fromtimestamp(milliseconds / _MS, UTC)
