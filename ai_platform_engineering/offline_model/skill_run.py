"""Working through a skill: read it, ask for its subject where that is missing, do its steps, report on each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ai_platform_engineering.offline_model import answers, consultation, language
from ai_platform_engineering.offline_model.answers import Part
from ai_platform_engineering.offline_model.citations import Bibliography
from ai_platform_engineering.offline_model.conversation import Conversation, Use
from ai_platform_engineering.offline_model.inquiries import Inquiry, inquiry
from ai_platform_engineering.offline_model.intents import Intent
from ai_platform_engineering.offline_model.knowledge import MAX_INQUIRIES, has_knowledge_base
from ai_platform_engineering.offline_model.people import cancellation, rejection
from ai_platform_engineering.offline_model.planning import LOOK_UP, MAX_DELEGATIONS, plan_of
from ai_platform_engineering.offline_model.references import CONTEXT
from ai_platform_engineering.offline_model.routing import fitting
from ai_platform_engineering.offline_model.skill_steps import KNOWLEDGE_TAG, Procedure, SkillStep, procedure
from ai_platform_engineering.offline_model.skills import DescribedSkill, WantedSkill, other_orders
from ai_platform_engineering.offline_model.tools import (
    DELEGATION_TOOL,
    FORM_TOOL,
    PLAN_TOOL,
    READ_SKILL_TOOL,
    Agent,
    Call,
    Reply,
    Tool,
)

_MAX_QUOTED: Final = 4000


@dataclass(frozen=True, slots=True)
class _Work:
    """A step that is done, as a delegation or as a search."""

    step: SkillStep
    item: Intent | Inquiry

    @property
    def planned(self) -> Intent | Inquiry:
        """The work as a plan shows it, without its details."""
        return replace(self.item, request=self.step.title) if isinstance(self.item, Intent) else self.item


@dataclass(frozen=True, slots=True)
class _Assignment:
    """The steps of a skill: those that are done, those that cannot be, and those that are left to a person."""

    work: tuple[_Work, ...]
    undone: tuple[tuple[SkillStep, str], ...]
    proposed: tuple[SkillStep, ...]

    @property
    def intents(self) -> list[Intent]:
        return [work.item for work in self.work if isinstance(work.item, Intent)]

    @property
    def inquiries(self) -> list[Inquiry]:
        return [work.item for work in self.work if isinstance(work.item, Inquiry)]


def last_read(uses: Sequence[Use]) -> Use | None:
    """The last skill that was read, rather than one of its files."""
    read = [use for use in uses if use.name == READ_SKILL_TOOL and not use.arguments.get("file")]
    return next((use for use in reversed(read) if use.result is not None), None)


def read(wanted: WantedSkill) -> Reply:
    arguments = {"name": wanted.name} | ({"arguments": wanted.arguments} if wanted.arguments else {})
    return Reply(f"I'll read the skill `{wanted.name}`{_for(wanted.arguments)}.", (Call(READ_SKILL_TOOL, arguments),))


def follow(
    conversation: Conversation, skill: Use, tools: Sequence[Tool], agents: tuple[Agent, ...], *, is_named: bool
) -> Reply:
    """The next turn of the supervisor after a skill was read. `is_named`: a person called the skill by its name."""
    if skill.failed:
        return Reply(answers.signed((skill.result or "").strip() or f"The skill `{name_of(skill)}` could not be read."))
    known = procedure(skill.result or "")
    if not known.steps:
        return Reply(answers.signed(quoted(skill, known)))
    if reply := question_for(skill, known, conversation.current.uses, tools):
        return reply if reply.calls else Reply(answers.signed(reply.text))
    assigned = _assigned(known, tools, agents, is_named=is_named)
    return _next(conversation, skill, assigned, tools)


def question_for(skill: Use, known: Procedure, uses: Sequence[Use], tools: Sequence[Tool]) -> Reply | None:
    """What is asked where a skill lacks its subject: a form where there are forms, else a sentence. A subject that was
    given is passed on by reading the skill once more."""
    if skill.arguments.get("arguments") or not known.needs_arguments:
        return None
    name = name_of(skill)
    form = next((use for use in reversed(uses) if use.name == FORM_TOOL), None)
    if form is None and any(tool.name == FORM_TOOL for tool in tools):
        field = {
            "name": known.subject,
            "type": "text",
            "description": f"What the skill {name} is to be used for",
            "required": True,
        }
        title = language.spaced(name).capitalize()
        described = f"I need the {known.subject} before I can follow the skill `{name}`."
        return Reply(calls=(Call(FORM_TOOL, {"title": title, "description": described, "fields": [field]}),))
    if form is not None:
        if (reason := cancellation(form)) is not None:
            return Reply(answers.canceled(language.spaced(name).capitalize(), reason))
        if given := _submitted(form, known.subject):
            return read(WantedSkill(name, given))
    return Reply(
        f"The skill `{name}` needs the {known.subject} that it is to be used for; the request does not say. "
        f"Ask for example: `/{name} <{known.subject}>`."
    )


def name_of(skill: Use) -> str:
    return str(skill.arguments.get("name", "")).strip().removeprefix("/")


def quoted(skill: Use, known: Procedure) -> str:
    """A skill without steps, as information for people."""
    text = known.text if len(known.text) <= _MAX_QUOTED else f"{known.text[:_MAX_QUOTED].rsplit(chr(10), 1)[0]}\n\n…"
    return f"The skill `{name_of(skill)}` has no numbered steps to work through. It says:\n\n{text}"


def overview(skills: Sequence[DescribedSkill], *, is_search: bool) -> str:
    """The skills there are, or those that were found."""
    if not skills:
        return "No skill fits these words." if is_search else "There are no skills."
    lines = [f"- `/{skill.name}`: {skill.description}" for skill in skills]
    return "\n".join(["These skills fit:" if is_search else "The skills that I can follow:", "", *lines])


def proposals(steps: Sequence[SkillStep]) -> str:
    """The steps that are left to a person."""
    lines = [f"- {_tagged(step)}{f' ({step.condition})' if step.condition else ''}" for step in steps]
    return "\n".join(["**Next actions** (none of them was done):", "", *lines]) if lines else ""


def _submitted(form: Use, field: str) -> str:
    try:
        given = json.loads(form.result or "")
    except (ValueError, RecursionError):
        return ""
    return str(given.get(field) or "").strip() if isinstance(given, dict) and not form.failed else ""


def _for(arguments: str) -> str:
    return f" for {arguments}" if arguments else ""


def _assigned(known: Procedure, tools: Sequence[Tool], agents: tuple[Agent, ...], *, is_named: bool) -> _Assignment:
    work: list[_Work] = []
    undone: list[tuple[SkillStep, str]] = []
    searches = has_knowledge_base(tools)
    proposed = known.proposed(is_named=is_named)
    for step in known.steps:
        if step in proposed:
            continue
        item = _looked_up(step, searches=searches) if _is_knowledge(step) else _delegated_to(step, agents)
        if isinstance(item, str):
            undone.append((step, item))
        elif sum(isinstance(other.item, type(item)) for other in work) >= _most(item):
            undone.append((step, f"one request has at most {_most(item)} of this kind"))
        else:
            work.append(_Work(step, item))
    return _Assignment(tuple(work), tuple(undone), proposed)


def _most(item: Intent | Inquiry) -> int:
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
    """The delegation of a step, or why it cannot be made."""
    if step.tag:
        wanted = _plain(step.tag)
        agent = next((agent for agent in agents if _plain(agent.name) == wanted), None)
        if agent is None:
            return f"the agent {step.tag} is not enabled"
    else:
        able = fitting(step.text, agents)
        if not able:
            return "no agent fits"
        agent = next((agent for agent in able if agent.no_tools is None), able[0])
    return f"{agent.title} has no tools: {agent.no_tools}" if agent.no_tools else Intent(agent, step.text)


def _plain(name: str) -> str:
    return "".join(language.words(name.replace("_", " ")))


def _next(conversation: Conversation, skill: Use, assigned: _Assignment, tools: Sequence[Tool]) -> Reply:
    uses = conversation.current.uses
    can_plan = any(tool.name == PLAN_TOOL for tool in tools)
    if can_plan and assigned.work and not any(use.name == PLAN_TOOL for use in uses):
        call = plan_of(_title(skill), [work.planned for work in assigned.work])
        return Reply(_announcement(skill, assigned), (call,))
    asked = consultation.next_calls(assigned.inquiries, uses)
    made = [use for use in uses if use.name == DELEGATION_TOOL]
    delegated = () if made else tuple(_delegation(item, skill, conversation) for item in assigned.intents)
    if asked or delegated:
        said = "" if delegated else consultation.narration(asked, assigned.inquiries, uses)
        return Reply(said, (*asked, *delegated))
    return Reply(answers.signed(_report(conversation, skill, assigned)))


def _title(skill: Use) -> str:
    return f"{language.spaced(name_of(skill))}{_for(str(skill.arguments.get('arguments', '')))}"


def _announcement(skill: Use, assigned: _Assignment) -> str:
    who = list(dict.fromkeys(item.agent.title for item in assigned.intents))
    asking = f"ask {answers.enumeration(who)}" if who else ""
    searching = "search the knowledge base" if assigned.inquiries else ""
    done = " and ".join(filter(None, [asking, searching]))
    subject = _for(str(skill.arguments.get("arguments", "")))
    return f"I'll follow the skill `{name_of(skill)}`{subject}: {done}, then put the results together."


def _delegation(item: Intent, skill: Use, conversation: Conversation) -> Call:
    context = f"a step of the skill {name_of(skill)}, for the request “{conversation.current.question.strip()}”"
    return Call(
        DELEGATION_TOOL, {"description": f"{item.request}{CONTEXT}{context}.", "subagent_type": item.agent.name}
    )


def _report(conversation: Conversation, skill: Use, assigned: _Assignment) -> str:
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
            part = _part(work.item, use) if use is not None else None
        else:
            part = found.get(work.item.question.rstrip(" ?.!"))
        text = answers.told(part) if part is not None else "Nothing came of this step."
        heading = f"{work.step.tag}: {work.step.title}" if work.step.tag else work.step.title
        sections.append(f"### {heading}\n\n{text}")
    others = () if question.startswith("/") else other_orders(question)
    notes = [
        _not_done(assigned.undone, others),
        proposals(assigned.proposed),
        *consultation.unread_notes(uses),
        bibliography.listed() or "",
    ]
    opening = f"I followed the skill `{name_of(skill)}`{_for(str(skill.arguments.get('arguments', '')))}."
    return "\n\n".join([opening, *sections, *filter(None, notes)])


def _part(item: Intent, use: Use) -> Part:
    return Part(item.agent.title, item.request, (use.result or "").strip(), use.failed, rejection(use))


def _tagged(step: SkillStep) -> str:
    text = step.text.rstrip(" .;")
    return f"**{step.tag}**: {text}" if step.tag else text


def _not_done(undone: Sequence[tuple[SkillStep, str]], others: Sequence[str]) -> str:
    """The steps that were not done, and what was ordered beside the skill."""
    lines = [f"- {_tagged(step)} ({reason})" for step, reason in undone]
    lines += [f"- {other.rstrip(' .;!')} (not a step of the skill; ask for it on its own)" for other in others]
    return "\n".join(["**Not done:**", "", *lines]) if lines else ""
