"""Operations from what was decided. The same decision always makes the same operation, also after a restart. Pure."""

from __future__ import annotations

from typing import Final

from ai_platform_engineering.integrations.slack_bot import words
from ai_platform_engineering.integrations.slack_bot.markdown.mentions import silent
from ai_platform_engineering.integrations.slack_bot.thread_view.content import files_of, text_of
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    AppendStream,
    Body,
    Card,
    DeleteMessage,
    Footer,
    Operation,
    Piece,
    PostForm,
    PostMessage,
    Rating,
    Retry,
    SetStatus,
    StartStream,
    Stop,
    StopStream,
    UpdateForm,
    UpdateMessage,
    UploadFile,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.splitting import MESSAGE_LIMIT, shown
from ai_platform_engineering.integrations.slack_bot.thread_view.state import (
    FooterKind,
    Message,
    PendingOperation,
    State,
)
from ai_platform_engineering.text.form_words import BY_MESSAGE, form_lines

_CUT: Final = "\n..."


def operation_of(state: State, flight: PendingOperation) -> Operation:
    number = flight.number
    operation: Operation
    match flight.kind:
        case "status":
            operation = SetStatus(number, words.WORKING)
        case "start":
            operation = StartStream(number, _first_piece(state, flight))
        case "append":
            message = state.messages[flight.place]
            operation = AppendStream(number, message.ts, _piece(state, message, flight))
        case "stop":
            message = state.messages[flight.place]
            piece = Piece() if message.unsure else _piece(state, message, flight)
            operation = StopStream(number, message.ts, piece, _footer(state, flight.footer))
        case "post":
            operation = PostMessage(number, _body(state, flight))
        case "update":
            operation = UpdateMessage(number, state.messages[flight.place].ts, _body(state, flight))
        case "form":
            operation = _question(state, flight)
        case "form_update":
            asked = state.forms[flight.place]
            operation = UpdateForm(number, asked.ts, flight.form or asked.form, state.task_id, flight.note)
        case "file":
            operation = UploadFile(number, files_of(state.telling)[flight.place])
        case "button":
            operation = PostMessage(number, Body(words.STOPPABLE, footer=Stop(state.task_id)))
        case "no_button":
            operation = DeleteMessage(number, state.stopper)
    return operation


def _question(state: State, flight: PendingOperation) -> PostForm | PostMessage:
    asked = state.forms[flight.place]
    if asked.in_words:
        question = silent("\n".join(form_lines(asked.form)))
        room = MESSAGE_LIMIT - len(BY_MESSAGE) - len(_CUT)
        question = question if len(question) <= room else question[:room] + _CUT
        return PostMessage(flight.number, Body(f"{question}\n\n{BY_MESSAGE}"))
    return PostForm(flight.number, flight.form or asked.form, state.task_id)


def _first_piece(state: State, flight: PendingOperation) -> Piece:
    text = _shown(state, flight.start, flight.upto, closed=False)
    above, below = _around_plan(state, text, flight.start) if flight.cards else (text, "")
    return Piece(above, flight.plan or None, flight.cards, below)


def _piece(state: State, message: Message, flight: PendingOperation) -> Piece:
    """What the message does not show yet."""
    before = _shown(state, message.start, message.sent, closed=False)
    after = _shown(state, message.start, flight.upto, closed=flight.end is not None)
    known = {card.id: card for card in message.cards}
    changed = tuple(_added(card, known.get(card.id)) for card in flight.cards if known.get(card.id) != card)
    text = after[len(before) :]
    above, below = _around_plan(state, text, message.sent) if changed and not known else (text, "")
    return Piece(above, flight.plan if flight.plan != message.plan else None, changed, below)


def _around_plan(state: State, text: str, start: int) -> tuple[str, str]:
    """The part of `text` that was said before there was a plan, and the rest."""
    at = max(0, state.telling.plan_at - start)
    return text[:at], text[at:]


def _added(card: Card, before: Card | None) -> Card:
    """`card` with those of its details that are new."""
    if before is None or not card.details.startswith(before.details):
        return card
    return Card(card.id, card.title, card.status, card.details[len(before.details) :])


def _body(state: State, flight: PendingOperation) -> Body:
    text = _shown(state, flight.start, flight.upto, closed=True)
    return Body(text, flight.plan, flight.cards, _footer(state, flight.footer))


def _footer(state: State, kind: FooterKind) -> Footer | None:
    match kind:
        case "rating":
            return Rating(state.task_id, state.trace_id, state.telling.answer_id)
        case "retry":
            # The supervisor may not even have taken it.
            return Retry(state.task_id or state.run_id)
        case "none":
            return None


def _shown(state: State, start: int, end: int, *, closed: bool) -> str:
    return shown(text_of(state.telling), start, end, closed=closed)
