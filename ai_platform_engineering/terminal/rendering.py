"""A view as rich renderables: the transcript, which is printed once, and the live part."""

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
from ai_platform_engineering.terminal import wording
from ai_platform_engineering.terminal.view import (
    Call,
    CallFinished,
    CallState,
    Delegation,
    MessageText,
    PlanShown,
    RunEnded,
    TerminalNotice,
    ToolCall,
    TranscriptEntry,
    View,
    closing_steps,
)
from ai_platform_engineering.text.terminal_text import TerminalMarkdown

RECENT_TOOLS: Final = 5
"""Tool calls of an agent that are shown while it runs. All of them are shown when it has ended."""


@dataclass(frozen=True, slots=True)
class Symbols:
    """The symbols in front of lines; `running` has the frames of the spinner."""

    ok: str
    failed: str
    pending: str
    waiting: str
    running: str
    prompt: str


UNICODE: Final = Symbols("✓", "✗", "○", "?", "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "›")
ASCII: Final = Symbols("+", "x", "o", "?", "|/-\\", ">")


def symbols_for(encoding: str) -> Symbols:
    return UNICODE if encoding.lower().replace("-", "").startswith("utf") else ASCII


def question(text: str, symbols: Symbols) -> RenderableType:
    return _SymbolLine(symbols.prompt, "cyan", Text(text, style="bold"))


def transcript_blocks(
    transcript: Sequence[TranscriptEntry], symbols: Symbols, after: int = 0, *, with_forms: bool = True
) -> list[RenderableType]:
    """The blocks of the entries after the first `after` ones, separated by empty lines."""
    printed: list[RenderableType] = []
    previous = next(
        (entry for entry in reversed(transcript[:after]) if _block(entry, symbols, with_forms) is not None), None
    )
    for entry in transcript[after:]:
        block = _block(entry, symbols, with_forms)
        if block is None:
            continue
        grouped = isinstance(previous, CallFinished | TerminalNotice) and isinstance(entry, type(previous))
        if previous is not None and not grouped:
            printed.append(Text())
        printed.append(block)
        previous = entry
    return printed


def _block(entry: TranscriptEntry, symbols: Symbols, with_forms: bool) -> RenderableType | None:
    match entry:
        case MessageText(text=text):
            return TerminalMarkdown(text)
        case CallFinished(call, inner=False):
            return _finished(call, symbols)
        case PlanShown(title, steps):
            return _plan(title, steps, symbols)
        case TerminalNotice(text):
            return Text(text, style="yellow")
        case RunEnded():
            return _ended(entry, symbols, with_forms)
        case _:
            return None


def live_blocks(view: View, symbols: Symbols, frame: int = 0) -> tuple[list[RenderableType], ...]:
    """The live part: partial messages, running calls, the plan."""
    if view.ending is not None:
        return ([], [], [])
    texts: list[RenderableType] = [
        TerminalMarkdown(partial.text) for partial in view.partial_messages if partial.text.strip()
    ]
    calls = [_running(call, symbols, frame) for call in view.calls]
    plan = [_live_plan(view.plan, closing_steps(view), symbols, frame)] if view.plan_is_live and view.plan else []
    if not (texts or calls):
        texts = [_SymbolLine(_spinner(symbols, frame), "cyan", Text("Working...", style="dim"))]
    return texts, calls, plan


def _finished(call: Call, symbols: Symbols) -> RenderableType:
    symbol, style = _state_symbol(call.state, symbols)
    match call:
        case Delegation():
            head = _SymbolLine(symbol, style, Text(wording.outcome(call)))
            return Group(head, *(_tool(tool, call.agent, symbols, count) for tool, count in _counted(call.tools)))
        case ToolCall():
            return _tool(call, "", symbols, 1, indent=0)


def _running(call: Call, symbols: Symbols, frame: int) -> RenderableType:
    symbol = _spinner(symbols, frame)
    match call:
        case Delegation():
            recent = _counted(call.tools)
            hidden = len(recent) - RECENT_TOOLS
            lines: list[RenderableType] = [_SymbolLine(symbol, "cyan", _short(wording.calling(call)))]
            if hidden > 0:
                lines.append(Padding(_short(f"... {hidden} before", "dim"), (0, 0, 0, 4)))
            lines += [
                _tool(tool, call.agent, symbols, count, frame=frame, short=True)
                for tool, count in recent[max(0, hidden) :]
            ]
            return Group(*lines)
        case ToolCall():
            return _tool(call, "", symbols, 1, indent=0, frame=frame, short=True)


def _waiting(call: Call, symbols: Symbols) -> RenderableType:
    head = _SymbolLine(symbols.waiting, "yellow", Text(wording.name_of(call)))
    static = replace(symbols, running=symbols.waiting)
    tools = _counted(call.tools) if isinstance(call, Delegation) else []
    return Group(head, *(_tool(tool, call.agent, static, count) for tool, count in tools))


def _counted(tools: Iterable[ToolCall]) -> list[tuple[ToolCall, int]]:
    """The tool calls in order; equal calls in a row are one entry with their number."""
    groups = groupby(tools, key=lambda tool: (tool.agent, wording.tool_name(tool), tool.state, tool.reason))
    return [(same[0], len(same)) for _, group in groups if (same := list(group))]


def _tool(
    tool: ToolCall, agent: str, symbols: Symbols, count: int, *, indent: int = 4, frame: int = 0, short: bool = False
) -> RenderableType:
    symbol, style = (
        (_spinner(symbols, frame), "cyan") if tool.state == "running" else _state_symbol(tool.state, symbols)
    )
    name = wording.tool_name(tool) if tool.agent == agent else wording.tool_of_agent(tool)
    text = Text(name if count == 1 else f"{name} x{count}", style="dim" if tool.state == "ok" else "")
    if tool.state == "failed":
        text.append(f" {wording.failed(tool.reason)}", style="red")
    if short:
        text.no_wrap, text.overflow = True, "ellipsis"
    return Padding(_SymbolLine(symbol, style, text), (0, 0, 0, indent))


def _live_plan(plan: PlanUpdated, closing: Sequence[PlanStep], symbols: Symbols, frame: int) -> RenderableType:
    return _plan(None, closing, symbols, frame) if closing else _plan(plan.title, plan.steps, symbols, frame)


def _plan(title: str | None, steps: Iterable[PlanStep], symbols: Symbols, frame: int | None = None) -> RenderableType:
    """The plan. With a `frame` it is live: lines are cut instead of wrapped, and a running step has a spinner."""
    live = frame is not None
    lines: list[RenderableType] = []
    if title is not None:
        heading = wording.plan_heading(title)
        lines.append(_short(heading, "bold") if live else Text(heading, style="bold"))
    for step in steps:
        text = _short(wording.step(step)) if live else Text(wording.step(step))
        match step.status:
            case "completed":
                symbol, style = _state_symbol("ok", symbols)
            case "failed":
                symbol, style = _state_symbol("failed", symbols)
            case "in_progress" if frame is not None:
                symbol, style = _spinner(symbols, frame), "cyan"
            case _:
                symbol, style = symbols.pending, "dim"
        lines.append(Padding(_SymbolLine(symbol, style, text), (0, 0, 0, 2)))
    return Group(*lines)


def _ended(entry: RunEnded, symbols: Symbols, with_forms: bool) -> RenderableType | None:
    match entry.ending:
        case FinalResult() as result:
            lines = wording.result_notes(result)
            return Group(*(Text(line, style="yellow") for line in lines)) if lines else None
        case Failed() as failure:
            heading, *partial = wording.partial_lines(failure) or [""]
            parts: list[RenderableType] = [Text(heading, style="dim")] if heading else []
            parts += [part for text in partial for part in (TerminalMarkdown(text), Text())]
            return Group(*parts, _SymbolLine(symbols.failed, "red", Text(wording.failure(failure))))
        case Canceled() as canceled:
            return _SymbolLine(symbols.failed, "yellow", Text(wording.canceled(canceled)))
        case InputRequired() as needed:
            waiting = [_waiting(call, symbols) for call in entry.waiting]
            asked = [Text(line, style="yellow") for line in wording.question_lines(needed)] if with_forms else []
            return Group(*waiting, *asked) if waiting or asked else None


def _state_symbol(state: CallState, symbols: Symbols) -> tuple[str, str]:
    return (symbols.ok, "green") if state == "ok" else (symbols.failed, "red")


def _spinner(symbols: Symbols, frame: int) -> str:
    return symbols.running[frame % len(symbols.running)]


def _short(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


@dataclass(frozen=True, slots=True)
class _SymbolLine:
    """A symbol and text; wrapped lines are indented by the width of the symbol."""

    symbol: str
    style: str
    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        symbol = Segment(f"{self.symbol} ", console.get_style(self.style))
        indent = symbol.cell_length
        inner = options.update(width=max(1, options.max_width - indent))
        for number, line in enumerate(console.render_lines(self.text, inner, pad=False)):
            yield symbol if number == 0 else Segment(" " * indent)
            yield from line
            yield Segment.line()
