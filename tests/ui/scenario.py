"""A scripted run for the page: a plan, one agent with one tool, and an answer whose text shows each gap and repeat."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from ai_platform_engineering.llm.scripted import Turn
from tests.recovery.scenario import results_of

Json = Mapping[str, Any]

ENVIRON = {"SANDBOX": "true", "ENABLE_RAG": "false", "LOG_LEVEL": "warning", "LLM_MAX_RETRIES": "0"}
PLAN = {
    "title": "Count the issues",
    "steps": [{"content": "Search the issues", "agent": "jira"}, {"content": "Sum up"}],
}
WORDS = [f"word{number}" for number in range(1, 81)]
HELD_WORD = WORDS[40]
FIRST_HALF = " ".join(WORDS[:40])
ANSWER = " ".join(WORDS)


def play(request: Json) -> Turn:
    """The model's turn for a request."""
    tools = {tool["function"]["name"] for tool in request.get("tools") or ()}
    results = results_of(request["messages"])
    return _supervisor(results) if "task" in tools else _jira(results)


def _supervisor(results: Sequence[tuple[str, str]]) -> Turn:
    if not results:
        return Turn("I plan how to count them.", [("write_todos", PLAN)])
    if any(tool == "task" for tool, _ in results):
        return Turn(ANSWER)
    return Turn("", [("task", {"description": "Search the issues.", "subagent_type": "jira"})])


def _jira(results: Sequence[tuple[str, str]]) -> Turn:
    return Turn("There are some.") if results else Turn("", [("search_issues", {"query": "checkout"})])


def hold(holds: dict[str, asyncio.Event]) -> asyncio.Event:
    """Lets answers wait in their middle until the event is set."""
    released = holds[HELD_WORD] = asyncio.Event()
    return released
