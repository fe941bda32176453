"""Sends feedback to Langfuse as a score of its trace. The score's id makes repeated requests idempotent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from ai_platform_engineering.multi_agents.platform_engineer.feedback.record import Feedback
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.utils.connections import reason_of

SCORE: Final = "user-feedback"
_REJECTED_CODES: Final = frozenset({400, 409, 413, 422})
_UNAUTHORIZED_CODES: Final = frozenset({401, 403})


class UnavailableError(Exception):
    """Langfuse did not accept the score now; a retry may succeed. `retry_after` is its Retry-After in seconds."""

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.retry_after = retry_after


class RejectedError(Exception):
    """Langfuse rejected the score; a retry would fail as well."""


@dataclass(frozen=True, slots=True)
class Langfuse:
    host: str
    public_key: str
    secret_key: str = field(repr=False)

    @classmethod
    def of(cls, settings: Settings) -> Langfuse | None:
        """None if `LANGFUSE_HOST` is not set."""
        if settings.langfuse_host is None:
            return None
        if settings.langfuse_public_key is None or settings.langfuse_secret_key is None:
            raise SettingsError(
                "LANGFUSE_HOST needs LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY: set both, or leave it out."
            )
        public, secret = settings.langfuse_public_key, settings.langfuse_secret_key
        return cls(settings.langfuse_host.rstrip("/"), public.get_secret_value(), secret.get_secret_value())

    async def send(self, http: httpx.AsyncClient, feedback: Feedback) -> None:
        try:
            response = await http.post(
                f"{self.host}/api/public/scores",
                json=score(feedback),
                auth=httpx.BasicAuth(self.public_key, self.secret_key),
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnavailableError(reason_of(error)) from error
        code = response.status_code
        if response.is_success:
            return
        if code in _REJECTED_CODES:
            raise RejectedError(f"HTTP {code}")
        why = f"HTTP {code}"
        if code in _UNAUTHORIZED_CODES:
            why += "; check LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
        raise UnavailableError(why, _seconds(response.headers.get("retry-after", "")))


def score(feedback: Feedback) -> dict[str, Any]:
    body = {
        "id": feedback.id,
        "traceId": feedback.trace_id,
        "name": SCORE,
        "value": 1 if feedback.rating == "up" else 0,
        "dataType": "BOOLEAN",
    }
    # An empty comment overwrites the reason of earlier feedback.
    return {**body, "comment": feedback.reason}


def _seconds(header: str) -> float | None:
    return float(header) if header.isascii() and header.isdigit() and len(header) < 6 else None
