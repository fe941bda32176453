"""The terminal, Slack and the web page show the same of a run: their reducers fold the same recordings."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ai_platform_engineering.events import (
    AgentStarted,
    Canceled,
    Ending,
    Event,
    Failed,
    FinalResult,
    Form,
    InputRequired,
    MessageEnded,
    PlanStep,
    PlanUpdated,
    StepStatus,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.events_json import Asked, encode_line
from ai_platform_engineering.integrations.slack_bot.thread_view import reducer as slack
from ai_platform_engineering.integrations.slack_bot.thread_view.cards import Cards
from ai_platform_engineering.integrations.slack_bot.thread_view.state import State, ThreadReply
from ai_platform_engineering.terminal import reducer as terminal
from ai_platform_engineering.terminal.view import (
    Call,
    CallFinished,
    CallStarted,
    MessageText,
    TerminalNotice,
    ToolCall,
    View,
)
from ai_platform_engineering.utils.a2a_common.codec.labels import display
from tests.recordings.record import CONVERSATIONS, HERE, tasks
from tests.servers import ROOT
from tests.ui.browser import chromium

Summary = dict[str, Any]

PAGE = ROOT / "ai_platform_engineering" / "ui" / "web" / "page"


def _plan(status: StepStatus) -> PlanUpdated:
    return PlanUpdated((PlanStep("s1", "Search", status, 0, "jira"), PlanStep("s2", "Write", "pending", 1)), "Look")


_SAYS = [TextDelta("supervisor", "m1", "I look."), MessageEnded("supervisor", "m1")]
_WORKS = [
    *_SAYS,
    _plan("pending"),
    AgentStarted("jira", "a", None, "s1"),
    _plan("in_progress"),
    ToolStarted("jira", "search", "t1", "a", "s1"),
    ToolFinished("jira", "search", "t1", ok=False, reason="HTTP 401", parent_call_id="a", plan_step_id="s1"),
    ToolStarted("jira", "search", "t2", "a", "s1"),
]
_ANSWERS = [MessageEnded("supervisor", "m3"), FinalResult("Found 3.", "m3")]

CASES: Mapping[str, Sequence[Event]] = {
    "failed": [*_WORKS, Failed("timeout", "It took too long.", "Found 2.")],
    "canceled": [*_WORKS, Canceled("ann", "search: outcome unknown.")],
    "cut-off": [
        *_SAYS,
        TextDelta("supervisor", "m2", "Found"),
        TextDelta("supervisor", "m3", "Found 3.", None, "m2"),
        *_ANSWERS,
    ],
    "not-streamed": [*_SAYS, FinalResult("Found 3.", "m3")],
    "agents-text": [
        AgentStarted("jira", "a"),
        TextDelta("jira", "m2", "SHOP-1", "a"),
        MessageEnded("jira", "m2", "a"),
        Canceled(),
    ],
    "canceled-form": [*_WORKS, InputRequired((Form("f1", "Which?"),)), Canceled()],
    "two-forms": [
        *_WORKS,
        InputRequired((Form("f1", "Which?"), Form("f2", "When?"))),
        ToolFinished("jira", "search", "t2", ok=True, parent_call_id="a", plan_step_id="s1"),
        InputRequired((Form("f2", "When?"),)),
        Canceled(),
    ],
}


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("cases")
    files = {name: HERE / f"{name}.jsonl" for name in CONVERSATIONS}
    for name, events in CASES.items():
        files[name] = folder / f"{name}.jsonl"
        lines = [encode_line(Asked("?", name)), *map(encode_line, events)]
        files[name].write_text("\n".join(lines) + "\n")
    return files


@pytest.fixture(scope="module")
def of_page(recordings: Mapping[str, Path]) -> Mapping[str, list[Summary]]:
    # Where the page was built, its packages are installed.
    chromium()
    command = [PAGE, "run", "tests/summary.ts", *recordings.values()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return dict(zip(recordings, json.loads(done.stdout), strict=True))


NAMES = sorted({*CONVERSATIONS, *CASES})


@pytest.mark.parametrize("name", NAMES)
def test_the_terminal_and_the_page_agree(
    name: str, recordings: Mapping[str, Path], of_page: Mapping[str, list[Summary]]
) -> None:
    found = [summary for events in tasks(recordings[name].read_text()) for summary in _of_terminal(events)]
    assert found == [_plain(summary) for summary in of_page[name]]


@pytest.mark.parametrize("name", NAMES)
def test_slack_and_the_page_agree(
    name: str, recordings: Mapping[str, Path], of_page: Mapping[str, list[Summary]]
) -> None:
    found = [summary for events in tasks(recordings[name].read_text()) for summary in _of_slack(events)]
    shown = [_for_slack(summary) for summary in of_page[name]]
    for of_slack, summary in zip(found, shown, strict=True):
        if of_slack["failed"] is None:
            summary["failed"] = None
        assert of_slack == summary


def _plain(summary: Summary) -> Summary:
    """The page's summary in the order of the calls' ids, with all texts on one line: the terminal cleans its texts."""
    calls = [{**call, "reason": _line(call["reason"])} for call in summary["calls"]]
    answer = summary["answer"]
    return {
        **summary,
        "calls": sorted(calls, key=lambda call: call["id"]),
        "narration": list(map(_line, summary["narration"])),
        "answer": answer if answer is None else _line(answer),
    }


def _of_terminal(events: Sequence[Event]) -> Iterator[Summary]:
    view = View()
    superseded = {event.supersedes for event in events if isinstance(event, TextDelta)}
    for event in events:
        if isinstance(view.ending, InputRequired):
            view = terminal.resume_view(view)
        view = terminal.reduce(view, event)
        if view.ending is not None:
            yield _terminal_summary(view, view.ending, superseded)


def _terminal_summary(view: View, ending: Ending, superseded: set[str | None]) -> Summary:
    texts: dict[str, str] = {}
    calls: dict[str, tuple[Call, bool]] = {}
    cut_off = 0
    for entry in view.transcript:
        match entry:
            case MessageText(message_id, text) if message_id not in superseded:
                texts[message_id] = f"{texts.get(message_id, '')}\n{text}"
            case CallStarted(call):
                calls[call.call_id] = call, False
            case CallFinished(call):
                calls[call.call_id] = call, True
            case TerminalNotice(terminal.CUT_OFF):
                cut_off += 1
    answer_id = ending.answer_message_id if isinstance(ending, FinalResult) else None
    open_state = "waiting" if isinstance(ending, InputRequired) else "unknown"
    states = {"ok": "completed", "failed": "failed"}
    return {
        "steps": [
            {"title": step.title, "agent": step.agent, "status": step.status}
            for step in (view.plan.steps if view.plan else ())
        ],
        "calls": [
            {
                "id": call_id,
                "agent": call.agent,
                "tool": call.name if isinstance(call, ToolCall) else None,
                "state": states[call.state] if ended else open_state,
                "reason": call.reason,
            }
            for call_id, (call, ended) in sorted(calls.items())
        ],
        "narration": [_line(text) for message_id, text in texts.items() if message_id != answer_id],
        "answer": _line(texts[answer_id]) if answer_id else None,
        "ending": _kind(ending),
        "forms": [form.form_id for form in ending.forms] if isinstance(ending, InputRequired) else [],
        "superseded": cut_off,
    }


def _of_slack(events: Sequence[Event]) -> Iterator[Summary]:
    """Slack shows calls as the details of cards: the failed ones, and which have not ended."""
    state = State()
    for index, event in enumerate(events):
        if state.ended and state.content.outcome == "asked":
            open_form = next(asked.form.form_id for asked in state.forms if asked.note is None)
            state, _ = slack.reduce(state, slack.ReplyReceived(ThreadReply("r", "T", "U", open_form, {})), index)
            state, _ = slack.reduce(state, slack.RunResumed(), index)
        state, _ = slack.reduce(state, event, index)
        if isinstance(event, Ending):
            yield _slack_summary(state, event)


def _slack_summary(state: State, ending: Ending) -> Summary:
    content = state.content
    statuses = {"complete": "completed", "error": "failed"}
    answers = [message.text for message in content.messages if message.message_id == content.answer_id]
    return {
        "steps": [(card.title, statuses.get(card.status, "open")) for card in content.cards.steps],
        "failed": _failed_names(content.cards),
        "open": sorted(call.call_id for call in content.cards.calls),
        "answer": answers[0] if isinstance(ending, FinalResult) else None,
        "ending": _kind(ending),
        "forms": [asked.form.form_id for asked in state.forms if asked.note is None],
    }


def _failed_names(cards: Cards) -> list[str] | None:
    """The failed calls; None if a card has no room for all of them."""
    details = [detail for card in (*cards.steps, *cards.others) for detail in card.details.split(" · ")]
    if any(detail.endswith(" …") for detail in details):
        return None
    return sorted(failed[1] for detail in details if (failed := re.match(r"(.+) failed(?:: |$)", detail)))


def _for_slack(summary: Summary) -> Summary:
    calls = summary["calls"]
    return {
        "steps": [
            (
                f"[{display(step['agent'])}] {step['title']}" if step["agent"] else step["title"],
                step["status"] if step["status"] in ("completed", "failed") else "open",
            )
            for step in summary["steps"]
        ],
        "failed": sorted(call["tool"] or display(call["agent"]) for call in calls if call["state"] == "failed"),
        "open": sorted(call["id"] for call in calls if call["state"] in ("waiting", "unknown")),
        "answer": summary["answer"],
        "ending": summary["ending"],
        "forms": summary["forms"],
    }


def _kind(ending: Ending) -> str:
    return str(json.loads(encode_line(ending))["event"])


def _line(text: str) -> str:
    return " ".join(text.split())
