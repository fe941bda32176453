"""The supervisor's turn: understand the request, plan, delegate, and answer from what the agents returned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ai_platform_engineering.offline_model import answers, consultation, language, skill_requests, skill_run
from ai_platform_engineering.offline_model.agent import act as act_with_tools
from ai_platform_engineering.offline_model.answers import Part
from ai_platform_engineering.offline_model.citations import Bibliography
from ai_platform_engineering.offline_model.conversation import Conversation, Exchange, Use
from ai_platform_engineering.offline_model.intents import Intent, intents
from ai_platform_engineering.offline_model.knowledge import (
    Division,
    asks_for_datasources,
    divided,
    follow_up,
    has_knowledge_base,
)
from ai_platform_engineering.offline_model.people import cancellation, rejection
from ai_platform_engineering.offline_model.planning import (
    LOOK_UP,
    MAX_DELEGATIONS,
    announcement,
    plan_call,
)
from ai_platform_engineering.offline_model.prefilling import prefilled
from ai_platform_engineering.offline_model.references import CONTEXT, Before, refers_back, resolve, without_context
from ai_platform_engineering.offline_model.requests import Request, request_names
from ai_platform_engineering.offline_model.routing import vocabulary
from ai_platform_engineering.offline_model.sentences import leading_verb
from ai_platform_engineering.offline_model.tools import (
    BESIDE_KNOWLEDGE,
    DELEGATION_TOOL,
    FORM_TOOL,
    KNOWLEDGE_TOOLS,
    PLAN_TOOL,
    SEARCH_TOOL,
    SKILL_TOOLS,
    STEERING_TOOLS,
    WORKFLOW_TOOL,
    Agent,
    Call,
    Reply,
    Tool,
    described_agents,
)
from ai_platform_engineering.offline_model.workflows import Wanted, described_workflows, wanted_workflow
from ai_platform_engineering.utils.silence import NOTHING_TO_SAY

_UNDIVIDED = Division()
_SMALL_TALK = re.compile(
    r"^\W*(?:hi|hello|hey|good\s+(?:morning|afternoon|evening)|thanks?(?:\s+you)?|help|ping|test|yo|howdy|bye"
    r"|(?:so\s+)?what\s+(?:can|do|could)\s+you\s+do|who\s+are\s+you|how\s+can\s+you\s+help|what\s+are\s+your\s+\w+)\b"
    r"(?:\W+(?:there|all|everyone|please|me|for\s+me|with|very\s+much|a\s+lot|how\s+are\s+you))*\W*$",
    re.I,
)


def act(conversation: Conversation, tools: tuple[Tool, ...]) -> Reply:
    reply = _act(conversation, tools)
    return reply if reply.calls or not is_silent(conversation) else Reply(NOTHING_TO_SAY)


def is_silent(conversation: Conversation) -> bool:
    """Whether nothing is better than what could be said: silence was asked for, and nobody has given an answer."""
    return NOTHING_TO_SAY in conversation.instructions and not _has_answer(conversation.current)


def _has_answer(exchange: Exchange) -> bool:
    done = [use for use in exchange.uses if use.name not in KNOWLEDGE_TOOLS | SKILL_TOOLS | {PLAN_TOOL}]
    return any(map(_came_to_something, done)) or consultation.has_answer(exchange)


def _came_to_something(use: Use) -> bool:
    if rejection(use) is not None or cancellation(use) is not None:
        # Whoever was asked to approve something, or to fill in a form, waits to hear what became of it.
        return True
    return not use.failed and not answers.could_not_help(use.result or "")


def _act(conversation: Conversation, tools: tuple[Tool, ...]) -> Reply:
    agents = described_agents(next(tool.description for tool in tools if tool.name == DELEGATION_TOOL))
    question = conversation.current.question
    if reply := _without_agents(conversation, tools, agents):
        return reply
    division = _divided(conversation, tools, agents)
    planned = plan(conversation, agents, division.rest)
    if not planned and not division.inquiries and (own := _own_tools(tools, question)):
        return _with_own_tools(conversation, own, agents)
    ready = [item for item in planned if item.agent.no_tools is None][:MAX_DELEGATIONS]
    if not ready and not division.inquiries:
        return Reply(answers.signed(answers.refusal([item.agent for item in planned], agents)))
    uses = conversation.current.uses
    can_plan = any(tool.name == PLAN_TOOL for tool in tools)
    if can_plan and ready and not uses:
        return Reply(announcement(ready, question, division.inquiries), (plan_call(ready, question, division),))
    asked = consultation.next_calls(division.inquiries, uses)
    delegated = tuple(
        _delegation(item, conversation, len(ready) + len(division.inquiries))
        for item in _pending(ready, _delegated(uses))
    )
    if asked or delegated:
        said = consultation.narration(asked, division.inquiries, uses)
        if delegated and not uses:
            said = announcement(ready, question, division.inquiries)
        return Reply(said, (*asked, *delegated))
    return Reply(answers.signed(summary(conversation, planned, division, agents)))


def _divided(conversation: Conversation, tools: Sequence[Tool], agents: tuple[Agent, ...]) -> Division:
    """The request, divided into what the knowledge base is asked and what agents are for."""
    question = conversation.current.question.strip()
    if not has_knowledge_base(tools) or asks_for_datasources(question):
        return Division(rest=question)
    searched = _searched(conversation.earlier[-1]) if conversation.earlier else ""
    alone = follow_up(question, searched, agents) if searched else _standing_alone(conversation, agents)
    division = divided(alone, agents, lambda part: bool(plan(conversation, agents, part)))
    return division if division.inquiries else Division(rest=question)


def _searched(exchange: Exchange) -> str:
    """What the knowledge base was asked in an exchange in which no agent was."""
    if _delegated(exchange.uses):
        return ""
    return next((str(use.arguments.get("query", "")) for use in exchange.uses if use.name == SEARCH_TOOL), "")


def _own_tools(tools: Sequence[Tool], question: str) -> tuple[Tool, ...]:
    """The tools of the supervisor itself that may serve a request. Those of the knowledge base have reasons of their
    own to be called, but for its listing, which is asked for by its name."""
    known = KNOWLEDGE_TOOLS if has_knowledge_base(tools) else frozenset()
    if known and not asks_for_datasources(question):
        known |= BESIDE_KNOWLEDGE
    own = [tool for tool in tools if tool.name not in STEERING_TOOLS | known]
    return tuple(own + [tool for tool in tools if tool.name == FORM_TOOL]) if own else ()


def _without_agents(conversation: Conversation, tools: Sequence[Tool], agents: tuple[Agent, ...]) -> Reply | None:
    """The reply to what is not left to the agents: what a skill or a workflow serves, and small talk."""
    question = conversation.current.question
    if reply := skill_requests.by_name(conversation, _standing_alone(conversation, agents), tools, agents):
        return reply
    if any(tool.name == WORKFLOW_TOOL for tool in tools) and (reply := _with_workflow(conversation, agents)):
        return reply
    if _SMALL_TALK.match(question) or not language.words(question):
        return Reply(answers.signed(answers.greeting(agents)))
    return skill_requests.by_description(conversation, _standing_alone(conversation, agents), tools, agents)


def _with_workflow(conversation: Conversation, agents: tuple[Agent, ...]) -> Reply | None:
    """A request that a workflow serves: start it, or say what became of that."""
    uses = conversation.current.uses
    if started := next((use for use in reversed(uses) if use.name == WORKFLOW_TOOL), None):
        return Reply(answers.signed(_of_workflow(started, conversation)))
    if uses:
        return None
    question = _standing_alone(conversation, agents)
    wanted = wanted_workflow(question, described_workflows(conversation.instructions), agents)
    return _start(wanted, agents) if wanted else None


def _start(wanted: Wanted, agents: tuple[Agent, ...]) -> Reply:
    values = prefilled(wanted, vocabulary(agents))
    call = Call(WORKFLOW_TOOL, {"name": wanted.workflow.name, "values": values})
    return Reply(f"I'll start the workflow “{wanted.workflow.title}”.", (call,))


def _of_workflow(started: Use, conversation: Conversation) -> str:
    """What is said of a workflow that did not run by itself to its end."""
    name = str(started.arguments.get("name", ""))
    known = described_workflows(conversation.instructions)
    title = next((item.title for item in known if item.name == name), name.replace("_", " "))
    if (reason := cancellation(started)) is not None:
        return answers.canceled(title, reason)
    if started.failed:
        return f"The workflow “{title}” was not started: {started.result}"
    return summary(conversation, ())


def _with_own_tools(conversation: Conversation, tools: tuple[Tool, ...], agents: Sequence[Agent]) -> Reply:
    """A request for no agent, served with the supervisor's own tools, such as a search in documents."""
    reply = act_with_tools(conversation, tools)
    if reply.calls and any(call.name == FORM_TOOL for call in reply.calls):
        return reply
    if reply.calls:
        names = answers.enumeration([f"`{call.name}`" for call in reply.calls])
        return Reply(f"No agent serves this, so I'll try {names}.", reply.calls)
    if conversation.current.uses:
        return Reply(answers.signed(reply.text))
    return Reply(answers.signed(answers.refusal([], agents)))


def _delegated(uses: Sequence[Use]) -> list[Use]:
    return [use for use in uses if use.name == DELEGATION_TOOL]


def _pending(ready: Sequence[Intent], made: Sequence[Use]) -> list[Intent]:
    """What is to be delegated next: first all that can run side by side, then what had to wait for it."""
    at_once = [item for item in ready if not item.waits]
    if not made:
        return at_once
    waiting = [item for item in ready if item.waits]
    if not waiting or len(made) > len(at_once):
        return []
    found = "\n\n".join(answers.without_refusals(use.result or "") for use in made if not use.failed)
    before = Before(at_once[-1].request, found)
    resolved = [replace(item, request=resolve(item.request, before)) for item in waiting]
    return [item for item, original in zip(resolved, waiting, strict=True) if item.request != original.request]


def plan(conversation: Conversation, agents: Sequence[Agent], question: str) -> list[Intent]:
    """The parts of a request and who serves each, follow-ups resolved."""
    known = tuple(agents)
    before = _exchange_before(conversation)
    if before is None:
        return list(intents(question, known))
    if refers_back(question):
        question = resolve(question, _before(before, known))
        return list(intents(question, known)) or [
            Intent(agent, question)
            for agent in _agents_that_know(question, conversation, known) or _asked(before, known)
        ]
    return list(intents(question, known)) or [
        Intent(agent, question) for agent in _agents_that_know(question, conversation, known)
    ]


def _exchange_before(conversation: Conversation) -> Exchange | None:
    """The last exchange that was about particular things: what documents say in general is about none."""
    answered = (exchange for exchange in reversed(conversation.earlier) if exchange.answer)
    return next((exchange for exchange in answered if not _searched(exchange)), None)


def _standing_alone(conversation: Conversation, agents: tuple[Agent, ...]) -> str:
    """The question, with what it points at put in its place."""
    question = conversation.current.question.strip()
    before = _exchange_before(conversation)
    return resolve(question, _before(before, agents)) if before is not None and refers_back(question) else question


def _before(exchange: Exchange, agents: tuple[Agent, ...]) -> Before:
    """The exchange, its question as it was understood then."""
    skill = skill_run.last_read(exchange.uses)
    if skill is not None and (subject := str(skill.arguments.get("arguments", ""))):
        return Before(exchange.question, exchange.answer, (subject,))
    requests = [without_context(str(use.arguments.get("description", ""))) for use in _delegated(exchange.uses)]
    by_workflow = any(use.name == WORKFLOW_TOOL for use in exchange.uses)
    question = requests[0] if len(requests) == 1 and not by_workflow else exchange.question
    names = request_names(Request(question, vocabulary(agents)))
    return Before(question, exchange.answer, names)


def _asked(exchange: Exchange, agents: Sequence[Agent]) -> list[Agent]:
    names = [use.arguments.get("subagent_type") for use in _delegated(exchange.uses)]
    return [agent for agent in agents if agent.name in names]


def _agents_that_know(question: str, conversation: Conversation, agents: tuple[Agent, ...]) -> list[Agent]:
    """The agents that spoke last of a thing the question names."""
    names = request_names(Request(question, vocabulary(agents)))
    for exchange in reversed(conversation.earlier):
        spoke = {
            use.arguments.get("subagent_type")
            for use in _delegated(exchange.uses)
            if use.result and not use.failed and any(name in use.result for name in names)
        }
        if spoke:
            return [agent for agent in agents if agent.name in spoke]
    return []


def _delegation(item: Intent, conversation: Conversation, count: int) -> Call:
    question = conversation.current.question.strip()
    context = f"part of the request “{question}”" if count > 1 else ""
    if conversation.earlier and refers_back(question):
        context = f"the request was “{question}”, after the question “{conversation.earlier[-1].question.strip()}”"
    description = f"{item.request}{CONTEXT}{context}." if context else item.request
    return Call(DELEGATION_TOOL, {"description": description, "subagent_type": item.agent.name})


def summary(
    conversation: Conversation,
    planned: Sequence[Intent],
    division: Division = _UNDIVIDED,
    agents: Sequence[Agent] = (),
) -> str:
    """The answer from what the knowledge base and the delegations returned. Without a plan: as much as the messages
    tell."""
    uses = conversation.current.uses
    made = _delegated(uses)
    parts = [_part(use) for use in made if use.result is not None]
    notes = [f"{item.agent.title} could not be asked: {item.agent.no_tools}" for item in planned if item.agent.no_tools]
    in_order = sorted((item for item in planned if item.agent.no_tools is None), key=lambda item: item.waits)
    undone = [item.request for item in in_order[len(made) :]]
    if conversation.cut_short:
        undone = _unfinished_steps(conversation)
    if undone:
        notes.append(f"Not done: {'; '.join(undone)}.")
    is_comparison = leading_verb(conversation.current.question) == "compare"
    bibliography = Bibliography()
    found = consultation.parts(conversation.current, division.inquiries, agents, bibliography)
    notes += [*consultation.unread_notes(uses), *filter(None, [bibliography.listed()])]
    parts = [*found, *parts] if division.comes_first else [*parts, *found]
    return answers.combined(parts, notes, side_by_side=is_comparison and not found)


def _part(use: Use) -> Part:
    agent = str(use.arguments.get("subagent_type", "")).replace("_", " ").title()
    request = without_context(str(use.arguments.get("description", "")))
    return Part(agent, request, (use.result or "").strip(), use.failed, rejection(use))


def _unfinished_steps(conversation: Conversation) -> list[str]:
    """Steps of the plan that no delegation and no search has answered."""
    uses = conversation.current.uses
    served = [str(use.arguments.get("subagent_type")) for use in _delegated(uses) if use.result is not None]
    searched = sum(1 for use in uses if use.name == SEARCH_TOOL and use.result is not None)
    latest = next((use for use in reversed(uses) if use.name == PLAN_TOOL), None)
    left: list[str] = []
    for step in latest.arguments.get("steps", ()) if latest else ():
        if step.get("agent") in served:
            served.remove(step["agent"])
        elif step.get("agent"):
            left.append(str(step["content"]))
        elif str(step.get("content", "")).startswith(LOOK_UP):
            searched -= 1
            left += [str(step["content"])] if searched < 0 else []
    return left
