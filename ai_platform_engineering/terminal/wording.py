"""The sentences and labels of the terminal, shared by the coloured and the plain output."""

from __future__ import annotations

from ai_platform_engineering.events import Canceled, Failed, FinalResult, InputRequired, PlanStep
from ai_platform_engineering.final_results import CUT_SENTENCES, cut_reason_of
from ai_platform_engineering.terminal.view import Call, Delegation, ToolCall
from ai_platform_engineering.text.form_text import form_lines
from ai_platform_engineering.text.plain_text import one_line
from ai_platform_engineering.utils.a2a_common.codec.labels import display
from ai_platform_engineering.utils.characters import clean

_LIMITS = {
    "recursion_limit": "the number of steps a request may take (LANGGRAPH_RECURSION_LIMIT)",
    "knowledge_calls": "the number of searches and documents for one question (SEARCH_MAX_CALLS, "
    "FETCH_DOCUMENT_MAX_CALLS)",
}


def calling(delegation: Delegation) -> str:
    return f"Calling Agent {display(delegation.agent)}..."


def outcome(delegation: Delegation) -> str:
    name = f"Agent {display(delegation.agent)}"
    return name if delegation.state == "ok" else f"{name}: {failed(delegation.reason)}"


def failed(reason: str) -> str:
    return f"failed: {reason}" if reason and reason != "canceled" else reason or "failed"


def tool_name(tool: ToolCall) -> str:
    """The name of the tool, and of the skill that it reads, if any."""
    return f"{tool.name} {tool.skill}" if tool.skill else tool.name


def tool_of_agent(tool: ToolCall) -> str:
    return f"{display(tool.agent)}: {tool_name(tool)}"


def name_of(call: Call) -> str:
    return f"Agent {display(call.agent)}" if isinstance(call, Delegation) else tool_of_agent(call)


def plan_heading(title: str) -> str:
    return f"Plan: {title}" if title else "Plan"


def step(item: PlanStep) -> str:
    return f"{display(item.agent)}: {item.title}" if item.agent else item.title


def result_notes(result: FinalResult) -> list[str]:
    """What a person should know about an answer: that a limit cut it short, that a budget is nearly used up."""
    return [*_limit_lines(result), *([one_line(result.budget_warning)] if result.budget_warning else ())]


def _limit_lines(result: FinalResult) -> list[str]:
    if result.limit is None:
        return []
    if (cut := cut_reason_of(result.limit)) is not None:
        return [f"The answer is not complete. {CUT_SENTENCES[cut]}"]
    limit = _LIMITS.get(result.limit, one_line(result.limit))
    return [f"A limit was reached, {limit}, so the answer uses only the results until then."]


def failure(failed_run: Failed) -> str:
    return f"Failed: {one_line(failed_run.message) or 'no reason was given.'}"


def partial_lines(failed_run: Failed) -> list[str]:
    partial = clean(failed_run.partial or "").strip("\n")
    return ["Results until then:", partial] if partial.strip() else []


def canceled(ending: Canceled) -> str:
    by = "Canceled." if ending.by == "user" else f"Canceled by {one_line(ending.by)}."
    return f"{by} {one_line(ending.message)}".rstrip()


def question_lines(question: InputRequired) -> list[str]:
    return [line for form in question.forms for line in form_lines(form)] or ["Input needed."]
