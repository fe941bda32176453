"""The principal of a request: a verified identity, its groups and roles. It never comes from plain metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

VerifiedBy = Literal["anonymous", "key", "token", "statement"]
"""How the identity was verified: not at all, by a key, by an access token, or by the signed statement of a bot."""

Role = Literal["user", "bot", "admin"]
"""`user` asks and answers. `bot` may also state for which user it asks. `admin` sees and operates everything."""

KEY_SUBJECT: Final = "key"
"""The subject of the shared key. A named key has the subject `key:<name>`."""


@dataclass(frozen=True, slots=True)
class Principal:
    """`subject` is the `sub` claim of the token, the name of the key, or the user of the statement; None if the server
    requires no authentication.

    `via` is the `owner` name of the bot that made the statement.
    """

    verified_by: VerifiedBy = "anonymous"
    subject: str | None = None
    groups: frozenset[str] = frozenset()
    roles: frozenset[Role] = frozenset({"user"})
    via: str | None = None

    @classmethod
    def with_key(cls, name: str, role: Role) -> Self:
        """The holder of a named key."""
        return cls("key", f"{KEY_SUBJECT}:{name}", roles=frozenset({"user", role}))

    @property
    def owner(self) -> str:
        """The name under which this principal owns tasks and conversations. Empty if everybody is the same."""
        match self.verified_by:
            case "anonymous":
                return ""
            case "key":
                return self.subject or KEY_SUBJECT
            case verified_by:
                return f"{verified_by}:{self.subject or ''}"

    @property
    def is_admin(self) -> bool:
        return "admin" in self.roles

    @property
    def is_bot(self) -> bool:
        return "bot" in self.roles

    def facts(self) -> dict[str, Any]:
        """The principal as a JSON object."""
        return {
            "verified_by": self.verified_by,
            "subject": self.subject,
            "groups": sorted(self.groups),
            "roles": sorted(self.roles),
            "via": self.via,
        }

    def to_json(self) -> str:
        return json.dumps(self.facts())

    @classmethod
    def from_json(cls, stored: str | None) -> Self:
        """The principal that `to_json` has written; anonymous if none was."""
        return cls.read(json.loads(stored)) if stored else cls()

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """The principal of `facts`. Earlier versions wrote `kind` and `teams`."""
        if "kind" in facts:
            roles: frozenset[Role] = SHARED_KEY_ROLES if facts["kind"] == "key" else frozenset({"user"})
            return cls(facts["kind"], facts["subject"], frozenset(facts["teams"]), roles)
        return cls(
            facts["verified_by"],
            facts["subject"],
            frozenset(facts["groups"]),
            frozenset(facts["roles"]),
            facts["via"],
        )


SHARED_KEY_ROLES: Final[frozenset[Role]] = frozenset({"user", "bot", "admin"})

ANONYMOUS: Final = Principal()
KEY_HOLDER: Final = Principal("key", KEY_SUBJECT, roles=SHARED_KEY_ROLES)

CALLER: Final = "caller"
"""The key of the caller's principal in the state of an ASGI scope and of an A2A call. Only the server writes these."""


def caller_in(state: Mapping[str, Any] | None) -> Principal:
    """The principal in `state`; anonymous if the server verifies none."""
    found = (state or {}).get(CALLER)
    return found if isinstance(found, Principal) else ANONYMOUS
