"""The transcript as plain lines, for pipes and logs: the answer on one channel, everything else as progress."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ai_platform_engineering.events import Canceled, Failed, FinalResult, InputRequired, PlanStep, StepStatus
from ai_platform_engineering.terminal import wording
from ai_platform_engineering.terminal.view import (
    CallFinished,
    CallStarted,
    Delegation,
    MessageText,
    PlanChanged,
    PlanShown,
    RunEnded,
    TerminalNotice,
    ToolCall,
    TranscriptEntry,
)
from ai_platform_engineering.utils.characters import clean

_BOXES: Final[dict[StepStatus, str]] = {"pending": "[ ]", "in_progress": "[ ]", "completed": "[x]", "failed": "[!]"}


@dataclass(frozen=True, slots=True)
class PlainLine:
    """One or more lines of text that belong together."""

    channel: Literal["answer", "progress"]
    text: str


def plain_lines(transcript: Sequence[TranscriptEntry]) -> list[PlainLine]:
    """The lines of the transcript; a longer transcript only adds lines.

    The last message is pending until it is clear whether it is the answer.
    """
    lines: list[PlainLine] = []
    pending: list[MessageText] = []
    heading: str | None = None
    for entry in transcript:
        match entry:
            case MessageText():
                lines += _progress(message.text for message in pending if message.message_id != entry.message_id)
                pending = [*(message for message in pending if message.message_id == entry.message_id), entry]
            case CallStarted(call):
                lines += _progress(message.text for message in pending)
                pending = []
                if isinstance(call, Delegation):
                    lines += _progress([wording.calling(call)])
            case CallFinished(call):
                lines += _progress([_finished(call)])
            case PlanChanged(title, new, changed):
                if new:
                    # New steps mean more work, so the pending message is not the answer.
                    lines += _progress(message.text for message in pending)
                    pending = []
                if title != heading or not lines:
                    lines += _progress([wording.plan_heading(title)])
                    heading = title
                steps = [*new, *(step for step in changed if step.status in {"completed", "failed"})]
                lines += _progress(f"  {_step(step)}" for step in steps)
            case TerminalNotice(text):
                lines += _progress([text])
            case RunEnded():
                lines += _ended(entry, pending)
                pending = []
            case PlanShown():
                pass
    return lines


def _progress(texts: Iterable[str]) -> list[PlainLine]:
    return [PlainLine("progress", text) for text in texts]


def _finished(call: ToolCall | Delegation) -> str:
    indent = "" if isinstance(call, Delegation) else "  "
    return f"{indent}{wording.name_of(call)}: {'ok' if call.state == 'ok' else wording.failed(call.reason)}"


def _step(step: PlanStep) -> str:
    return f"{_BOXES[step.status]} {wording.step(step)}"


def _ended(entry: RunEnded, pending: Sequence[MessageText]) -> list[PlainLine]:
    tools = (tool for call in entry.waiting if isinstance(call, Delegation) for tool in call.tools)
    open_calls = [*entry.waiting, *(tool for tool in tools if tool.state == "running")]
    waiting = _progress(f"{wording.name_of(call)}: waiting" for call in open_calls)
    match entry.ending:
        case FinalResult() as result:
            lines = _progress(message.text for message in pending if message.message_id != result.answer_message_id)
            lines += _progress(wording.result_notes(result))
            return [*lines, *waiting, PlainLine("answer", clean(result.text).strip("\n"))]
        case Failed() as failure:
            texts = [message.text for message in pending]
            return _progress([*texts, *wording.partial_lines(failure), wording.failure(failure)])
        case Canceled() as canceled:
            return _progress([*(message.text for message in pending), wording.canceled(canceled)])
        case InputRequired() as question:
            texts = [message.text for message in pending]
            return [*_progress(texts), *waiting, *_progress(wording.question_lines(question))]
