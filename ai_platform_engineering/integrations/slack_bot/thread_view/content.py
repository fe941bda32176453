"""The content of a run for people in Slack: append-only text, cards, files and the outcome. Pure.

`splitting` divides the text into messages; `state` records which of it Slack has confirmed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Literal

from pydantic import Field

from ai_platform_engineering.events import (
    SUPERVISOR,
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    Failed,
    FinalResult,
    InputRequired,
    MessageEnded,
    PlanUpdated,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.final_results import is_silence
from ai_platform_engineering.integrations.slack_bot import words
from ai_platform_engineering.integrations.slack_bot.markdown.mentions import disarm_code_mentions
from ai_platform_engineering.integrations.slack_bot.thread_view import cards
from ai_platform_engineering.integrations.slack_bot.thread_view.cards import Cards
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import File
from ai_platform_engineering.integrations.slack_bot.thread_view.presentation import Presented, present

PARAGRAPH: Final = "\n\n"
Outcome = Literal["answered", "failed", "canceled", "asked"]


@dataclass(frozen=True, slots=True)
class SupervisorMessage:
    """A message of the supervisor, with the text received so far."""

    message_id: str
    text: str
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """`held` are messages after an agent's report, which may repeat the report. They are dropped when the next agent
    starts, shown when a tool of the supervisor starts, and replaced by the final answer."""

    previous_text: Annotated[str, Field(alias="told")] = ""
    """The text before the last form."""
    previous_files: Annotated[tuple[File, ...], Field(alias="told_files")] = ()
    messages: Annotated[tuple[SupervisorMessage, ...], Field(alias="speeches")] = ()
    held: tuple[SupervisorMessage, ...] = ()
    holding: bool = False
    cards: Cards = field(default_factory=Cards)
    plan_offset: Annotated[int, Field(alias="plan_at")] = 0
    """Length of the text when the first card appeared: the plan is shown below that text."""
    outcome: Outcome | None = None
    answer_id: str = ""
    closing: str = ""
    inline_files: Annotated[tuple[File, ...], Field(alias="unfiled")] = ()
    """Files that Slack rejected: their content is shown as text."""


def apply_event(content: Content, event: Event, stopped_by: str = "") -> Content:
    after = _apply(content, event, stopped_by)
    if content.cards.all or not after.cards.all:
        return after
    return replace(after, plan_offset=len(text_of(after)))


def _apply(content: Content, event: Event, stopped_by: str) -> Content:
    match event:
        case TextDelta(agent=agent, parent_call_id=None) if agent == SUPERVISOR:
            after = _write(content, event)
        case MessageEnded(parent_call_id=None):
            after = _end_message(content, event.message_id)
        case AgentStarted() | ToolStarted():
            after = _start(content, event)
        case AgentFinished():
            after = replace(content, cards=cards.finished(content.cards, event), holding=True)
        case ToolFinished():
            after = replace(content, cards=cards.finished(content.cards, event))
        case PlanUpdated():
            after = _plan(content, event)
        case FinalResult():
            after = _answer(content, event)
        case Failed(partial=partial):
            after = _end(_with_partial(_released(content), partial or ""), "failed", words.closing(event))
        case Canceled():
            after = _end(_released(content), "canceled", words.closing(event, stopped_by))
        case InputRequired():
            asked = _ended_messages(_released(content))
            after = replace(asked, cards=replace(asked.cards, waiting=True), outcome="asked")
        case _:
            after = content
    return after


def resume(content: Content) -> Content:
    """The content after a form was answered: the text so far stays, and new text is added below it."""
    text, files = text_of(content), files_of(content)
    running = replace(content.cards, waiting=False)
    return replace(
        content,
        previous_text=text,
        previous_files=files,
        messages=(),
        cards=running,
        outcome=None,
        closing="",
        inline_files=(),
    )


def text_of(content: Content) -> str:
    """The whole text. Later results always begin with earlier ones."""
    parts = [content.previous_text, _presented(content).text, content.closing]
    parts += map(_as_code_block, content.inline_files)
    return PARAGRAPH.join(part for part in parts if part.strip())


def files_of(content: Content) -> tuple[File, ...]:
    """The files attached to the text."""
    return content.previous_files + _presented(content).files


def _presented(content: Content) -> Presented:
    return present(raw_text(content), complete=content.outcome is not None)


def _as_code_block(file: File) -> str:
    """A file as a code block, with a fence longer than any run of backticks in it."""
    longest = max(map(len, re.findall("`+", file.content)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"**{file.title}**\n{fence}\n{disarm_code_mentions(file.content)}\n{fence}"


def raw_text(content: Content) -> str:
    """The supervisor's messages in order. A message is included once all earlier ones have ended."""
    texts = []
    for message in content.messages:
        if message.text.strip() and not is_silence(message.text):
            texts.append(message.text)
        if not message.ended:
            break
    return PARAGRAPH.join(texts)


def _write(content: Content, delta: TextDelta) -> Content:
    if delta.supersedes is not None:
        content = _superseded(content, delta.supersedes)
    if content.holding and not _contains(content.messages, delta.message_id):
        return replace(content, held=_with_delta(content.held, delta))
    return replace(content, messages=_with_delta(content.messages, delta))


def _with_delta(messages: tuple[SupervisorMessage, ...], delta: TextDelta) -> tuple[SupervisorMessage, ...]:
    if not _contains(messages, delta.message_id):
        return (*messages, SupervisorMessage(delta.message_id, delta.text))
    return tuple(
        replace(message, text=message.text + delta.text) if message.message_id == delta.message_id else message
        for message in messages
    )


def _superseded(content: Content, message_id: str) -> Content:
    """Replace a message that a crash has cut off. If it was already shown, a notice follows it."""
    if not _contains(content.messages, message_id):
        return replace(content, held=tuple(message for message in content.held if message.message_id != message_id))
    notice = SupervisorMessage(f"{message_id}:cut-off", words.CUT_OFF, ended=True)
    ended = _end_message(content, message_id)
    return replace(ended, messages=(*ended.messages, notice))


def _end_message(content: Content, message_id: str) -> Content:
    def ended(messages: tuple[SupervisorMessage, ...]) -> tuple[SupervisorMessage, ...]:
        return tuple(replace(one, ended=True) if one.message_id == message_id else one for one in messages)

    return replace(content, messages=ended(content.messages), held=ended(content.held))


def _ended_messages(content: Content) -> Content:
    return replace(content, messages=tuple(replace(message, ended=True) for message in content.messages))


def _released(content: Content) -> Content:
    return replace(content, messages=content.messages + content.held, held=(), holding=False)


def _start(content: Content, event: AgentStarted | ToolStarted) -> Content:
    if event.parent_call_id is None:
        content = _dropped(content) if isinstance(event, AgentStarted) else _released(content)
    return replace(content, cards=cards.started(content.cards, event))


def _dropped(content: Content) -> Content:
    return replace(content, held=(), holding=False)


def _plan(content: Content, event: PlanUpdated) -> Content:
    planned = cards.planned(content.cards, event)
    # A new step starts. Held text belongs to a step of the supervisor itself, not to a step of an agent.
    if begun := planned.active - content.cards.active:
        is_own = any(not step.agent for step in event.steps if cards.step_id(step.id) in begun)
        content = _released(content) if is_own else _dropped(content)
    return replace(content, cards=planned)


def _answer(content: Content, event: FinalResult) -> Content:
    """Show the answer once. If part of it was streamed already, only the rest is added."""
    messages = _with_message(content.messages, SupervisorMessage(event.answer_message_id, event.text, ended=True))
    ended = replace(content, messages=messages, held=(), holding=False, answer_id=event.answer_message_id)
    return _end(ended, "answered", words.closing(event))


def _with_partial(content: Content, partial: str) -> Content:
    if not partial.strip() or partial.strip() in raw_text(_ended_messages(content)):
        return content
    return replace(content, messages=_with_message(content.messages, SupervisorMessage("partial", partial, ended=True)))


def _with_message(messages: tuple[SupervisorMessage, ...], whole: SupervisorMessage) -> tuple[SupervisorMessage, ...]:
    """The messages with `whole`. It completes the message with its id, or the last one, if that is its beginning."""
    last = messages[-1] if messages and messages[-1].text.strip() else None
    begun = next((message for message in messages if message.message_id == whole.message_id), last)
    text = None if begun is None else _completed(begun.text, whole.text)
    if text is None:
        return (*messages, whole)
    return tuple(replace(whole, text=text) if message is begun else message for message in messages)


def _completed(begun: str, whole: str) -> str | None:
    """`begun` with the rest of `whole`; None if `whole` does not continue it. Surrounding whitespace is ignored."""
    indent = begun[: len(begun) - len(begun.lstrip())]
    if whole.lstrip().startswith(begun.lstrip()):
        return indent + whole.lstrip()
    return begun if whole.strip() == begun.strip() else None


def _end(content: Content, outcome: Outcome, closing: str) -> Content:
    ended = _ended_messages(content)
    return replace(ended, cards=cards.ended(ended.cards), outcome=outcome, closing=closing)


def _contains(messages: tuple[SupervisorMessage, ...], message_id: str) -> bool:
    return any(message.message_id == message_id for message in messages)
