"""The principal of a verified token: its subject, its groups and its roles, from the claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ai_platform_engineering.identity.principal import KEY_SUBJECT, Principal, Role
from ai_platform_engineering.settings import Settings

MAX_SUBJECT_LENGTH: Final = 255
"""The limit of OpenID Connect."""
MAX_GROUPS: Final = 500
MAX_GROUP_LENGTH: Final = 200


class UnusableClaimsError(ValueError):
    """The claims name no principal; the text is a sentence for the sender of the token."""


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """Where a token has the groups of a person, and which of them make an admin."""

    groups_claim: str = "groups"
    admin_groups: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: Settings) -> ClaimRules:
        admins = frozenset(filter(None, map(str.strip, settings.a2a_oauth_admin_groups.split(","))))
        return cls(settings.a2a_oauth_groups_claim, admins)

    def principal(self, claims: Mapping[str, Any]) -> Principal:
        """Raises `UnusableClaimsError` if the token has no usable subject."""
        groups = groups_in(claims, self.groups_claim)
        roles: frozenset[Role] = frozenset({"user"} if self.admin_groups.isdisjoint(groups) else {"user", "admin"})
        return Principal("token", _subject(claims), groups, roles)


def groups_in(claims: Mapping[str, Any], path: str) -> frozenset[str]:
    """The groups at `path`: a list or a text with spaces. Unusable and excessive entries are left out."""
    found = claim_at(claims, path)
    entries: Iterable[object] = found.split() if isinstance(found, str) else found if isinstance(found, list) else ()
    usable = [name for name in entries if isinstance(name, str) and 0 < len(name) <= MAX_GROUP_LENGTH]
    return frozenset(usable[:MAX_GROUPS])


def claim_at(claims: Mapping[str, Any], path: str) -> object:
    """The claim of that name, which may contain dots, or the one to which the parts of `path` lead. None if missing."""
    if path in claims:
        return claims[path]
    found: object = claims
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _subject(claims: Mapping[str, Any]) -> str:
    match claims.get("sub"):
        case str(subject) if _is_usable(subject):
            return subject
        case _:
            raise UnusableClaimsError(
                "The token has no usable subject (the claim sub), so nothing can belong to its sender."
            )


def _is_usable(subject: str) -> bool:
    # A person whose name at the issuer is `key` must not be mistaken for the holder of the shared key.
    is_key = subject.partition(":")[0] == KEY_SUBJECT
    return bool(subject.strip()) and len(subject) <= MAX_SUBJECT_LENGTH and subject.isprintable() and not is_key
