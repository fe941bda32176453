"""Runs for the tests of the terminal, and what is drawn of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce as fold
from io import StringIO

from rich.console import Console

from ai_platform_engineering.events import (
    SUPERVISOR,
    AgentFinished,
    AgentStarted,
    Event,
    FinalResult,
    MessageEnded,
    PlanStep,
    PlanUpdated,
    StepStatus,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.terminal.plain import plain_lines
from ai_platform_engineering.terminal.reducer import reduce
from ai_platform_engineering.terminal.rendering import UNICODE, transcript_blocks
from ai_platform_engineering.terminal.screen import live_lines
from ai_platform_engineering.terminal.view import TerminalNotice, View
from ai_platform_engineering.text.terminal_text import block_lines

ANSWER = "Jira has **two** issues.\n\n- SHOP-1\n- SHOP-2\n"


def plan(jira: StepStatus, compare: StepStatus) -> PlanUpdated:
    steps = (PlanStep("s1", "Show Jira issues", jira, 0, "jira"), PlanStep("s2", "Compare the results", compare, 1))
    return PlanUpdated(steps, "Compare issues")


def said(message_id: str, text: str) -> list[Event]:
    pieces = [TextDelta(SUPERVISOR, message_id, word) for word in text.split(" ") for word in (word, " ")][:-1]
    return [*pieces, MessageEnded(SUPERVISOR, message_id)]


BEGINNING: list[Event] = [
    *said("m1", "I'll ask Jira."),
    plan("pending", "pending"),
    AgentStarted("jira", "a1", None, "s1"),
    plan("in_progress", "pending"),
    ToolStarted("jira", "search_issues", "t1", "a1", "s1"),
]
RUN: list[Event] = [
    *BEGINNING,
    ToolFinished("jira", "search_issues", "t1", True, None, "a1", "s1"),
    ToolStarted("jira", "get_issue", "t2", "a1", "s1"),
    ToolFinished("jira", "get_issue", "t2", False, "no such issue", "a1", "s1"),
    AgentFinished("jira", "a1", True, None, None, "s1"),
    plan("completed", "pending"),
    *said("m2", ANSWER),
    plan("completed", "completed"),
    FinalResult(ANSWER, "m2"),
]


def view_of(events: Iterable[Event | TerminalNotice]) -> View:
    return fold(reduce, events, View())


def views_of(events: Iterable[Event | TerminalNotice]) -> Iterator[View]:
    view = View()
    for event in events:
        view = reduce(view, event)
        yield view


def terminal(width: int = 80, height: int = 24) -> Console:
    return Console(file=StringIO(), width=width, height=height, color_system=None, force_terminal=True)


def printed(view: View, width: int = 80) -> list[str]:
    console = terminal(width)
    blocks = transcript_blocks(view.transcript, UNICODE)
    return ["".join(part.text for part in line) for block in blocks for line in block_lines(console, block)]


def live(view: View, width: int = 80, height: int = 24) -> list[str]:
    lines = live_lines(terminal(width, height), view, UNICODE, 0)
    return ["".join(part.text for part in line) for line in lines]


def progress(view: View) -> list[str]:
    return [line.text for line in plain_lines(view.transcript) if line.channel == "progress"]


def answers(view: View) -> list[str]:
    return [line.text for line in plain_lines(view.transcript) if line.channel == "answer"]
