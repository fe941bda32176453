"""The supervisor's turn: split the request, plan, delegate, and answer from the results of the agents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ai_platform_engineering.final_results import NOTHING_TO_SAY
from ai_platform_engineering.offline_model import answers, memories
from ai_platform_engineering.offline_model.agent import act as act_with_tools
from ai_platform_engineering.offline_model.answers import AnswerPart
from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.english.requests import RequestText, request_names
from ai_platform_engineering.offline_model.english.sentences import leading_verb
from ai_platform_engineering.offline_model.knowledge import consultation
from ai_platform_engineering.offline_model.knowledge.citations import Bibliography
from ai_platform_engineering.offline_model.messages.conversation import (
    Exchange,
    ParsedConversation,
    ToolUse,
    cancellation_reason,
    rejection_reason,
)
from ai_platform_engineering.offline_model.messages.tools import (
    CONTROL_TOOLS,
    DELEGATION_TOOL,
    FORM_TOOL,
    KNOWLEDGE_TOOLS,
    OTHER_KNOWLEDGE_TOOLS,
    PLAN_TOOL,
    SEARCH_TOOL,
    SKILL_TOOLS,
    WORKFLOW_TOOL,
    Agent,
    BoundTool,
    ModelReply,
    PlannedCall,
    described_agents,
)
from ai_platform_engineering.offline_model.planning.intents import Intent, intents
from ai_platform_engineering.offline_model.planning.plan import (
    LOOK_UP,
    MAX_DELEGATIONS,
    announcement,
    plan_call,
)
from ai_platform_engineering.offline_model.planning.references import (
    CONTEXT,
    PreviousExchange,
    refers_back,
    resolve,
    without_context,
)
from ai_platform_engineering.offline_model.planning.request_split import (
    SplitRequest,
    asks_for_datasources,
    follow_up,
    has_knowledge_base,
    split_request,
)
from ai_platform_engineering.offline_model.planning.routing import vocabulary
from ai_platform_engineering.offline_model.results.rendering import enumeration
from ai_platform_engineering.offline_model.skills import skill_run, supervisor_requests
from ai_platform_engineering.offline_model.workflows.inputs import prefilled
from ai_platform_engineering.offline_model.workflows.matching import (
    WorkflowRequest,
    described_workflows,
    wanted_workflow,
)

_NOT_SPLIT = SplitRequest()
_SMALL_TALK = re.compile(
    r"^\W*(?:hi|hello|hey|good\s+(?:morning|afternoon|evening)|thanks?(?:\s+you)?|help|ping|test|yo|howdy|bye"
    r"|(?:so\s+)?what\s+(?:can|do|could)\s+you\s+do|who\s+are\s+you|how\s+can\s+you\s+help|what\s+are\s+your\s+\w+)\b"
    r"(?:\W+(?:there|all|everyone|please|me|for\s+me|with|very\s+much|a\s+lot|how\s+are\s+you))*\W*$",
    re.I,
)


def act(conversation: ParsedConversation, tools: tuple[BoundTool, ...]) -> ModelReply:
    reply = _act(conversation, tools)
    return reply if reply.calls or not is_silent(conversation) else ModelReply(NOTHING_TO_SAY)


def is_silent(conversation: ParsedConversation) -> bool:
    """Whether to reply `NOTHING_TO_SAY`: the instructions allow silence, and no agent or document gave an answer."""
    return NOTHING_TO_SAY in conversation.instructions and not _has_answer(conversation.current)


def _has_answer(exchange: Exchange) -> bool:
    done = [use for use in exchange.uses if use.name not in KNOWLEDGE_TOOLS | SKILL_TOOLS | {PLAN_TOOL}]
    return any(map(_has_outcome, done)) or consultation.has_answer(exchange)


def _has_outcome(use: ToolUse) -> bool:
    if rejection_reason(use) is not None or cancellation_reason(use) is not None:
        # A person who rejected a call or canceled a form expects a reply.
        return True
    return not use.failed and not answers.could_not_help(use.result or "")


def _act(conversation: ParsedConversation, tools: tuple[BoundTool, ...]) -> ModelReply:
    agents = described_agents(next(tool.description for tool in tools if tool.name == DELEGATION_TOOL))
    question = conversation.current.question
    if reply := _without_agents(conversation, tools, agents):
        return reply
    split = _split_request(conversation, tools, agents)
    planned = plan(conversation, agents, split.rest)
    if not planned and not split.inquiries and (own := _own_tools(tools, question)):
        return _with_own_tools(conversation, own, agents)
    ready = [item for item in planned if item.agent.no_tools is None][:MAX_DELEGATIONS]
    if not ready and not split.inquiries:
        return ModelReply(answers.with_signature(answers.refusal([item.agent for item in planned], agents)))
    uses = conversation.current.uses
    can_plan = any(tool.name == PLAN_TOOL for tool in tools)
    if can_plan and ready and not uses:
        return ModelReply(announcement(ready, question, split.inquiries), (plan_call(ready, question, split),))
    lookups = consultation.next_calls(split.inquiries, uses)
    delegated = tuple(
        _delegation(item, conversation, len(ready) + len(split.inquiries)) for item in _pending(ready, _delegated(uses))
    )
    if lookups or delegated:
        narration = consultation.narration(lookups, split.inquiries, uses)
        if delegated and not uses:
            narration = announcement(ready, question, split.inquiries)
        return ModelReply(narration, (*lookups, *delegated))
    return ModelReply(answers.with_signature(summary(conversation, planned, split, agents)))


def _split_request(
    conversation: ParsedConversation, tools: Sequence[BoundTool], agents: tuple[Agent, ...]
) -> SplitRequest:
    """The request, split into questions for the knowledge base and the rest, for agents."""
    question = conversation.current.question.strip()
    if not has_knowledge_base(tools) or asks_for_datasources(question):
        return SplitRequest(rest=question)
    searched = _searched_query(conversation.earlier[-1]) if conversation.earlier else ""
    resolved_question = (
        follow_up(question, searched, agents) if searched else _with_references_resolved(conversation, agents)
    )
    split = split_request(resolved_question, agents, lambda part: bool(plan(conversation, agents, part)))
    return split if split.inquiries else SplitRequest(rest=question)


def _searched_query(exchange: Exchange) -> str:
    """The query of an exchange that searched the knowledge base and asked no agent, else ""."""
    if _delegated(exchange.uses):
        return ""
    return next((str(use.arguments.get("query", "")) for use in exchange.uses if use.name == SEARCH_TOOL), "")


def _own_tools(tools: Sequence[BoundTool], question: str) -> tuple[BoundTool, ...]:
    """The supervisor's own tools that may serve a request by matching words. Tools of the knowledge base are called
    elsewhere, except the listing of data sources, which a request names."""
    known = KNOWLEDGE_TOOLS if has_knowledge_base(tools) else frozenset()
    if known and not asks_for_datasources(question):
        known |= OTHER_KNOWLEDGE_TOOLS
    own = [tool for tool in tools if tool.name not in CONTROL_TOOLS | known]
    return tuple(own + [tool for tool in tools if tool.name == FORM_TOOL]) if own else ()


def _without_agents(
    conversation: ParsedConversation, tools: Sequence[BoundTool], agents: tuple[Agent, ...]
) -> ModelReply | None:
    """The reply to a request that needs no delegation: a memory, a skill, a workflow, small talk."""
    question = conversation.current.question
    if reply := memories.reply(conversation, tools):
        return reply
    if reply := supervisor_requests.by_name(
        conversation, _with_references_resolved(conversation, agents), tools, agents
    ):
        return reply
    if any(tool.name == WORKFLOW_TOOL for tool in tools) and (reply := _with_workflow(conversation, agents)):
        return reply
    if _SMALL_TALK.match(question) or not lexical.words(question):
        return ModelReply(answers.with_signature(answers.greeting(agents)))
    return supervisor_requests.by_description(
        conversation, _with_references_resolved(conversation, agents), tools, agents
    )


def _with_workflow(conversation: ParsedConversation, agents: tuple[Agent, ...]) -> ModelReply | None:
    """Start the workflow that a request asks for, or report the outcome of the start."""
    uses = conversation.current.uses
    if started := next((use for use in reversed(uses) if use.name == WORKFLOW_TOOL), None):
        return ModelReply(answers.with_signature(_workflow_outcome(started, conversation)))
    if uses:
        return None
    question = _with_references_resolved(conversation, agents)
    wanted = wanted_workflow(question, described_workflows(conversation.instructions), agents)
    return _start(wanted, agents) if wanted else None


def _start(wanted: WorkflowRequest, agents: tuple[Agent, ...]) -> ModelReply:
    values = prefilled(wanted, vocabulary(agents))
    call = PlannedCall(WORKFLOW_TOOL, {"name": wanted.workflow.name, "values": values})
    return ModelReply(f"I'll start the workflow “{wanted.workflow.title}”.", (call,))


def _workflow_outcome(started: ToolUse, conversation: ParsedConversation) -> str:
    """The answer when a workflow was not started, or ended without a report of its own."""
    name = str(started.arguments.get("name", ""))
    known = described_workflows(conversation.instructions)
    title = next((item.title for item in known if item.name == name), name.replace("_", " "))
    if (reason := cancellation_reason(started)) is not None:
        return answers.cancellation_text(title, reason)
    if started.failed:
        return f"The workflow “{title}” was not started: {started.result}"
    return summary(conversation, ())


def _with_own_tools(
    conversation: ParsedConversation, tools: tuple[BoundTool, ...], agents: Sequence[Agent]
) -> ModelReply:
    """Serve a request that fits no agent with the supervisor's own tools, for example a document search."""
    reply = act_with_tools(conversation, tools)
    if reply.calls and any(call.name == FORM_TOOL for call in reply.calls):
        return reply
    if reply.calls:
        names = enumeration([f"`{call.name}`" for call in reply.calls])
        return ModelReply(f"No agent serves this, so I'll try {names}.", reply.calls)
    if conversation.current.uses:
        return ModelReply(answers.with_signature(reply.text))
    return ModelReply(answers.with_signature(answers.refusal([], agents)))


def _delegated(uses: Sequence[ToolUse]) -> list[ToolUse]:
    return [use for use in uses if use.name == DELEGATION_TOOL]


def _pending(ready: Sequence[Intent], delegations: Sequence[ToolUse]) -> list[Intent]:
    """The next delegations: first all independent ones in parallel, then those that need the results."""
    at_once = [item for item in ready if not item.depends_on_earlier]
    if not delegations:
        return at_once
    waiting = [item for item in ready if item.depends_on_earlier]
    if not waiting or len(delegations) > len(at_once):
        return []
    found = "\n\n".join(answers.without_refusals(use.result or "") for use in delegations if not use.failed)
    before = PreviousExchange(at_once[-1].request, found)
    resolved = [replace(item, request=resolve(item.request, before)) for item in waiting]
    return [item for item, original in zip(resolved, waiting, strict=True) if item.request != original.request]


def plan(conversation: ParsedConversation, agents: Sequence[Agent], question: str) -> list[Intent]:
    """The parts of a request with the agent for each. References to earlier exchanges are resolved."""
    known = tuple(agents)
    before = _previous_exchange(conversation)
    if before is None:
        return list(intents(question, known))
    if refers_back(question):
        question = resolve(question, _reference_target(before, known))
        return list(intents(question, known)) or [
            Intent(agent, question)
            for agent in _agents_that_mentioned(question, conversation, known) or _delegated_agents(before, known)
        ]
    return list(intents(question, known)) or [
        Intent(agent, question) for agent in _agents_that_mentioned(question, conversation, known)
    ]


def _previous_exchange(conversation: ParsedConversation) -> Exchange | None:
    """The last answered exchange that a reference can point at. Searches of the knowledge base name no things."""
    answered = (exchange for exchange in reversed(conversation.earlier) if exchange.answer)
    return next((exchange for exchange in answered if not _searched_query(exchange)), None)


def _with_references_resolved(conversation: ParsedConversation, agents: tuple[Agent, ...]) -> str:
    """The question with its references to the previous exchange resolved."""
    question = conversation.current.question.strip()
    before = _previous_exchange(conversation)
    return (
        resolve(question, _reference_target(before, agents))
        if before is not None and refers_back(question)
        else question
    )


def _reference_target(exchange: Exchange, agents: tuple[Agent, ...]) -> PreviousExchange:
    """The exchange as a target for references, with its question as it was delegated."""
    skill = skill_run.last_read(exchange.uses)
    if skill is not None and (subject := str(skill.arguments.get("arguments", ""))):
        return PreviousExchange(exchange.question, exchange.answer, (subject,))
    requests = [without_context(str(use.arguments.get("description", ""))) for use in _delegated(exchange.uses)]
    by_workflow = any(use.name == WORKFLOW_TOOL for use in exchange.uses)
    question = requests[0] if len(requests) == 1 and not by_workflow else exchange.question
    names = request_names(RequestText(question, vocabulary(agents)))
    return PreviousExchange(question, exchange.answer, names)


def _delegated_agents(exchange: Exchange, agents: Sequence[Agent]) -> list[Agent]:
    names = [use.arguments.get("subagent_type") for use in _delegated(exchange.uses)]
    return [agent for agent in agents if agent.name in names]


def _agents_that_mentioned(question: str, conversation: ParsedConversation, agents: tuple[Agent, ...]) -> list[Agent]:
    """The agents whose last results mention a thing that the question names."""
    names = request_names(RequestText(question, vocabulary(agents)))
    for exchange in reversed(conversation.earlier):
        spoke = {
            use.arguments.get("subagent_type")
            for use in _delegated(exchange.uses)
            if use.result and not use.failed and any(name in use.result for name in names)
        }
        if spoke:
            return [agent for agent in agents if agent.name in spoke]
    return []


def _delegation(item: Intent, conversation: ParsedConversation, count: int) -> PlannedCall:
    question = conversation.current.question.strip()
    context = f"part of the request “{question}”" if count > 1 else ""
    if conversation.earlier and refers_back(question):
        context = f"the request was “{question}”, after the question “{conversation.earlier[-1].question.strip()}”"
    description = f"{item.request}{CONTEXT}{context}." if context else item.request
    return PlannedCall(DELEGATION_TOOL, {"description": description, "subagent_type": item.agent.name})


def summary(
    conversation: ParsedConversation,
    planned: Sequence[Intent],
    split: SplitRequest = _NOT_SPLIT,
    agents: Sequence[Agent] = (),
) -> str:
    """The answer from the results of the knowledge base and the delegations. Without `planned`, unfinished work is
    known from the messages only."""
    uses = conversation.current.uses
    delegations = _delegated(uses)
    parts = [_part(use) for use in delegations if use.result is not None]
    notes = [f"{item.agent.title} could not be asked: {item.agent.no_tools}" for item in planned if item.agent.no_tools]
    in_call_order = sorted(
        (item for item in planned if item.agent.no_tools is None), key=lambda item: item.depends_on_earlier
    )
    undone = [item.request for item in in_call_order[len(delegations) :]]
    if conversation.must_answer_now:
        undone = _unfinished_steps(conversation)
    if undone:
        notes.append(f"Not done: {'; '.join(undone)}.")
    is_comparison = leading_verb(conversation.current.question) == "compare"
    bibliography = Bibliography()
    found = consultation.parts(conversation.current, split.inquiries, agents, bibliography)
    notes += [*consultation.unread_notes(uses), *filter(None, [bibliography.listed()])]
    parts = [*found, *parts] if split.comes_first else [*parts, *found]
    return answers.combine_parts(parts, notes, side_by_side=is_comparison and not found)


def _part(use: ToolUse) -> AnswerPart:
    agent = str(use.arguments.get("subagent_type", "")).replace("_", " ").title()
    request = without_context(str(use.arguments.get("description", "")))
    return AnswerPart(agent, request, (use.result or "").strip(), use.failed, rejection_reason(use))


def _unfinished_steps(conversation: ParsedConversation) -> list[str]:
    """Steps of the plan without a result of a delegation or a search."""
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
