"""A view as rich renderables: facts, which are printed once, and the part that is still changing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from ai_platform_engineering.events import Canceled, Failed, FinalResult, InputRequired, PlanStep, PlanUpdated
from ai_platform_engineering.terminal import words
from ai_platform_engineering.terminal.view import (
    Call,
    CallState,
    Delegation,
    Ended,
    Fact,
    Finished,
    Notice,
    PlanShown,
    Spoke,
    Tool,
    View,
    closing_steps,
)
from ai_platform_engineering.text.terminal_markdown import TerminalMarkdown

RECENT_TOOLS: Final = 5
"""How many tools of an agent are shown while it works; all of them when it is done."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The signs before lines; `running` are the pictures of one that moves."""

    ok: str
    failed: str
    pending: str
    waiting: str
    running: str
    prompt: str


UNICODE: Final = Marks("✓", "✗", "○", "?", "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "›")
ASCII: Final = Marks("+", "x", "o", "?", "|/-\\", ">")


def marks_for(encoding: str) -> Marks:
    return UNICODE if encoding.lower().replace("-", "").startswith("utf") else ASCII


def question(text: str, marks: Marks) -> RenderableType:
    return _marked(marks.prompt, "cyan", Text(text, style="bold"))


def fact_blocks(
    facts: Sequence[Fact], marks: Marks, after: int = 0, *, with_forms: bool = True
) -> list[RenderableType]:
    """What is printed of the facts after the first `after` ones, each with the empty line that parts it from others."""
    printed: list[RenderableType] = []
    previous = next((fact for fact in reversed(facts[:after]) if _block(fact, marks, with_forms) is not None), None)
    for fact in facts[after:]:
        block = _block(fact, marks, with_forms)
        if block is None:
            continue
        beside = isinstance(previous, Finished | Notice) and isinstance(fact, type(previous))
        if previous is not None and not beside:
            printed.append(Text())
        printed.append(block)
        previous = fact
    return printed


def _block(fact: Fact, marks: Marks, with_forms: bool) -> RenderableType | None:
    match fact:
        case Spoke(text=text):
            return TerminalMarkdown(text)
        case Finished(call, inner=False):
            return _finished(call, marks)
        case PlanShown(title, steps):
            return _plan(title, steps, marks)
        case Notice(text):
            return Text(text, style="yellow")
        case Ended():
            return _ended(fact, marks, with_forms)
        case _:
            return None


def live_blocks(view: View, marks: Marks, frame: int = 0) -> tuple[list[RenderableType], ...]:
    """The changing part: text that is being written, calls that are running, the plan."""
    if view.ending is not None:
        return ([], [], [])
    texts: list[RenderableType] = [TerminalMarkdown(speech.text) for speech in view.speeches if speech.text.strip()]
    calls = [_running(call, marks, frame) for call in view.calls]
    plan = [_live_plan(view.plan, closing_steps(view), marks, frame)] if view.plan_is_live and view.plan else []
    if not (texts or calls):
        texts = [_marked(_spinner(marks, frame), "cyan", Text("Working...", style="dim"))]
    return texts, calls, plan


def _finished(call: Call, marks: Marks) -> RenderableType:
    mark, style = _sign(call.state, marks)
    match call:
        case Delegation():
            head = _marked(mark, style, Text(words.outcome(call)))
            return Group(head, *(_tool(tool, call.agent, marks, count) for tool, count in _counted(call.tools)))
        case Tool():
            return _tool(call, "", marks, 1, indent=0)


def _running(call: Call, marks: Marks, frame: int) -> RenderableType:
    mark = _spinner(marks, frame)
    match call:
        case Delegation():
            recent = _counted(call.tools)
            hidden = len(recent) - RECENT_TOOLS
            lines: list[RenderableType] = [_marked(mark, "cyan", _short(words.calling(call)))]
            if hidden > 0:
                lines.append(Padding(_short(f"... {hidden} before", "dim"), (0, 0, 0, 4)))
            lines += [
                _tool(tool, call.agent, marks, count, frame=frame, short=True)
                for tool, count in recent[max(0, hidden) :]
            ]
            return Group(*lines)
        case Tool():
            return _tool(call, "", marks, 1, indent=0, frame=frame, short=True)


def _waiting(call: Call, marks: Marks) -> RenderableType:
    head = _marked(marks.waiting, "yellow", Text(words.name_of(call)))
    still = replace(marks, running=marks.waiting)
    tools = _counted(call.tools) if isinstance(call, Delegation) else []
    return Group(head, *(_tool(tool, call.agent, still, count) for tool, count in tools))


def _counted(tools: Iterable[Tool]) -> list[tuple[Tool, int]]:
    """Tools in order, those that ended alike in a row as one with their number."""
    groups = groupby(tools, key=lambda tool: (tool.agent, words.tool_name(tool), tool.state, tool.reason))
    return [(same[0], len(same)) for _, group in groups if (same := list(group))]


def _tool(
    tool: Tool, agent: str, marks: Marks, count: int, *, indent: int = 4, frame: int = 0, short: bool = False
) -> RenderableType:
    mark, style = (_spinner(marks, frame), "cyan") if tool.state == "running" else _sign(tool.state, marks)
    name = words.tool_name(tool) if tool.agent == agent else words.tool_of_agent(tool)
    text = Text(name if count == 1 else f"{name} x{count}", style="dim" if tool.state == "ok" else "")
    if tool.state == "failed":
        text.append(f" {words.failed(tool.reason)}", style="red")
    if short:
        text.no_wrap, text.overflow = True, "ellipsis"
    return Padding(_marked(mark, style, text), (0, 0, 0, indent))


def _live_plan(plan: PlanUpdated, closing: Sequence[PlanStep], marks: Marks, frame: int) -> RenderableType:
    return _plan(None, closing, marks, frame) if closing else _plan(plan.title, plan.steps, marks, frame)


def _plan(title: str | None, steps: Iterable[PlanStep], marks: Marks, frame: int | None = None) -> RenderableType:
    """The plan; `frame` while it is live, when lines are cut rather than wrapped and a step can be seen to run."""
    live = frame is not None
    lines: list[RenderableType] = []
    if title is not None:
        heading = words.plan_heading(title)
        lines.append(_short(heading, "bold") if live else Text(heading, style="bold"))
    for step in steps:
        text = _short(words.step(step)) if live else Text(words.step(step))
        match step.status:
            case "completed":
                mark, style = _sign("ok", marks)
            case "failed":
                mark, style = _sign("failed", marks)
            case "in_progress" if frame is not None:
                mark, style = _spinner(marks, frame), "cyan"
            case _:
                mark, style = marks.pending, "dim"
        lines.append(Padding(_marked(mark, style, text), (0, 0, 0, 2)))
    return Group(*lines)


def _ended(fact: Ended, marks: Marks, with_forms: bool) -> RenderableType | None:
    match fact.ending:
        case FinalResult() as result:
            lines = words.limit_lines(result)
            return Group(*(Text(line, style="yellow") for line in lines)) if lines else None
        case Failed() as failure:
            heading, *partial = words.partial_lines(failure) or [""]
            parts: list[RenderableType] = [Text(heading, style="dim")] if heading else []
            parts += [part for text in partial for part in (TerminalMarkdown(text), Text())]
            return Group(*parts, _marked(marks.failed, "red", Text(words.failure(failure))))
        case Canceled() as canceled:
            return _marked(marks.failed, "yellow", Text(words.canceled(canceled)))
        case InputRequired() as needed:
            waiting = [_waiting(call, marks) for call in fact.waiting]
            asked = [Text(line, style="yellow") for line in words.question_lines(needed)] if with_forms else []
            return Group(*waiting, *asked) if waiting or asked else None


def _sign(state: CallState, marks: Marks) -> tuple[str, str]:
    return (marks.ok, "green") if state == "ok" else (marks.failed, "red")


def _spinner(marks: Marks, frame: int) -> str:
    return marks.running[frame % len(marks.running)]


def _short(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _marked(mark: str, style: str, text: Text) -> RenderableType:
    return _Marked(mark, style, text)


@dataclass(frozen=True, slots=True)
class _Marked:
    """Text after a mark; where it needs more lines, they begin below the text."""

    mark: str
    style: str
    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        mark = Segment(f"{self.mark} ", console.get_style(self.style))
        indent = mark.cell_length
        inner = options.update(width=max(1, options.max_width - indent))
        for number, line in enumerate(console.render_lines(self.text, inner, pad=False)):
            yield mark if number == 0 else Segment(" " * indent)
            yield from line
            yield Segment.line()
