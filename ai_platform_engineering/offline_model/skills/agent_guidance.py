"""Skills of an agent: it reads a skill, does the steps with its own tools, and names the skill in its answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ai_platform_engineering.offline_model import answers
from ai_platform_engineering.offline_model.messages.conversation import ParsedConversation, ToolUse
from ai_platform_engineering.offline_model.messages.tools import READ_SKILL_TOOL, BoundTool, ModelReply
from ai_platform_engineering.offline_model.planning.references import without_context
from ai_platform_engineering.offline_model.skills import skill_run
from ai_platform_engineering.offline_model.skills.matching import described_skill, described_skills, named_skill
from ai_platform_engineering.offline_model.skills.steps import SkillProcedure, SkillStep, procedure


@dataclass(frozen=True, slots=True)
class SkillGuidance:
    """A request rewritten by a skill: the skill's steps take the place of the question."""

    conversation: ParsedConversation
    skill: ToolUse
    procedure: SkillProcedure
    proposed: tuple[SkillStep, ...] = ()
    """Steps that are only proposed."""

    def reported(self, reply: ModelReply) -> ModelReply:
        """The final reply with the name of the skill. A reply with tool calls is unchanged."""
        if reply.calls:
            return reply
        if not self.procedure.steps:
            quoted = skill_run.quoted(self.skill, self.procedure)
            paragraphs = [quoted] if answers.could_not_help(reply.text) else [reply.text, quoted]
            return ModelReply("\n\n".join(paragraphs))
        left = skill_run.proposals(self.proposed)
        opening = f"I followed the skill `{skill_run.name_of(self.skill)}`."
        return replace(reply, text="\n\n".join(filter(None, [opening, reply.text, left])))


def guidance_for(
    conversation: ParsedConversation, tools: tuple[BoundTool, ...], known: frozenset[str]
) -> SkillGuidance | ModelReply | None:
    """The next action for a request that asks for a skill: read it, ask for its subject, or do its steps. None for any
    other request."""
    if not any(tool.name == READ_SKILL_TOOL for tool in tools):
        return None
    uses = conversation.current.uses
    question = without_context(conversation.current.question)
    skills = described_skills(conversation.instructions)
    if (skill := skill_run.last_read(uses)) is None:
        if uses:
            return None
        wanted = named_skill(question, skills, known) or described_skill(question, skills, known)
        return skill_run.read_skill(wanted) if wanted else None
    if skill.failed:
        return None
    read = procedure(skill.result or "")
    if question_reply := skill_run.question_for(skill, read, uses, tools):
        return (
            question_reply if question_reply.calls else replace(question_reply, not_done="the skill lacks its subject")
        )
    is_named = named_skill(question, skills, known) is not None
    proposed = read.proposed(is_named=is_named)
    steps = [step.text.rstrip(" .;") for step in read.steps if step not in proposed]
    current = replace(conversation.current, question=". ".join(steps)) if steps else conversation.current
    return SkillGuidance(replace(conversation, current=current), skill, read, proposed)
