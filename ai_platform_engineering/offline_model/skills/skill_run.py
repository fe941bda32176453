"""Work through a skill: read it, ask for a missing subject, do its steps, report on each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ai_platform_engineering.offline_model import answers
from ai_platform_engineering.offline_model.answers import AnswerPart
from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.knowledge import consultation
from ai_platform_engineering.offline_model.knowledge.citations import Bibliography
from ai_platform_engineering.offline_model.messages.conversation import (
    ParsedConversation,
    ToolUse,
    cancellation_reason,
    rejection_reason,
)
from ai_platform_engineering.offline_model.messages.tools import (
    DELEGATION_TOOL,
    FORM_TOOL,
    PLAN_TOOL,
    READ_SKILL_TOOL,
    Agent,
    BoundTool,
    ModelReply,
    PlannedCall,
)
from ai_platform_engineering.offline_model.planning.inquiries import Inquiry, inquiry
from ai_platform_engineering.offline_model.planning.intents import Intent
from ai_platform_engineering.offline_model.planning.plan import LOOK_UP, MAX_DELEGATIONS, plan_of
from ai_platform_engineering.offline_model.planning.references import CONTEXT
from ai_platform_engineering.offline_model.planning.request_split import MAX_INQUIRIES, has_knowledge_base
from ai_platform_engineering.offline_model.planning.routing import fitting
from ai_platform_engineering.offline_model.results.rendering import enumeration
from ai_platform_engineering.offline_model.skills.matching import DescribedSkill, SkillRequest, further_requests
from ai_platform_engineering.offline_model.skills.steps import KNOWLEDGE_TAG, SkillProcedure, SkillStep, procedure

_MAX_QUOTED: Final = 4000


@dataclass(frozen=True, slots=True)
class _StepWork:
    """A step to do, as a delegation or as a search."""

    step: SkillStep
    item: Intent | Inquiry

    @property
    def planned(self) -> Intent | Inquiry:
        """The work as shown in the plan, without details."""
        return replace(self.item, request=self.step.title) if isinstance(self.item, Intent) else self.item


@dataclass(frozen=True, slots=True)
class _StepAssignments:
    """The steps of a skill: those to do, those that cannot be done (with the reason), and those only proposed."""

    work: tuple[_StepWork, ...]
    undone: tuple[tuple[SkillStep, str], ...]
    proposed: tuple[SkillStep, ...]

    @property
    def intents(self) -> list[Intent]:
        return [work.item for work in self.work if isinstance(work.item, Intent)]

    @property
    def inquiries(self) -> list[Inquiry]:
        return [work.item for work in self.work if isinstance(work.item, Inquiry)]


def last_read(uses: Sequence[ToolUse]) -> ToolUse | None:
    """The last skill that was read. Reads of a skill's files do not count."""
    reads = [use for use in uses if use.name == READ_SKILL_TOOL and not use.arguments.get("file")]
    return next((use for use in reversed(reads) if use.result is not None), None)


def read_skill(wanted: SkillRequest) -> ModelReply:
    arguments = {"name": wanted.name} | ({"arguments": wanted.arguments} if wanted.arguments else {})
    return ModelReply(
        f"I'll read the skill `{wanted.name}`{_for(wanted.arguments)}.", (PlannedCall(READ_SKILL_TOOL, arguments),)
    )


def follow(
    conversation: ParsedConversation,
    skill: ToolUse,
    tools: Sequence[BoundTool],
    agents: tuple[Agent, ...],
    *,
    is_named: bool,
) -> ModelReply:
    """The next reply of the supervisor after a skill was read. `is_named`: the request named the skill."""
    if skill.failed:
        return ModelReply(
            answers.with_signature((skill.result or "").strip() or f"The skill `{name_of(skill)}` could not be read.")
        )
    skill_procedure = procedure(skill.result or "")
    if not skill_procedure.steps:
        return ModelReply(answers.with_signature(quoted(skill, skill_procedure)))
    if reply := question_for(skill, skill_procedure, conversation.current.uses, tools):
        return reply if reply.calls else ModelReply(answers.with_signature(reply.text))
    assigned = _assigned(skill_procedure, tools, agents, is_named=is_named)
    return _next(conversation, skill, assigned, tools)


def question_for(
    skill: ToolUse, skill_procedure: SkillProcedure, uses: Sequence[ToolUse], tools: Sequence[BoundTool]
) -> ModelReply | None:
    """The question for the missing subject of a skill: a form if forms are available, else a sentence. Once the subject
    is submitted, the skill is read again with it."""
    if skill.arguments.get("arguments") or not skill_procedure.needs_arguments:
        return None
    name = name_of(skill)
    form = next((use for use in reversed(uses) if use.name == FORM_TOOL), None)
    if form is None and any(tool.name == FORM_TOOL for tool in tools):
        field = {
            "name": skill_procedure.subject,
            "type": "text",
            "description": f"What the skill {name} is to be used for",
            "required": True,
        }
        title = lexical.spaced(name).capitalize()
        described = f"I need the {skill_procedure.subject} before I can follow the skill `{name}`."
        return ModelReply(
            calls=(PlannedCall(FORM_TOOL, {"title": title, "description": described, "fields": [field]}),)
        )
    if form is not None:
        if (reason := cancellation_reason(form)) is not None:
            return ModelReply(answers.cancellation_text(lexical.spaced(name).capitalize(), reason))
        if given := _submitted(form, skill_procedure.subject):
            return read_skill(SkillRequest(name, given))
    return ModelReply(
        f"The skill `{name}` needs the {skill_procedure.subject} that it is to be used for; the request does not say. "
        f"Ask for example: `/{name} <{skill_procedure.subject}>`."
    )


def name_of(skill: ToolUse) -> str:
    return str(skill.arguments.get("name", "")).strip().removeprefix("/")


def quoted(skill: ToolUse, skill_procedure: SkillProcedure) -> str:
    """The text of a skill without steps, as an answer."""
    text = (
        skill_procedure.text
        if len(skill_procedure.text) <= _MAX_QUOTED
        else f"{skill_procedure.text[:_MAX_QUOTED].rsplit(chr(10), 1)[0]}\n\n…"
    )
    return f"The skill `{name_of(skill)}` has no numbered steps to work through. It says:\n\n{text}"


def overview(skills: Sequence[DescribedSkill], *, is_search: bool) -> str:
    """A list of all skills, or of those that a search found."""
    if not skills:
        return "No skill fits these words." if is_search else "There are no skills."
    lines = [f"- `/{skill.name}`: {skill.description}" for skill in skills]
    return "\n".join(["These skills fit:" if is_search else "The skills that I can follow:", "", *lines])


def proposals(steps: Sequence[SkillStep]) -> str:
    """The steps that are only proposed, as Markdown."""
    lines = [f"- {_tagged(step)}{f' ({step.condition})' if step.condition else ''}" for step in steps]
    return "\n".join(["**Next actions** (none of them was done):", "", *lines]) if lines else ""


def _submitted(form: ToolUse, field: str) -> str:
    try:
        given = json.loads(form.result or "")
    except (ValueError, RecursionError):
        return ""
    return str(given.get(field) or "").strip() if isinstance(given, dict) and not form.failed else ""


def _for(arguments: str) -> str:
    return f" for {arguments}" if arguments else ""


def _assigned(
    skill_procedure: SkillProcedure, tools: Sequence[BoundTool], agents: tuple[Agent, ...], *, is_named: bool
) -> _StepAssignments:
    work: list[_StepWork] = []
    undone: list[tuple[SkillStep, str]] = []
    searches = has_knowledge_base(tools)
    proposed = skill_procedure.proposed(is_named=is_named)
    for step in skill_procedure.steps:
        if step in proposed:
            continue
        item = _looked_up(step, searches=searches) if _is_knowledge(step) else _delegated_to(step, agents)
        if isinstance(item, str):
            undone.append((step, item))
        elif sum(isinstance(other.item, type(item)) for other in work) >= _max_of_kind(item):
            undone.append((step, f"one request has at most {_max_of_kind(item)} of this kind"))
        else:
            work.append(_StepWork(step, item))
    return _StepAssignments(tuple(work), tuple(undone), proposed)


def _max_of_kind(item: Intent | Inquiry) -> int:
    return MAX_DELEGATIONS if isinstance(item, Intent) else MAX_INQUIRIES


def _is_knowledge(step: SkillStep) -> bool:
    return step.tag.lower().replace("-", " ") == KNOWLEDGE_TAG


def _looked_up(step: SkillStep, *, searches: bool) -> Inquiry | str:
    if not searches:
        return "no knowledge base is connected"
    about = step.text.rstrip(" .?!")
    verb, _, rest = about.partition(" for ")
    wanted = rest if rest and verb.lower() in {"search", "look", "search the knowledge base"} else about
    return replace(inquiry(f"{LOOK_UP} {wanted}"), question=wanted)


def _delegated_to(step: SkillStep, agents: tuple[Agent, ...]) -> Intent | str:
    """The delegation of a step, or the reason why it is impossible."""
    if step.tag:
        wanted = _plain(step.tag)
        agent = next((agent for agent in agents if _plain(agent.name) == wanted), None)
        if agent is None:
            return f"the agent {step.tag} is not enabled"
    else:
        candidates = fitting(step.text, agents)
        if not candidates:
            return "no agent fits"
        agent = next((agent for agent in candidates if agent.no_tools is None), candidates[0])
    return f"{agent.title} has no tools: {agent.no_tools}" if agent.no_tools else Intent(agent, step.text)


def _plain(name: str) -> str:
    return "".join(lexical.words(name.replace("_", " ")))


def _next(
    conversation: ParsedConversation, skill: ToolUse, assigned: _StepAssignments, tools: Sequence[BoundTool]
) -> ModelReply:
    uses = conversation.current.uses
    can_plan = any(tool.name == PLAN_TOOL for tool in tools)
    if can_plan and assigned.work and not any(use.name == PLAN_TOOL for use in uses):
        call = plan_of(_title(skill), [work.planned for work in assigned.work])
        return ModelReply(_announcement(skill, assigned), (call,))
    lookups = consultation.next_calls(assigned.inquiries, uses)
    delegations = [use for use in uses if use.name == DELEGATION_TOOL]
    delegated = () if delegations else tuple(_delegation(item, skill, conversation) for item in assigned.intents)
    if lookups or delegated:
        narration = "" if delegated else consultation.narration(lookups, assigned.inquiries, uses)
        return ModelReply(narration, (*lookups, *delegated))
    return ModelReply(answers.with_signature(_report(conversation, skill, assigned)))


def _title(skill: ToolUse) -> str:
    return f"{lexical.spaced(name_of(skill))}{_for(str(skill.arguments.get('arguments', '')))}"


def _announcement(skill: ToolUse, assigned: _StepAssignments) -> str:
    who = list(dict.fromkeys(item.agent.title for item in assigned.intents))
    asking = f"ask {enumeration(who)}" if who else ""
    searching = "search the knowledge base" if assigned.inquiries else ""
    done = " and ".join(filter(None, [asking, searching]))
    subject = _for(str(skill.arguments.get("arguments", "")))
    return f"I'll follow the skill `{name_of(skill)}`{subject}: {done}, then put the results together."


def _delegation(item: Intent, skill: ToolUse, conversation: ParsedConversation) -> PlannedCall:
    context = f"a step of the skill {name_of(skill)}, for the request “{conversation.current.question.strip()}”"
    return PlannedCall(
        DELEGATION_TOOL, {"description": f"{item.request}{CONTEXT}{context}.", "subagent_type": item.agent.name}
    )


def _report(conversation: ParsedConversation, skill: ToolUse, assigned: _StepAssignments) -> str:
    uses, question = conversation.current.uses, conversation.current.question.strip()
    results = iter([use for use in uses if use.name == DELEGATION_TOOL])
    bibliography = Bibliography()
    found = {
        part.request: part for part in consultation.parts(conversation.current, assigned.inquiries, (), bibliography)
    }
    sections = []
    for work in assigned.work:
        if isinstance(work.item, Intent):
            use = next(results, None)
            part = _answer_part(work.item, use) if use is not None else None
        else:
            part = found.get(work.item.question.rstrip(" ?.!"))
        text = answers.part_text(part) if part is not None else "This step gave no result."
        heading = f"{work.step.tag}: {work.step.title}" if work.step.tag else work.step.title
        sections.append(f"### {heading}\n\n{text}")
    others = () if question.startswith("/") else further_requests(question)
    notes = [
        _not_done(assigned.undone, others),
        proposals(assigned.proposed),
        *consultation.unread_notes(uses),
        bibliography.listed() or "",
    ]
    opening = f"I followed the skill `{name_of(skill)}`{_for(str(skill.arguments.get('arguments', '')))}."
    return "\n\n".join([opening, *sections, *filter(None, notes)])


def _answer_part(item: Intent, use: ToolUse) -> AnswerPart:
    return AnswerPart(item.agent.title, item.request, (use.result or "").strip(), use.failed, rejection_reason(use))


def _tagged(step: SkillStep) -> str:
    text = step.text.rstrip(" .;")
    return f"**{step.tag}**: {text}" if step.tag else text


def _not_done(undone: Sequence[tuple[SkillStep, str]], others: Sequence[str]) -> str:
    """The steps that were not done, and further requests that are not part of the skill."""
    lines = [f"- {_tagged(step)} ({reason})" for step, reason in undone]
    lines += [f"- {other.rstrip(' .;!')} (not a step of the skill; ask for it on its own)" for other in others]
    return "\n".join(["**Not done:**", "", *lines]) if lines else ""
