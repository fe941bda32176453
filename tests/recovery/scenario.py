"""The conversation: a plan, two agents in parallel, one approval, two changes that are counted, and a second turn.

The model is a function of the messages it gets, so a model call that a kill cut off is answered the same way again. It
looks before it changes something, and it looks again after an outcome that is unknown, as the prompts demand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from ai_platform_engineering.llm.scripted import Turn
from ai_platform_engineering.sandbox.records import Incident, Ticket
from ai_platform_engineering.sandbox.store import SandboxStore, sandbox_path
from tests.untrusted_text import without_delimiters

Json = Mapping[str, Any]

INCIDENT = "P4711"
ENVIRON = {
    "SANDBOX": "true",
    "ENABLE_RAG": "false",
    "ENABLE_ARGOCD": "false",
    "ENABLE_GITHUB": "false",
    "ENABLE_NETUTILS": "false",
    "REQUIRE_APPROVAL_OVERRIDES": "jira.create_issue=always",
    "LOG_LEVEL": "warning",
}
NOTE_ADDED = "PagerDuty: the note is on the incident."
TICKET_CREATED = "Jira: the ticket is there."
NOT_DONE = "It could not be done."
ANSWER = f"Both changes are made.\n\n- {NOTE_ADDED}\n- {TICKET_CREATED}\n\nNothing else was changed."
PLAN = {
    "title": "Record the release",
    "steps": [
        {"content": "Note it on the incident", "agent": "pagerduty"},
        {"content": "Open a ticket", "agent": "jira"},
        {"content": "Sum up"},
    ],
}
_RELEASE = re.compile(r"release-[0-9a-f]{12}")


@dataclass(frozen=True)
class Release:
    """One conversation. Its name is in everything that it changes."""

    name: str = field(default_factory=lambda: f"release-{uuid4().hex[:12]}")

    @property
    def question(self) -> str:
        return f"Record {self.name}: note it on {INCIDENT} and open a ticket."

    @property
    def follow_up(self) -> str:
        return f"What was done for {self.name}?"

    def changes(self, data_dir: Path) -> tuple[int, int]:
        """How many notes and tickets it has made."""
        with SandboxStore(sandbox_path(data_dir)).read() as session:
            incident = session.find(Incident, INCIDENT)
            assert incident is not None
            notes = sum(self.name in entry.text for entry in incident.log)
            return notes, sum(ticket.summary == self.name for ticket in session.all(Ticket))


def play(request: Json) -> Turn:
    """The model's turn for a request."""
    messages = request["messages"]
    tools = {tool["function"]["name"] for tool in request.get("tools") or ()}
    found = _RELEASE.findall(_text(next(message for message in reversed(messages) if message["role"] == "user")))
    assert found, f"no release in the question: {messages}"
    results = results_of(messages)
    if "task" in tools:
        return _supervisor(found[0], messages, results)
    return _jira(found[0], results) if "create_issue" in tools else _pagerduty(found[0], results)


def _supervisor(name: str, messages: Sequence[Json], results: Sequence[tuple[str, str]]) -> Turn:
    question = _text(next(message for message in reversed(messages) if message["role"] == "user"))
    if question.startswith("What was done"):
        return Turn(f"Here is what was done for {name}: {ANSWER}")
    if not results:
        return Turn(f"I plan how to record {name} first.", [("write_todos", PLAN)])
    answers = [text for tool, text in results if tool == "task"]
    if answers:
        return Turn(ANSWER if {NOTE_ADDED, TICKET_CREATED} <= {*answers} else f"{NOT_DONE} {answers}")
    tasks = {"pagerduty": f"Note {name} on {INCIDENT}.", "jira": f"Create {name}."}
    calls = [("task", {"description": text, "subagent_type": agent}) for agent, text in tasks.items()]
    return Turn("Now I ask both agents to do their part.", calls)


def _pagerduty(name: str, results: Sequence[tuple[str, str]]) -> Turn:
    match results[-1:]:
        case []:
            return Turn("Let me look at the incident.", [("get_incident", {"incident_id": INCIDENT})])
        case [("get_incident", text)] if name in text:
            return Turn(NOTE_ADDED)
        case [("get_incident", _)]:
            return Turn("I add the note.", [("add_note", {"incident_id": INCIDENT, "note": name})])
        case [("add_note", text)] if "Noted on" in text:
            return Turn(NOTE_ADDED)
        case [("add_note", text)] if is_unknown(text):
            return Turn("Let me see whether it is there.", [("get_incident", {"incident_id": INCIDENT})])
        case _:
            return Turn(NOT_DONE)


def _jira(name: str, results: Sequence[tuple[str, str]]) -> Turn:
    match results[-1:]:
        case []:
            return Turn("Let me look for the ticket.", [("search_issues", {"query": name})])
        case [("search_issues", text)] if name in text:
            return Turn(TICKET_CREATED)
        case [("search_issues", _)]:
            return Turn("I open the ticket.", [("create_issue", {"project": "SHOP", "summary": name})])
        case [("create_issue", text)] if "Created SHOP-" in text:
            return Turn(TICKET_CREATED)
        case [("create_issue", text)] if is_unknown(text):
            return Turn("Let me see whether it is there.", [("search_issues", {"query": name})])
        case _:
            return Turn(NOT_DONE)


def is_unknown(result: str) -> bool:
    return "outcome" in result.lower() and "unknown" in result.lower()


def results_of(messages: Sequence[Json]) -> list[tuple[str, str]]:
    """The results since the last question, each with the name of its tool."""
    last = max(place for place, message in enumerate(messages) if message["role"] == "user")
    names: dict[str, str] = {}
    results: list[tuple[str, str]] = []
    for message in messages[last:]:
        for call in message.get("tool_calls") or ():
            names[call["id"]] = call["function"]["name"]
        if message["role"] == "tool":
            results.append((names[message["tool_call_id"]], _text(message)))
    return results


def _text(message: Json) -> str:
    content = message["content"]
    return without_delimiters(content) if isinstance(content, str) else json.dumps(content)
