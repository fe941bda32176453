"""The plan of a request, and the sentence that announces it."""

from __future__ import annotations

from collections.abc import Sequence

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.english.sentences import from_leading_verb, is_question, leading_verb
from ai_platform_engineering.offline_model.messages.tools import PLAN_TOOL, PlannedCall
from ai_platform_engineering.offline_model.planning.inquiries import Inquiry
from ai_platform_engineering.offline_model.planning.intents import Intent
from ai_platform_engineering.offline_model.planning.request_split import SplitRequest
from ai_platform_engineering.offline_model.results.rendering import enumeration

LOOK_UP = "Search the knowledge base for"
"""The beginning of a plan step that searches the knowledge base."""
MAX_DELEGATIONS = 8


def announcement(planned: Sequence[Intent], question: str, inquiries: Sequence[Inquiry]) -> str:
    """The narration before the delegations."""
    if inquiries:
        topics = enumeration([inquiry.topic for inquiry in inquiries])
        asking = enumeration([_ask(item, same_agent=False) for item in planned])
        return f"I'll search the knowledge base for {topics}, ask {asking}, then put the results together."
    requests = {item.request for item in planned}
    if len(planned) > 1 and len(requests) == 1:
        who = enumeration([item.agent.title for item in planned])
        return f"I'll ask {who} {_ask(planned[0], same_agent=True)}, then put the results together."
    asks = [
        _ask(item, position > 0 and planned[position - 1].agent == item.agent) for position, item in enumerate(planned)
    ]
    if len(asks) == 1:
        return f"I'll ask {asks[0]}."
    closing = "compare the results" if leading_verb(question) == "compare" else "put the results together"
    if any(item.depends_on_earlier for item in planned):
        return f"I'll ask {', '.join(asks[:-1])}, then {asks[-1]}."
    return f"I'll ask {', '.join(asks[:-1])} and, at the same time, {asks[-1]}, then {closing}."


def _ask(item: Intent, same_agent: bool) -> str:
    request = from_leading_verb(item.request).rstrip(" .!?;:")
    who = "" if same_agent else f"{item.agent.title} "
    if leading_verb(request) is not None:
        return f"{who}to {request[:1].lower()}{request[1:]}"
    if is_question(request) and lexical.words(request)[0].startswith(("wh", "how")):
        return f"{who}{request[:1].lower()}{request[1:]}"
    return f"{who}about “{request}”"


def plan_call(planned: Sequence[Intent], question: str, split: SplitRequest) -> PlannedCall:
    delegated: list[Intent | Inquiry] = [*planned]
    looked_up: list[Intent | Inquiry] = [*split.inquiries]
    return plan_of(question, [*looked_up, *delegated] if split.comes_first else [*delegated, *looked_up])


def plan_of(question: str, work: Sequence[Intent | Inquiry]) -> PlannedCall:
    """The call that writes a plan with one step for each item of work, in this order."""
    steps = [_plan_step(item) for item in work]
    if len(steps) > 1:
        closing = "Compare the results" if leading_verb(question) == "compare" else "Combine the results"
        steps.append({"content": closing, "agent": None, "status": "pending"})
    return PlannedCall(PLAN_TOOL, {"title": _sentence(question), "steps": steps})


def _plan_step(item: Intent | Inquiry) -> dict[str, str | None]:
    if isinstance(item, Intent):
        return {"content": _sentence(item.request), "agent": item.agent.name, "status": "pending"}
    return {"content": _sentence(f"{LOOK_UP} {item.topic}"), "agent": None, "status": "pending"}


def _sentence(text: str, limit: int = 100) -> str:
    text = " ".join(text.split()).rstrip(" .!?;:")
    if len(text) > limit:
        text = f"{text[:limit].rsplit(' ', 1)[0]} ..."
    return text[:1].upper() + text[1:]
