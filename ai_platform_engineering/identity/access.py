"""Who may see and use a conversation: its owner, the groups it is shared with, the bot that began it, and admins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.identity.principal import Principal


@dataclass(frozen=True, slots=True)
class ConversationAccess:
    """`owner` is the `Principal.owner` of the one who began it; empty if no authentication was required then. `via` is
    that of the bot that asked for the owner."""

    owner: str
    via: str | None = None
    groups: frozenset[str] = frozenset()

    def allows(self, principal: Principal) -> bool:
        return (
            sees_everything(principal)
            or self.owner == principal.owner
            or not self.groups.isdisjoint(principal.groups)
            or (self.via is not None and self.via == own_name(principal))
        )


UNOWNED: Final = ConversationAccess("")
"""A conversation that began without authentication."""


def may_share(access: ConversationAccess, principal: Principal) -> bool:
    """Whether the principal may share or delete the conversation. Members of a group that it is shared with may not."""
    return sees_everything(principal) or access.owner == principal.owner


def sees_everything(principal: Principal) -> bool:
    """Whether nothing is hidden from the principal. Where no authentication is required, everybody is the same."""
    return principal.verified_by == "anonymous" or principal.is_admin


def own_name(principal: Principal) -> str | None:
    """The name of a bot, which may follow what it has asked for its users. None for a user that a bot speaks for."""
    return principal.owner if principal.verified_by in {"key", "token"} else None
