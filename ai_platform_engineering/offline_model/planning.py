"""The plan of a request, and the sentence that announces it."""

from __future__ import annotations

from collections.abc import Sequence

from ai_platform_engineering.offline_model import answers, language
from ai_platform_engineering.offline_model.inquiries import Inquiry
from ai_platform_engineering.offline_model.intents import Intent
from ai_platform_engineering.offline_model.knowledge import Division
from ai_platform_engineering.offline_model.sentences import from_leading_verb, is_question, leading_verb
from ai_platform_engineering.offline_model.tools import PLAN_TOOL, Call

LOOK_UP = "Search the knowledge base for"
"""How a step of a plan begins that is for no agent, but for the knowledge base."""
MAX_DELEGATIONS = 8


def announcement(planned: Sequence[Intent], question: str, inquiries: Sequence[Inquiry]) -> str:
    """What is said before the agents are asked."""
    if inquiries:
        topics = answers.enumeration([inquiry.topic for inquiry in inquiries])
        asking = answers.enumeration([_ask(item, same_agent=False) for item in planned])
        return f"I'll search the knowledge base for {topics}, ask {asking}, then put the results together."
    requests = {item.request for item in planned}
    if len(planned) > 1 and len(requests) == 1:
        who = answers.enumeration([item.agent.title for item in planned])
        return f"I'll ask {who} {_ask(planned[0], same_agent=True)}, then put the results together."
    asks = [
        _ask(item, position > 0 and planned[position - 1].agent == item.agent) for position, item in enumerate(planned)
    ]
    if len(asks) == 1:
        return f"I'll ask {asks[0]}."
    closing = "compare the results" if leading_verb(question) == "compare" else "put the results together"
    if any(item.waits for item in planned):
        return f"I'll ask {', '.join(asks[:-1])}, then {asks[-1]}."
    return f"I'll ask {', '.join(asks[:-1])} and, at the same time, {asks[-1]}, then {closing}."


def _ask(item: Intent, same_agent: bool) -> str:
    request = from_leading_verb(item.request).rstrip(" .!?;:")
    who = "" if same_agent else f"{item.agent.title} "
    if leading_verb(request) is not None:
        return f"{who}to {request[:1].lower()}{request[1:]}"
    if is_question(request) and language.words(request)[0].startswith(("wh", "how")):
        return f"{who}{request[:1].lower()}{request[1:]}"
    return f"{who}about “{request}”"


def plan_call(planned: Sequence[Intent], question: str, division: Division) -> Call:
    delegated: list[Intent | Inquiry] = [*planned]
    looked_up: list[Intent | Inquiry] = [*division.inquiries]
    return plan_of(question, [*looked_up, *delegated] if division.comes_first else [*delegated, *looked_up])


def plan_of(question: str, work: Sequence[Intent | Inquiry]) -> Call:
    """The plan with a step for each delegation and each search, in this order."""
    steps = [_plan_step(item) for item in work]
    if len(steps) > 1:
        closing = "Compare the results" if leading_verb(question) == "compare" else "Combine the results"
        steps.append({"content": closing, "agent": None, "status": "pending"})
    return Call(PLAN_TOOL, {"title": _sentence(question), "steps": steps})


def _plan_step(item: Intent | Inquiry) -> dict[str, str | None]:
    if isinstance(item, Intent):
        return {"content": _sentence(item.request), "agent": item.agent.name, "status": "pending"}
    return {"content": _sentence(f"{LOOK_UP} {item.topic}"), "agent": None, "status": "pending"}


def _sentence(text: str, limit: int = 100) -> str:
    text = " ".join(text.split()).rstrip(" .!?;:")
    if len(text) > limit:
        text = f"{text[:limit].rsplit(' ', 1)[0]} ..."
    return text[:1].upper() + text[1:]
