"""The verified identity of a caller: what the key or the access token of a request proves, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

CallerKind = Literal["anonymous", "key", "token"]

KEY_SUBJECT: Final = "key"
"""The subject of every caller that sends the shared key."""


@dataclass(frozen=True, slots=True)
class Caller:
    """`subject` is the token's `sub` claim, or `key` for the shared key; None where the server asks for neither."""

    kind: CallerKind = "anonymous"
    subject: str | None = None
    teams: frozenset[str] = frozenset()

    @classmethod
    def with_token(cls, claims: Mapping[str, Any]) -> Self:
        """The caller that a verified access token stands for."""
        subject = claims.get("sub")
        # A person whose name at the issuer is `key` must not be taken for the holder of the key.
        is_usable = isinstance(subject, str) and subject not in {"", KEY_SUBJECT}
        return cls("token", subject if is_usable else None, verified_teams(claims))


ANONYMOUS: Final = Caller()
KEY_HOLDER: Final = Caller("key", KEY_SUBJECT)

CALLER: Final = "caller"
"""The name of the caller in the state of an ASGI scope and of an A2A call: both are filled by the server alone."""


def caller_in(state: Mapping[str, Any] | None) -> Caller:
    """The caller that the server has put into `state`; anonymous where it verifies nothing."""
    found = (state or {}).get(CALLER)
    return found if isinstance(found, Caller) else ANONYMOUS


def verified_teams(_claims: Mapping[str, Any]) -> frozenset[str]:
    """The teams that a verified access token proves. No claim is taken for a team yet."""
    return frozenset()
