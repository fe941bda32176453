"""Tags of a skill: `metadata.tags` in its front matter, comma-separated."""

from __future__ import annotations

from ai_platform_engineering.skills_middleware.skill import Skill


def tags_of(skill: Skill) -> tuple[str, ...]:
    words = (word.strip().lower() for word in skill.metadata.get("tags", "").split(","))
    return tuple(dict.fromkeys(word for word in words if word))
