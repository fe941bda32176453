"""Who may see a skill, and who may change it."""

from __future__ import annotations

from ai_platform_engineering.skills_middleware.skill import Access
from ai_platform_engineering.utils.a2a_common.caller import Caller


def may_see(access: Access, caller: Caller) -> bool:
    match access.visibility:
        case "global":
            return True
        case "team":
            return access.holder in caller.teams
        case "personal":
            return caller.subject is not None and access.holder == caller.subject
