"""One user's feedback on one answer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

Rating = Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class Feedback:
    """`trace_id` identifies the answer, together with `message_id` if a trace has several answers. `at_ns` is the time
    of the feedback in nanoseconds since 1970."""

    trace_id: str
    rating: Rating
    surface: str
    at_ns: int
    task_id: str = ""
    message_id: str = ""
    reason: str = ""
    user: str = ""
    user_name: str = ""

    @property
    def id(self) -> str:
        """The same id for all feedback of one user on one answer."""
        named = json.dumps([self.trace_id, self.message_id, self.user])
        return hashlib.sha256(named.encode()).hexdigest()[:32]

    def facts(self) -> dict[str, Any]:
        """JSON form, without empty values."""
        at = datetime.fromtimestamp(self.at_ns / 1e9, UTC).isoformat(timespec="milliseconds")
        facts = {
            "id": self.id,
            "at": at.replace("+00:00", "Z"),
            "rating": self.rating,
            "reason": self.reason,
            "trace_id": self.trace_id,
            "task_id": self.task_id,
            "message_id": self.message_id,
            "user": self.user,
            "user_name": self.user_name,
            "surface": self.surface,
        }
        return {name: value for name, value in facts.items() if value}
