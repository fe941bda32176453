"""Who may see a skill."""

from __future__ import annotations

from ai_platform_engineering.skills_middleware.skill import GLOBAL, Access
from ai_platform_engineering.utils.a2a_common.caller import Caller


def visible_accesses(caller: Caller) -> frozenset[Access]:
    """Every access that a skill can have for `caller` to see it."""
    personal = {Access("personal", caller.subject)} if caller.subject is not None else set()
    return frozenset({GLOBAL, *personal, *(Access("team", team) for team in caller.teams)})


def may_see(access: Access, caller: Caller) -> bool:
    return access in visible_accesses(caller)
