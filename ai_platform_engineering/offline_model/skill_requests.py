"""Requests that the supervisor serves with a skill: which one it reads, and the turns until it is read."""

from __future__ import annotations

from collections.abc import Sequence

from ai_platform_engineering.offline_model import answers, skill_run
from ai_platform_engineering.offline_model.conversation import Conversation, Use
from ai_platform_engineering.offline_model.routing import vocabulary
from ai_platform_engineering.offline_model.skills import (
    DescribedSkill,
    asks_about_skills,
    asks_for_a_skill,
    described_skill,
    described_skills,
    listed_skills,
    named_skill,
    search_words,
    speaks_of_skills,
)
from ai_platform_engineering.offline_model.tools import (
    READ_SKILL_TOOL,
    SEARCH_SKILLS_TOOL,
    Agent,
    Call,
    Reply,
    Tool,
)


def by_name(
    conversation: Conversation, question: str, tools: Sequence[Tool], agents: tuple[Agent, ...]
) -> Reply | None:
    """The reply to a request that calls a skill by its name or speaks of skills, and every turn after a skill was read.

    `question` is the request with what it points at put in its place.
    """
    uses = conversation.current.uses
    if not _can_read(tools):
        return None
    if (skill := skill_run.last_read(uses)) is not None:
        called = named_skill(question, (DescribedSkill(skill_run.name_of(skill), ""),), vocabulary(agents))
        return skill_run.follow(conversation, skill, tools, agents, is_named=called is not None)
    searched = next((use for use in reversed(uses) if use.name == SEARCH_SKILLS_TOOL), None)
    if searched is not None:
        return _chosen(question, listed_skills(searched.result or ""), agents, searched)
    if uses or not speaks_of_skills(question):
        return None
    if any(tool.name == SEARCH_SKILLS_TOOL for tool in tools):
        return Reply("I'll look for a skill.", (Call(SEARCH_SKILLS_TOOL, {"query": search_words(question)}),))
    return _chosen(question, described_skills(conversation.instructions), agents)


def by_description(
    conversation: Conversation, question: str, tools: Sequence[Tool], agents: tuple[Agent, ...]
) -> Reply | None:
    """The reply to a request for the whole procedure of a skill."""
    if conversation.current.uses or not _can_read(tools):
        return None
    wanted = described_skill(question, described_skills(conversation.instructions), vocabulary(agents), agents)
    return skill_run.read(wanted) if wanted else None


def _can_read(tools: Sequence[Tool]) -> bool:
    return any(tool.name == READ_SKILL_TOOL for tool in tools)


def _chosen(
    question: str, skills: tuple[DescribedSkill, ...], agents: tuple[Agent, ...], searched: Use | None = None
) -> Reply | None:
    """Read the skill that is named, or list those there are where the request wants no more, or names none of them."""
    if wanted := named_skill(question, skills, vocabulary(agents)):
        return skill_run.read(wanted)
    if searched is None and not asks_about_skills(question) and not asks_for_a_skill(question):
        return None
    return Reply(answers.signed(skill_run.overview(skills, is_search=searched is not None)))
