"""What is to be done next in a thread: the difference between what there is to tell and what has arrived. Pure.

Nothing remembers that something was sent. An operation that failed leaves the difference as it was, so that it, or
something that fits better by then, is decided again.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from ai_platform_engineering.integrations.slack_bot.thread_view.content import PARAGRAPH, files_of, text_of
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Card, File
from ai_platform_engineering.integrations.slack_bot.thread_view.splitting import MESSAGE_LIMIT, SMALLEST_LIMIT, cut
from ai_platform_engineering.integrations.slack_bot.thread_view.state import (
    FooterKind,
    Message,
    PendingKind,
    PendingOperation,
    State,
)
from ai_platform_engineering.utils.silence import is_silence

STREAM_SECONDS: Final = 240.0
"""Slack ends a stream after about five minutes; ours end before."""
STOP_BUTTON_SECONDS: Final = 4.0
"""A run that takes no longer shows no button to stop it."""
CARD_SECONDS: Final = 3.0
MESSAGE_BYTES: Final = 9_500
MIN_BYTES: Final = 4_000
"""Slack refuses a stream at somewhat more than 10,000 bytes in all."""

Decision = PendingOperation | float | None
"""An operation, the time to look again, or nothing."""


class Situation:
    """A state, the time, and what there is to tell, which is worked out only where it is needed: it may be long."""

    def __init__(self, state: State, now: float) -> None:
        self.state = state
        self.now = now

    @cached_property
    def text(self) -> str:
        return text_of(self.state.telling)

    @cached_property
    def files(self) -> tuple[File, ...]:
        return files_of(self.state.telling)

    @property
    def ended(self) -> bool:
        return self.state.ended

    @property
    def current(self) -> int | None:
        """The message that takes more text."""
        if not self.state.messages:
            return None
        last = self.state.messages[-1]
        is_over = last.rotated and not last.unsure and self.text.startswith(PARAGRAPH, last.sent)
        return None if last.end is not None or is_over else len(self.state.messages) - 1

    @property
    def host(self) -> int | None:
        """The message that shows the plan."""
        return next((place for place, message in enumerate(self.state.messages) if not message.gone), None)

    @property
    def frontier(self) -> int:
        """Where the text begins that no message has."""
        if not self.state.messages:
            return 0
        last = self.state.messages[-1]
        return last.sent if last.end is None else last.end

    @property
    def all_told(self) -> bool:
        return not self.text[self.frontier :].strip()

    @property
    def plan(self) -> str:
        return self.state.telling.cards.plan

    @property
    def cards(self) -> tuple[Card, ...]:
        return self.state.telling.cards.all

    def shows_cards(self, message: Message) -> bool:
        return message.cards == self.cards and message.plan == self.plan

    def limit(self, start: int, *, shows_cards: bool) -> int:
        """How many characters fit into a message. Slack counts bytes, and those of the cards as well."""
        cards = self.cards if shows_cards else ()
        used = sum(len(card.title.encode()) + 2 * len(card.details.encode()) for card in cards)
        room = max(MIN_BYTES, MESSAGE_BYTES - used)
        rest = self.text[start : start + room].encode(errors="replace")
        fitting = room if len(rest) <= room else len(rest[:room].decode(errors="ignore"))
        return max(SMALLEST_LIMIT, min(fitting, self.state.limit or MESSAGE_LIMIT))

    def footer(self) -> FooterKind:
        match self.state.telling.outcome:
            case "answered":
                return "rating"
            case "failed":
                return "retry"
            case _:
                return "none"

    def free(self, kind: PendingKind) -> bool:
        return self.now >= self.state.busy.get(kind, 0.0)

    def flight(self, kind: PendingKind, **details: object) -> Decision:
        """An operation of `kind`, or the time at which one may be asked for."""
        if not self.free(kind):
            return self.state.busy[kind]
        return PendingOperation(self.state.numbers + 1, kind, **details)  # type: ignore[arg-type]  # the fields of a flight


def decide(state: State, now: float) -> Decision:
    if state.closed or state.flight is not None or (state.quiet and not _is_worth_showing(state)):
        return None
    situation = Situation(state, now)
    times = []
    for rule in _RULES:
        match rule(situation):
            case PendingOperation() as flight:
                return flight
            case float() as time:
                times.append(time)
            case _:
                pass
    return min(times, default=None)


def is_done(state: State) -> bool:
    """Whether everything has been told, and nothing more can come by itself."""
    return state.closed or (state.ended and state.flight is None and decide(state, float("inf")) is None)


def _is_worth_showing(state: State) -> bool:
    if state.forms:
        # People were asked: they are told what comes of it.
        return True
    match state.telling.outcome:
        case "answered":
            return not any(
                is_silence(speech.text)
                for speech in state.telling.speeches
                if speech.message_id == state.telling.answer_id
            )
        case _:
            return False


def _repair(here: Situation) -> Decision:
    for place, message in enumerate(here.state.messages):
        if message.unsure and not message.gone:
            if message.streaming:
                return here.flight("stop", place=place, start=message.sent, upto=message.sent)
            return _rewrite(here, place)
    return None


def _rewrite(here: Situation, place: int) -> Decision:
    message = here.state.messages[place]
    end = _end_of(here, message) if place == here.current else message.sent if message.end is None else message.end
    return _update(here, place, len(here.text) if end is None else end, end)


def _end_of(here: Situation, message: Message) -> int | None:
    """Where the text of a message ends; None while all of it fits."""
    shows = here.host is not None and here.state.messages[here.host] is message
    limit = here.limit(message.start, shows_cards=shows)
    end = cut(here.text, message.start, limit, delivered=message.sent)
    return None if end is None else max(end, message.sent)


def _update(here: Situation, place: int, upto: int, end: int | None) -> Decision:
    is_last = place == len(here.state.messages) - 1 and here.ended and upto == len(here.text)
    shows = place == here.host
    return here.flight(
        "update",
        place=place,
        start=here.state.messages[place].start,
        upto=upto,
        end=upto if is_last else end,
        plan=here.plan if shows else "",
        cards=here.cards if shows else (),
        footer=here.footer() if is_last else "none",
    )


def _left_open(here: Situation) -> Decision:
    """Streams to which nothing more belongs are stopped."""
    for place, message in enumerate(here.state.messages):
        if message.streaming and not message.unsure and place != here.current:
            end = message.sent if message.end is None else message.end
            shown = {"plan": message.plan, "cards": message.cards}
            return here.flight("stop", place=place, start=message.sent, upto=message.sent, end=end, **shown)
    return None


def _status(here: Situation) -> Decision:
    if here.state.messages or here.state.status or here.ended or here.state.quiet:
        return None
    return here.flight("status")


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
    streams = here.state.streams and here.free("start") and not here.ended
    return here.flight(
        "start" if streams else "post",
        place=len(here.state.messages),
        start=start,
        upto=upto,
        end=upto if is_last else end,
        plan=here.plan if shows else "",
        cards=here.cards if shows else (),
        footer=here.footer() if is_last and not has_footer else "none",
    )


def _stream(here: Situation) -> Decision:
    place = here.current
    message = None if place is None else here.state.messages[place]
    if place is None or message is None or message.unsure or not message.streaming:
        return None
    shows = place == here.host
    expires = message.born + STREAM_SECONDS
    text_due = here.state.buffer.due(here.state.pace.stream)
    is_early = text_due is not None and here.now < text_due and here.now < expires
    if text_due is not None and is_early and not here.ended and (here.shows_cards(message) or not shows):
        return min(text_due, expires)
    end = _end_of(here, message)
    upto = len(here.text) if end is None else end
    changed = upto > message.sent or (shows and not here.shows_cards(message))
    details = {
        "place": place,
        "start": message.sent,
        "upto": upto,
        "plan": here.plan if shows else message.plan,
        "cards": here.cards if shows else message.cards,
    }
    if here.ended or end is not None or here.now >= expires:
        if not here.free("stop") and changed and here.free("append"):
            return here.flight("append", end=end, **details)
        is_last = here.ended and end is None
        footer = here.footer() if is_last else "none"
        return here.flight("stop", end=upto if is_last else end, footer=footer, **details)
    if not changed:
        return expires
    cards_due = here.state.buffer.flushed + here.state.pace.stream
    due = min(text_due if upto > message.sent and text_due is not None else cards_due, cards_due + CARD_SECONDS)
    return here.flight("append", **details) if here.now >= due else min(due, expires)


def _updates(here: Situation) -> Decision:
    """A message that is not, or no longer, streamed is written again with what has been added."""
    place = here.current
    if place is None:
        return None
    message = here.state.messages[place]
    if message.unsure or message.streaming:
        return None
    end = _end_of(here, message)
    if end is None and message.rotated and not here.ended:
        end = _end_of_paragraph(here.text, message)
    upto = len(here.text) if end is None else end
    shows = place == here.host
    is_last = here.ended and end is None
    changed = upto > message.sent or (shows and not here.shows_cards(message))
    if not changed and end is None and (not is_last or message.footer == here.footer()):
        return None
    due = max(here.state.updated + here.state.pace.update, here.state.buffer.due(0.0) or 0.0)
    if here.ended or end is not None or here.now >= due:
        return _update(here, place, upto, end)
    return due


def _end_of_paragraph(text: str, message: Message) -> int | None:
    end = text.find(PARAGRAPH, message.sent)
    is_whole = end >= 0 and text.count("```", message.start, end) % 2 == 0
    return end if is_whole else None


def _old_cards(here: Situation) -> Decision:
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
    if not here.ended or not here.all_told or here.state.files_sent >= len(here.files):
        return None
    return here.flight("file", place=here.state.files_sent)


def _forms(here: Situation) -> Decision:
    for place, form in enumerate(here.state.forms):
        if form.note is not None:
            if form.ts and not form.noted and not form.in_words:
                return here.flight("form_update", place=place, form=form.form, note=form.note)
        elif not form.ts:
            if here.all_told:
                return here.flight("form", place=place, form=form.form)
        elif form.shown != form.wanted and not form.in_words:
            return here.flight("form_update", place=place, form=form.wanted)
    return None


def _stop_button(here: Situation) -> Decision:
    if here.ended:
        return here.flight("no_button") if here.state.stopper else None
    if here.state.stopper or here.state.unstoppable or not here.state.task_id:
        return None
    due = here.state.begun + STOP_BUTTON_SECONDS
    return here.flight("button") if here.now >= due else due


_RULES: Final = (
    _repair,
    _left_open,
    _status,
    _first_or_next_message,
    _stream,
    _updates,
    _old_cards,
    _files,
    _forms,
    _stop_button,
)
