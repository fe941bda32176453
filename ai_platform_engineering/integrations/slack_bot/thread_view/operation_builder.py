"""Builds the operation for a decision of the planner. Deterministic, also after a restart. Pure."""

from __future__ import annotations

from typing import Final

from ai_platform_engineering.integrations.slack_bot import words
from ai_platform_engineering.integrations.slack_bot.markdown.mentions import disarm_mentions
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
    PendingOperation,
    ShownMessage,
    State,
)
from ai_platform_engineering.text.form_text import BY_MESSAGE, form_lines

_CUT: Final = "\n..."


def operation_of(state: State, pending: PendingOperation) -> Operation:
    number = pending.number
    operation: Operation
    match pending.kind:
        case "status":
            operation = SetStatus(number, words.WORKING)
        case "start":
            operation = StartStream(number, _first_piece(state, pending))
        case "append":
            message = state.messages[pending.index]
            operation = AppendStream(number, message.ts, _piece(state, message, pending))
        case "stop":
            message = state.messages[pending.index]
            piece = Piece() if message.unsure else _piece(state, message, pending)
            operation = StopStream(number, message.ts, piece, _footer(state, pending.footer))
        case "post":
            operation = PostMessage(number, _body(state, pending))
        case "update":
            operation = UpdateMessage(number, state.messages[pending.index].ts, _body(state, pending))
        case "form":
            operation = _question(state, pending)
        case "form_update":
            asked = state.forms[pending.index]
            operation = UpdateForm(number, asked.ts, pending.form or asked.form, state.task_id, pending.note)
        case "file":
            operation = UploadFile(number, files_of(state.content)[pending.index])
        case "button":
            operation = PostMessage(number, Body(words.STOPPABLE, footer=Stop(state.task_id)))
        case "no_button":
            operation = DeleteMessage(number, state.stop_button_ts)
    return operation


def _question(state: State, pending: PendingOperation) -> PostForm | PostMessage:
    asked = state.forms[pending.index]
    if asked.as_text:
        question = disarm_mentions("\n".join(form_lines(asked.form)))
        room = MESSAGE_LIMIT - len(BY_MESSAGE) - len(_CUT)
        question = question if len(question) <= room else question[:room] + _CUT
        return PostMessage(pending.number, Body(f"{question}\n\n{BY_MESSAGE}"))
    return PostForm(pending.number, pending.form or asked.form, state.task_id)


def _first_piece(state: State, pending: PendingOperation) -> Piece:
    text = _shown(state, pending.start, pending.upto, closed=False)
    above, below = _around_plan(state, text, pending.start) if pending.cards else (text, "")
    return Piece(above, pending.plan or None, pending.cards, below)


def _piece(state: State, message: ShownMessage, pending: PendingOperation) -> Piece:
    """The part that the message does not show yet."""
    before = _shown(state, message.start, message.sent, closed=False)
    after = _shown(state, message.start, pending.upto, closed=pending.end is not None)
    known = {card.id: card for card in message.cards}
    changed = tuple(_added(card, known.get(card.id)) for card in pending.cards if known.get(card.id) != card)
    text = after[len(before) :]
    above, below = _around_plan(state, text, message.sent) if changed and not known else (text, "")
    return Piece(above, pending.plan if pending.plan != message.plan else None, changed, below)


def _around_plan(state: State, text: str, start: int) -> tuple[str, str]:
    """Split `text` into the part above the plan and the part below it."""
    at = max(0, state.content.plan_offset - start)
    return text[:at], text[at:]


def _added(card: Card, before: Card | None) -> Card:
    """`card` with the new part of its details only."""
    if before is None or not card.details.startswith(before.details):
        return card
    return Card(card.id, card.title, card.status, card.details[len(before.details) :])


def _body(state: State, pending: PendingOperation) -> Body:
    text = _shown(state, pending.start, pending.upto, closed=True)
    return Body(text, pending.plan, pending.cards, _footer(state, pending.footer))


def _footer(state: State, kind: FooterKind) -> Footer | None:
    match kind:
        case "rating":
            return Rating(state.task_id, state.trace_id, state.content.answer_id)
        case "retry":
            # The supervisor may not have accepted the question, so there may be no task.
            return Retry(state.task_id or state.run_id)
        case "none":
            return None


def _shown(state: State, start: int, end: int, *, closed: bool) -> str:
    return shown(text_of(state.content), start, end, closed=closed)
