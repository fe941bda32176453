"""Decides the next operation in a thread from the difference between the content and the confirmed state. Pure.

The state holds confirmed results only. A failed operation leaves the difference unchanged, so it, or an operation that
suits the content by then, is decided again.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from ai_platform_engineering.final_results import is_silence
from ai_platform_engineering.integrations.slack_bot.thread_view.content import PARAGRAPH, files_of, text_of
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Card, File
from ai_platform_engineering.integrations.slack_bot.thread_view.splitting import MESSAGE_LIMIT, MIN_LIMIT, cut
from ai_platform_engineering.integrations.slack_bot.thread_view.state import (
    FooterKind,
    PendingKind,
    PendingOperation,
    ShownMessage,
    State,
)

STREAM_SECONDS: Final = 240.0
"""Slack ends a stream after about five minutes; the bot ends it earlier."""
STOP_BUTTON_SECONDS: Final = 4.0
"""Shorter runs show no stop button."""
CARD_SECONDS: Final = 3.0
MESSAGE_BYTES: Final = 9_500
MIN_BYTES: Final = 4_000
"""Slack rejects a stream with slightly more than 10,000 bytes in total."""

Decision = PendingOperation | float | None
"""An operation, the time of the next decision, or None if there is nothing to do."""


class Situation:
    """A state, the time, and the text and files, which are computed only when a rule needs them."""

    def __init__(self, state: State, now: float) -> None:
        self.state = state
        self.now = now

    @cached_property
    def text(self) -> str:
        return text_of(self.state.content)

    @cached_property
    def files(self) -> tuple[File, ...]:
        return files_of(self.state.content)

    @property
    def ended(self) -> bool:
        return self.state.ended

    @property
    def current(self) -> int | None:
        """Index of the message that takes more text."""
        if not self.state.messages:
            return None
        last = self.state.messages[-1]
        is_over = last.rotated and not last.unsure and self.text.startswith(PARAGRAPH, last.sent)
        return None if last.end is not None or is_over else len(self.state.messages) - 1

    @property
    def host(self) -> int | None:
        """Index of the message that shows the plan."""
        return next((index for index, message in enumerate(self.state.messages) if not message.gone), None)

    @property
    def frontier(self) -> int:
        """Offset of the first text that is in no message."""
        if not self.state.messages:
            return 0
        last = self.state.messages[-1]
        return last.sent if last.end is None else last.end

    @property
    def all_text_shown(self) -> bool:
        return not self.text[self.frontier :].strip()

    @property
    def plan(self) -> str:
        return self.state.content.cards.plan

    @property
    def cards(self) -> tuple[Card, ...]:
        return self.state.content.cards.all

    def shows_cards(self, message: ShownMessage) -> bool:
        return message.cards == self.cards and message.plan == self.plan

    def limit(self, start: int, *, shows_cards: bool) -> int:
        """How many characters fit into a message. Slack counts bytes, including those of the cards."""
        cards = self.cards if shows_cards else ()
        used = sum(len(card.title.encode()) + 2 * len(card.details.encode()) for card in cards)
        room = max(MIN_BYTES, MESSAGE_BYTES - used)
        rest = self.text[start : start + room].encode(errors="replace")
        fitting = room if len(rest) <= room else len(rest[:room].decode(errors="ignore"))
        return max(MIN_LIMIT, min(fitting, self.state.limit or MESSAGE_LIMIT))

    def footer(self) -> FooterKind:
        match self.state.content.outcome:
            case "answered":
                return "rating"
            case "failed":
                return "retry"
            case _:
                return "none"

    def free(self, kind: PendingKind) -> bool:
        return self.now >= self.state.retry_at.get(kind, 0.0)

    def operation(self, kind: PendingKind, **details: object) -> Decision:
        """An operation of `kind`, or the earliest time for one."""
        if not self.free(kind):
            return self.state.retry_at[kind]
        return PendingOperation(self.state.last_number + 1, kind, **details)  # type: ignore[arg-type]  # the fields of an operation


def decide(state: State, now: float) -> Decision:
    if state.closed or state.pending is not None or (state.quiet and not _has_result_to_show(state)):
        return None
    situation = Situation(state, now)
    times = []
    for rule in _RULES:
        match rule(situation):
            case PendingOperation() as pending:
                return pending
            case float() as time:
                times.append(time)
            case _:
                pass
    return min(times, default=None)


def is_done(state: State) -> bool:
    """Whether all content was delivered and no more will come without an input."""
    return state.closed or (state.ended and state.pending is None and decide(state, float("inf")) is None)


def _has_result_to_show(state: State) -> bool:
    if state.forms:
        # A person was asked, so the result is always shown.
        return True
    match state.content.outcome:
        case "answered":
            return not any(
                is_silence(message.text)
                for message in state.content.messages
                if message.message_id == state.content.answer_id
            )
        case _:
            return False


def _repair(here: Situation) -> Decision:
    for index, message in enumerate(here.state.messages):
        if message.unsure and not message.gone:
            if message.streaming:
                return here.operation("stop", index=index, start=message.sent, upto=message.sent)
            return _rewrite(here, index)
    return None


def _rewrite(here: Situation, index: int) -> Decision:
    message = here.state.messages[index]
    end = _end_of(here, message) if index == here.current else message.sent if message.end is None else message.end
    return _update(here, index, len(here.text) if end is None else end, end)


def _end_of(here: Situation, message: ShownMessage) -> int | None:
    """The end of a message's text; None while all of it fits."""
    shows = here.host is not None and here.state.messages[here.host] is message
    limit = here.limit(message.start, shows_cards=shows)
    end = cut(here.text, message.start, limit, delivered=message.sent)
    return None if end is None else max(end, message.sent)


def _update(here: Situation, index: int, upto: int, end: int | None) -> Decision:
    is_last = index == len(here.state.messages) - 1 and here.ended and upto == len(here.text)
    shows = index == here.host
    return here.operation(
        "update",
        index=index,
        start=here.state.messages[index].start,
        upto=upto,
        end=upto if is_last else end,
        plan=here.plan if shows else "",
        cards=here.cards if shows else (),
        footer=here.footer() if is_last else "none",
    )


def _open_streams(here: Situation) -> Decision:
    """Stop streams that take no more text."""
    for index, message in enumerate(here.state.messages):
        if message.streaming and not message.unsure and index != here.current:
            end = message.sent if message.end is None else message.end
            shown = {"plan": message.plan, "cards": message.cards}
            return here.operation("stop", index=index, start=message.sent, upto=message.sent, end=end, **shown)
    return None


def _status(here: Situation) -> Decision:
    if here.state.messages or here.state.status or here.ended or here.state.quiet:
        return None
    return here.operation("status")


def _first_or_next_message(here: Situation) -> Decision:
    if here.current is not None:
        return None
    shows = here.host is None
    rest = here.text[here.frontier :]
    if not rest.strip() and not (here.cards and not here.state.messages):
        return None
    due = here.state.buffer.due(here.state.pace.stream)
    if not (here.ended or (shows and here.cards)) and due is not None and due > here.now:
        return due
    start = len(here.text) - len(rest.lstrip("\n"))
    end = cut(here.text, start, here.limit(start, shows_cards=shows))
    upto = len(here.text) if end is None else end
    is_last = here.ended and end is None
    has_footer = any(message.footer != "none" for message in here.state.messages)
    can_stream = here.state.can_stream and here.free("start") and not here.ended
    return here.operation(
        "start" if can_stream else "post",
        index=len(here.state.messages),
        start=start,
        upto=upto,
        end=upto if is_last else end,
        plan=here.plan if shows else "",
        cards=here.cards if shows else (),
        footer=here.footer() if is_last and not has_footer else "none",
    )


def _stream(here: Situation) -> Decision:
    index = here.current
    message = None if index is None else here.state.messages[index]
    if index is None or message is None or message.unsure or not message.streaming:
        return None
    shows = index == here.host
    expires = message.created_at + STREAM_SECONDS
    text_due = here.state.buffer.due(here.state.pace.stream)
    is_early = text_due is not None and here.now < text_due and here.now < expires
    if text_due is not None and is_early and not here.ended and (here.shows_cards(message) or not shows):
        return min(text_due, expires)
    end = _end_of(here, message)
    upto = len(here.text) if end is None else end
    changed = upto > message.sent or (shows and not here.shows_cards(message))
    details = {
        "index": index,
        "start": message.sent,
        "upto": upto,
        "plan": here.plan if shows else message.plan,
        "cards": here.cards if shows else message.cards,
    }
    if here.ended or end is not None or here.now >= expires:
        if not here.free("stop") and changed and here.free("append"):
            return here.operation("append", end=end, **details)
        is_last = here.ended and end is None
        footer = here.footer() if is_last else "none"
        return here.operation("stop", end=upto if is_last else end, footer=footer, **details)
    if not changed:
        return expires
    cards_due = here.state.buffer.flushed + here.state.pace.stream
    due = min(text_due if upto > message.sent and text_due is not None else cards_due, cards_due + CARD_SECONDS)
    return here.operation("append", **details) if here.now >= due else min(due, expires)


def _updates(here: Situation) -> Decision:
    """Rewrite the current message with its new text, if it is not streaming."""
    index = here.current
    if index is None:
        return None
    message = here.state.messages[index]
    if message.unsure or message.streaming:
        return None
    end = _end_of(here, message)
    if end is None and message.rotated and not here.ended:
        end = _end_of_paragraph(here.text, message)
    upto = len(here.text) if end is None else end
    shows = index == here.host
    is_last = here.ended and end is None
    changed = upto > message.sent or (shows and not here.shows_cards(message))
    if not changed and end is None and (not is_last or message.footer == here.footer()):
        return None
    due = max(here.state.updated + here.state.pace.update, here.state.buffer.due(0.0) or 0.0)
    if here.ended or end is not None or here.now >= due:
        return _update(here, index, upto, end)
    return due


def _end_of_paragraph(text: str, message: ShownMessage) -> int | None:
    end = text.find(PARAGRAPH, message.sent)
    is_whole = end >= 0 and text.count("```", message.start, end) % 2 == 0
    return end if is_whole else None


def _cards_above(here: Situation) -> Decision:
    host = here.host
    if host is None or host == here.current:
        return None
    message = here.state.messages[host]
    if here.shows_cards(message):
        return None
    due = here.state.updated + max(CARD_SECONDS, here.state.pace.update)
    if not here.ended and here.now < due:
        return due
    return _rewrite(here, host)


def _files(here: Situation) -> Decision:
    if not here.ended or not here.all_text_shown or here.state.files_sent >= len(here.files):
        return None
    return here.operation("file", index=here.state.files_sent)


def _forms(here: Situation) -> Decision:
    for index, form in enumerate(here.state.forms):
        if form.note is not None:
            if form.ts and not form.note_shown and not form.as_text:
                return here.operation("form_update", index=index, form=form.form, note=form.note)
        elif not form.ts:
            if here.all_text_shown:
                return here.operation("form", index=index, form=form.form)
        elif form.shown != form.wanted and not form.as_text:
            return here.operation("form_update", index=index, form=form.wanted)
    return None


def _stop_button(here: Situation) -> Decision:
    if here.ended:
        return here.operation("no_button") if here.state.stop_button_ts else None
    if here.state.stop_button_ts or here.state.stop_button_rejected or not here.state.task_id:
        return None
    due = here.state.begun + STOP_BUTTON_SECONDS
    return here.operation("button") if here.now >= due else due


_RULES: Final = (
    _repair,
    _open_streams,
    _status,
    _first_or_next_message,
    _stream,
    _updates,
    _cards_above,
    _files,
    _forms,
    _stop_button,
)
