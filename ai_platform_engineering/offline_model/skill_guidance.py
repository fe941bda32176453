"""Skills of an agent: the agent reads one, does its steps with its own tools, and says which skill it followed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ai_platform_engineering.offline_model import answers, skill_run
from ai_platform_engineering.offline_model.conversation import Conversation, Use
from ai_platform_engineering.offline_model.references import without_context
from ai_platform_engineering.offline_model.skill_steps import Procedure, SkillStep, procedure
from ai_platform_engineering.offline_model.skills import described_skill, described_skills, named_skill
from ai_platform_engineering.offline_model.tools import READ_SKILL_TOOL, Reply, Tool


@dataclass(frozen=True, slots=True)
class Guidance:
    """A request as a skill puts it."""

    conversation: Conversation
    skill: Use
    procedure: Procedure
    proposed: tuple[SkillStep, ...] = ()
    """Steps that are left to a person."""

    def reported(self, reply: Reply) -> Reply:
        """The reply, with the skill that was followed, once the work is done."""
        if reply.calls:
            return reply
        if not self.procedure.steps:
            quoted = skill_run.quoted(self.skill, self.procedure)
            told = [quoted] if answers.could_not_help(reply.text) else [reply.text, quoted]
            return Reply("\n\n".join(told))
        left = skill_run.proposals(self.proposed)
        opening = f"I followed the skill `{skill_run.name_of(self.skill)}`."
        return replace(reply, text="\n\n".join(filter(None, [opening, reply.text, left])))


def of_agent(conversation: Conversation, tools: tuple[Tool, ...], known: frozenset[str]) -> Guidance | Reply | None:
    """How an agent goes on with a request that is for a skill: it reads the skill, asks for its subject, or has its
    steps as the request. None for every other request."""
    if not any(tool.name == READ_SKILL_TOOL for tool in tools):
        return None
    uses = conversation.current.uses
    question = without_context(conversation.current.question)
    skills = described_skills(conversation.instructions)
    if (skill := skill_run.last_read(uses)) is None:
        if uses:
            return None
        wanted = named_skill(question, skills, known) or described_skill(question, skills, known)
        return skill_run.read(wanted) if wanted else None
    if skill.failed:
        return None
    read = procedure(skill.result or "")
    if asked := skill_run.question_for(skill, read, uses, tools):
        return asked if asked.calls else replace(asked, not_done="the skill lacks its subject")
    is_named = named_skill(question, skills, known) is not None
    proposed = read.proposed(is_named=is_named)
    steps = [step.text.rstrip(" .;") for step in read.steps if step not in proposed]
    current = replace(conversation.current, question=". ".join(steps)) if steps else conversation.current
    return Guidance(replace(conversation, current=current), skill, read, proposed)
