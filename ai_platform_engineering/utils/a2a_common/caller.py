"""The verified identity of a caller, from the key or the access token of its request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

CallerKind = Literal["anonymous", "key", "token"]

KEY_SUBJECT: Final = "key"
"""The subject of every caller that sends the shared key."""


@dataclass(frozen=True, slots=True)
class Caller:
    """`subject` is the token's `sub` claim, or `key` for the shared key; None if the server requires neither."""

    kind: CallerKind = "anonymous"
    subject: str | None = None
    teams: frozenset[str] = frozenset()

    @classmethod
    def with_token(cls, claims: Mapping[str, Any]) -> Self:
        """The caller of a verified access token."""
        subject = claims.get("sub")
        # A person whose name at the issuer is `key` must not be mistaken for the holder of the shared key.
        is_usable = isinstance(subject, str) and subject not in {"", KEY_SUBJECT}
        return cls("token", subject if is_usable else None, verified_teams(claims))

    def to_json(self) -> str:
        return json.dumps({"kind": self.kind, "subject": self.subject, "teams": sorted(self.teams)})

    @classmethod
    def from_json(cls, stored: str | None) -> Self:
        """The caller that `to_json` has written; anonymous if none was."""
        facts = json.loads(stored) if stored else {}
        return cls(facts["kind"], facts["subject"], frozenset(facts["teams"])) if facts else cls()


ANONYMOUS: Final = Caller()
KEY_HOLDER: Final = Caller("key", KEY_SUBJECT)

CALLER: Final = "caller"
"""The key of the caller in the state of an ASGI scope and of an A2A call. Only the server writes these."""


def caller_in(state: Mapping[str, Any] | None) -> Caller:
    """The caller in `state`; anonymous if the server verifies none."""
    found = (state or {}).get(CALLER)
    return found if isinstance(found, Caller) else ANONYMOUS


def verified_teams(_claims: Mapping[str, Any]) -> frozenset[str]:
    """The teams in a verified access token. No claim is read as a team yet."""
    return frozenset()
