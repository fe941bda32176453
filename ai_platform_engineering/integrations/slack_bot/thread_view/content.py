"""What a run has to tell people in Slack: text that only ever grows, cards, files, and the end. Pure.

How it is cut into messages, and what of it has arrived, is not known here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final, Literal

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
from ai_platform_engineering.integrations.slack_bot import words
from ai_platform_engineering.integrations.slack_bot.markdown.mentions import silent_code
from ai_platform_engineering.integrations.slack_bot.thread_view import cards
from ai_platform_engineering.integrations.slack_bot.thread_view.cards import Cards
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import File
from ai_platform_engineering.integrations.slack_bot.thread_view.presentation import Presented, present
from ai_platform_engineering.utils.silence import is_silence

PARAGRAPH: Final = "\n\n"
Outcome = Literal["answered", "failed", "canceled", "asked"]


@dataclass(frozen=True, slots=True)
class Speech:
    """A message of the supervisor, as far as it has come."""

    message_id: str
    text: str
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Telling:
    """`held` was said after an agent had reported, so it may repeat the report. It is dropped when the next agent
    begins, shown when a tool of the supervisor begins, and replaced by the answer when that comes."""

    told: str = ""
    """What was told before people were asked."""
    told_files: tuple[File, ...] = ()
    speeches: tuple[Speech, ...] = ()
    held: tuple[Speech, ...] = ()
    holding: bool = False
    cards: Cards = field(default_factory=Cards)
    plan_at: int = 0
    """How much text there was when the first card came: the plan stands below it."""
    outcome: Outcome | None = None
    answer_id: str = ""
    closing: str = ""
    unfiled: tuple[File, ...] = ()
    """Files that Slack did not take: their content is told as text."""


def tell(telling: Telling, event: Event, stopped_by: str = "") -> Telling:
    after = _tell(telling, event, stopped_by)
    if telling.cards.all or not after.cards.all:
        return after
    return replace(after, plan_at=len(text_of(after)))


def _tell(telling: Telling, event: Event, stopped_by: str) -> Telling:
    match event:
        case TextDelta(agent=agent, parent_call_id=None) if agent == SUPERVISOR:
            after = _write(telling, event)
        case MessageEnded(parent_call_id=None):
            after = _end_message(telling, event.message_id)
        case AgentStarted() | ToolStarted():
            after = _begun(telling, event)
        case AgentFinished():
            after = replace(telling, cards=cards.finished(telling.cards, event), holding=True)
        case ToolFinished():
            after = replace(telling, cards=cards.finished(telling.cards, event))
        case PlanUpdated():
            after = _plan(telling, event)
        case FinalResult():
            after = _answer(telling, event)
        case Failed(partial=partial):
            after = _end(_with_partial(_released(telling), partial or ""), "failed", words.closing(event))
        case Canceled():
            after = _end(_released(telling), "canceled", words.closing(event, stopped_by))
        case InputRequired():
            asked = _ended_messages(_released(telling))
            after = replace(asked, cards=replace(asked.cards, waiting=True), outcome="asked")
        case _:
            after = telling
    return after


def go_on(telling: Telling) -> Telling:
    """People have answered: what was told stays, and what comes is told below it."""
    text, files = text_of(telling), files_of(telling)
    under_way = replace(telling.cards, waiting=False)
    return replace(
        telling,
        told=text,
        told_files=files,
        speeches=(),
        cards=under_way,
        outcome=None,
        closing="",
        unfiled=(),
    )


def text_of(telling: Telling) -> str:
    """All text so far, of which what was given before is the beginning."""
    parts = [telling.told, _presented(telling).text, telling.closing]
    parts += map(_in_text, telling.unfiled)
    return PARAGRAPH.join(part for part in parts if part.strip())


def files_of(telling: Telling) -> tuple[File, ...]:
    """The files that belong to the text."""
    return telling.told_files + _presented(telling).files


def _presented(telling: Telling) -> Presented:
    return present(raw_text(telling), complete=telling.outcome is not None)


def _in_text(file: File) -> str:
    """A file as code, with marks that nothing in it can close."""
    longest = max(map(len, re.findall("`+", file.content)), default=0)
    mark = "`" * max(3, longest + 1)
    return f"**{file.title}**\n{mark}\n{silent_code(file.content)}\n{mark}"


def raw_text(telling: Telling) -> str:
    """What the supervisor has said, one message after the other: a later one waits until those before have ended."""
    texts = []
    for speech in telling.speeches:
        if speech.text.strip() and not is_silence(speech.text):
            texts.append(speech.text)
        if not speech.ended:
            break
    return PARAGRAPH.join(texts)


def _write(telling: Telling, delta: TextDelta) -> Telling:
    if delta.supersedes is not None:
        telling = _superseded(telling, delta.supersedes)
    if telling.holding and not _is_in(telling.speeches, delta.message_id):
        return replace(telling, held=_longer(telling.held, delta))
    return replace(telling, speeches=_longer(telling.speeches, delta))


def _longer(speeches: tuple[Speech, ...], delta: TextDelta) -> tuple[Speech, ...]:
    if not _is_in(speeches, delta.message_id):
        return (*speeches, Speech(delta.message_id, delta.text))
    return tuple(
        replace(speech, text=speech.text + delta.text) if speech.message_id == delta.message_id else speech
        for speech in speeches
    )


def _superseded(telling: Telling, message_id: str) -> Telling:
    """A crash cut a message off, and it is written anew: people are told, unless they have not seen it."""
    if not _is_in(telling.speeches, message_id):
        return replace(telling, held=tuple(speech for speech in telling.held if speech.message_id != message_id))
    notice = Speech(f"{message_id}:cut-off", words.CUT_OFF, ended=True)
    ended = _end_message(telling, message_id)
    return replace(ended, speeches=(*ended.speeches, notice))


def _end_message(telling: Telling, message_id: str) -> Telling:
    def ended(speeches: tuple[Speech, ...]) -> tuple[Speech, ...]:
        return tuple(replace(one, ended=True) if one.message_id == message_id else one for one in speeches)

    return replace(telling, speeches=ended(telling.speeches), held=ended(telling.held))


def _ended_messages(telling: Telling) -> Telling:
    return replace(telling, speeches=tuple(replace(speech, ended=True) for speech in telling.speeches))


def _released(telling: Telling) -> Telling:
    return replace(telling, speeches=telling.speeches + telling.held, held=(), holding=False)


def _begun(telling: Telling, event: AgentStarted | ToolStarted) -> Telling:
    if event.parent_call_id is None:
        telling = _dropped(telling) if isinstance(event, AgentStarted) else _released(telling)
    return replace(telling, cards=cards.started(telling.cards, event))


def _dropped(telling: Telling) -> Telling:
    return replace(telling, held=(), holding=False)


def _plan(telling: Telling, event: PlanUpdated) -> Telling:
    planned = cards.planned(telling.cards, event)
    # Another step begins: text belongs to it if it is the supervisor's own, and not if it is an agent's.
    if begun := planned.active - telling.cards.active:
        is_own = any(not step.agent for step in event.steps if cards.step_id(step.id) in begun)
        telling = _released(telling) if is_own else _dropped(telling)
    return replace(telling, cards=planned)


def _answer(telling: Telling, event: FinalResult) -> Telling:
    """The answer is told once, whole: where it was being told already, only what is missing of it."""
    speeches = _said(telling.speeches, Speech(event.answer_message_id, event.text, ended=True))
    ended = replace(telling, speeches=speeches, held=(), holding=False, answer_id=event.answer_message_id)
    return _end(ended, "answered", words.closing(event))


def _with_partial(telling: Telling, partial: str) -> Telling:
    if not partial.strip() or partial.strip() in raw_text(_ended_messages(telling)):
        return telling
    return replace(telling, speeches=_said(telling.speeches, Speech("partial", partial, ended=True)))


def _said(speeches: tuple[Speech, ...], whole: Speech) -> tuple[Speech, ...]:
    """With all of `whole`, of which the message of that name, or else the last one, may be the beginning."""
    last = speeches[-1] if speeches and speeches[-1].text.strip() else None
    begun = next((speech for speech in speeches if speech.message_id == whole.message_id), last)
    text = None if begun is None else _completed(begun.text, whole.text)
    if text is None:
        return (*speeches, whole)
    return tuple(replace(whole, text=text) if speech is begun else speech for speech in speeches)


def _completed(begun: str, whole: str) -> str | None:
    """`begun` with what is missing; None where `whole` says something else. Blanks at the ends say nothing."""
    indent = begun[: len(begun) - len(begun.lstrip())]
    if whole.lstrip().startswith(begun.lstrip()):
        return indent + whole.lstrip()
    return begun if whole.strip() == begun.strip() else None


def _end(telling: Telling, outcome: Outcome, closing: str) -> Telling:
    ended = _ended_messages(telling)
    return replace(ended, cards=cards.ended(ended.cards), outcome=outcome, closing=closing)


def _is_in(speeches: tuple[Speech, ...], message_id: str) -> bool:
    return any(speech.message_id == message_id for speech in speeches)
