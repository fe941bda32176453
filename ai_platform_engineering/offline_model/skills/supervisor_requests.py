"""Requests that the supervisor serves with a skill: choose the skill, and the turns until it is read."""

from __future__ import annotations

from collections.abc import Sequence

from ai_platform_engineering.offline_model import answers
from ai_platform_engineering.offline_model.messages.conversation import ParsedConversation, ToolUse
from ai_platform_engineering.offline_model.messages.tools import (
    READ_SKILL_TOOL,
    SEARCH_SKILLS_TOOL,
    Agent,
    BoundTool,
    ModelReply,
    PlannedCall,
)
from ai_platform_engineering.offline_model.planning.routing import vocabulary
from ai_platform_engineering.offline_model.skills import skill_run
from ai_platform_engineering.offline_model.skills.matching import (
    DescribedSkill,
    asks_about_skills,
    asks_for_a_skill,
    described_skill,
    described_skills,
    listed_skills,
    mentions_skills,
    named_skill,
    search_words,
)


def by_name(
    conversation: ParsedConversation, question: str, tools: Sequence[BoundTool], agents: tuple[Agent, ...]
) -> ModelReply | None:
    """The reply to a request that names a skill or asks about skills, and every reply after a skill was read.

    `question` is the request with its references resolved.
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
    if uses or not mentions_skills(question):
        return None
    if any(tool.name == SEARCH_SKILLS_TOOL for tool in tools):
        return ModelReply(
            "I'll look for a skill.", (PlannedCall(SEARCH_SKILLS_TOOL, {"query": search_words(question)}),)
        )
    return _chosen(question, described_skills(conversation.instructions), agents)


def by_description(
    conversation: ParsedConversation, question: str, tools: Sequence[BoundTool], agents: tuple[Agent, ...]
) -> ModelReply | None:
    """The reply to a request that matches the description of a skill."""
    if conversation.current.uses or not _can_read(tools):
        return None
    wanted = described_skill(question, described_skills(conversation.instructions), vocabulary(agents), agents)
    return skill_run.read_skill(wanted) if wanted else None


def _can_read(tools: Sequence[BoundTool]) -> bool:
    return any(tool.name == READ_SKILL_TOOL for tool in tools)


def _chosen(
    question: str, skills: tuple[DescribedSkill, ...], agents: tuple[Agent, ...], searched: ToolUse | None = None
) -> ModelReply | None:
    """Read the named skill. List the skills if the request asks for them, or names an unknown one."""
    if wanted := named_skill(question, skills, vocabulary(agents)):
        return skill_run.read_skill(wanted)
    if searched is None and not asks_about_skills(question) and not asks_for_a_skill(question):
        return None
    return ModelReply(answers.with_signature(skill_run.overview(skills, is_search=searched is not None)))
