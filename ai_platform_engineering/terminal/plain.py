"""A view as plain lines, for pipes and logs: the answer by itself, everything else as progress."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ai_platform_engineering.events import Canceled, Failed, FinalResult, InputRequired, PlanStep, StepStatus
from ai_platform_engineering.terminal import words
from ai_platform_engineering.terminal.view import (
    Delegation,
    Ended,
    Fact,
    Finished,
    Notice,
    Planned,
    PlanShown,
    Spoke,
    Started,
    Tool,
)
from ai_platform_engineering.text.plain_text import clean

_BOXES: Final[dict[StepStatus, str]] = {"pending": "[ ]", "in_progress": "[ ]", "completed": "[x]", "failed": "[!]"}


@dataclass(frozen=True, slots=True)
class PlainLine:
    """One or more lines of text that belong together."""

    channel: Literal["answer", "progress"]
    text: str


def plain_lines(facts: Sequence[Fact]) -> list[PlainLine]:
    """The lines so far; more facts only add to them.

    The last message is kept back until it is clear whether it is the answer.
    """
    lines: list[PlainLine] = []
    held: list[Spoke] = []
    heading: str | None = None
    for fact in facts:
        match fact:
            case Spoke():
                lines += _progress(spoke.text for spoke in held if spoke.message_id != fact.message_id)
                held = [*(spoke for spoke in held if spoke.message_id == fact.message_id), fact]
            case Started(call):
                lines += _progress(spoke.text for spoke in held)
                held = []
                if isinstance(call, Delegation):
                    lines += _progress([words.calling(call)])
            case Finished(call):
                lines += _progress([_finished(call)])
            case Planned(title, new, changed):
                if new:
                    # New steps mean that there is work to come, so what was said before is not the answer.
                    lines += _progress(spoke.text for spoke in held)
                    held = []
                if title != heading or not lines:
                    lines += _progress([words.plan_heading(title)])
                    heading = title
                told = [*new, *(step for step in changed if step.status in {"completed", "failed"})]
                lines += _progress(f"  {_step(step)}" for step in told)
            case Notice(text):
                lines += _progress([text])
            case Ended():
                lines += _ended(fact, held)
                held = []
            case PlanShown():
                pass
    return lines


def _progress(texts: Iterable[str]) -> list[PlainLine]:
    return [PlainLine("progress", text) for text in texts]


def _finished(call: Tool | Delegation) -> str:
    indent = "" if isinstance(call, Delegation) else "  "
    return f"{indent}{words.name_of(call)}: {'ok' if call.state == 'ok' else words.failed(call.reason)}"


def _step(step: PlanStep) -> str:
    return f"{_BOXES[step.status]} {words.step(step)}"


def _ended(fact: Ended, held: Sequence[Spoke]) -> list[PlainLine]:
    tools = (tool for call in fact.waiting if isinstance(call, Delegation) for tool in call.tools)
    still = [*fact.waiting, *(tool for tool in tools if tool.state == "running")]
    waiting = _progress(f"{words.name_of(call)}: waiting" for call in still)
    match fact.ending:
        case FinalResult() as result:
            lines = _progress(spoke.text for spoke in held if spoke.message_id != result.answer_message_id)
            lines += _progress(words.limit_lines(result))
            return [*lines, *waiting, PlainLine("answer", clean(result.text).strip("\n"))]
        case Failed() as failure:
            told = [spoke.text for spoke in held]
            return _progress([*told, *words.partial_lines(failure), words.failure(failure)])
        case Canceled() as canceled:
            return _progress([*(spoke.text for spoke in held), words.canceled(canceled)])
        case InputRequired() as question:
            told = [spoke.text for spoke in held]
            return [*_progress(told), *waiting, *_progress(words.question_lines(question))]
