"""Records the report on the operation in flight in the state. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ai_platform_engineering.integrations.slack_bot.thread_view.content import files_of
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    Deferred,
    Delivered,
    OperationRejected,
    Rejection,
    Report,
    Unconfirmed,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.splitting import MESSAGE_LIMIT
from ai_platform_engineering.integrations.slack_bot.thread_view.state import (
    CONTENT_KINDS,
    PendingKind,
    PendingOperation,
    ShownMessage,
    State,
)

MAX_FAILURES: Final = 12
"""After more failures in a row, the thread is given up."""
_MAX_REJECTIONS: Final = 3
_MAX_PAUSE: Final = 30.0
_MIN_MESSAGE_LENGTH: Final = 1_000
_MESSAGE_KINDS: Final = frozenset({"append", "stop", "update"})
_CREATING_KINDS: Final = frozenset({"start", "post", "form", "file"})
_STILL_STREAMING: Final = "streaming_state_conflict"


def record_report(state: State, report: Report, now: float) -> State:
    pending = state.pending
    if pending is None or report.number != pending.number:
        return state
    state = replace(state, pending=None)
    match report:
        case Delivered(ts=ts):
            return replace(_delivered(state, pending, ts, now), failures=0, refusals=0)
        case Deferred(seconds=seconds):
            return _deferred(state, pending.kind, now + seconds)
        case Unconfirmed():
            # Operations that may create a duplicate have a limit of retries; the others retry until Slack is back.
            max_failures = MAX_FAILURES if pending.kind in _CREATING_KINDS else None
            return _failed(_unconfirmed(state, pending), pending.kind, now, max_failures)
        case OperationRejected(reason="thread_gone"):
            return replace(state, closed=True)
        case OperationRejected(reason=reason, error=error):
            after = replace(_rejected(state, pending, reason, error), refusals=state.refusals + 1)
            return _failed(after, pending.kind, now)


def _delivered(state: State, pending: PendingOperation, ts: str, now: float) -> State:
    match pending.kind:
        case "status":
            after = replace(state, status="shown")
        case "start" | "post":
            made = ShownMessage(
                start=pending.start,
                sent=pending.upto,
                ts=ts,
                created_at=now,
                streaming=pending.kind == "start",
                end=None if pending.kind == "start" else pending.end,
                plan=pending.plan,
                cards=pending.cards,
                footer=pending.footer,
            )
            after = replace(state, messages=(*state.messages, made), updated=now)
        case "append" | "stop" | "update":
            after = _message_delivered(state, pending, now)
        case "button":
            after = replace(state, stop_button_ts=ts)
        case "no_button":
            after = replace(state, stop_button_ts="")
        case "form":
            asked = state.forms[pending.index]
            after = state.with_form(pending.index, replace(asked, ts=ts, shown=pending.form or asked.form))
        case "form_update":
            after = _form_updated(state, pending)
        case "file":
            after = replace(state, files_sent=pending.index + 1)
    return after


def _form_updated(state: State, pending: PendingOperation) -> State:
    asked = state.forms[pending.index]
    shown = pending.form or asked.form
    return state.with_form(pending.index, replace(asked, shown=shown, note_shown=pending.note is not None))


def _message_delivered(state: State, pending: PendingOperation, now: float) -> State:
    message = state.messages[pending.index]
    if pending.kind == "stop" and message.unsure:
        return state.with_message(pending.index, replace(message, streaming=False))
    # The message may have been closed while the operation was in flight; it then includes the operation's text.
    end = None if message.end is None else max(message.end, pending.upto)
    after = replace(message, sent=pending.upto, end=end, plan=pending.plan, cards=pending.cards)
    match pending.kind:
        case "append" if pending.end is not None:
            after = replace(after, end=pending.end)
        case "stop":
            rotated = pending.end is None
            after = replace(after, streaming=False, end=pending.end, footer=pending.footer, rotated=rotated)
        case "update":
            after = replace(after, end=end if pending.end is None else pending.end, footer=pending.footer, unsure=False)
            state = replace(state, updated=now)
    return state.with_message(pending.index, after)


def _rejected(state: State, pending: PendingOperation, reason: Rejection, error: str) -> State:
    if reason == "too_long" and pending.kind in CONTENT_KINDS:
        state = replace(state, limit=max(_MIN_MESSAGE_LENGTH, (state.limit or MESSAGE_LIMIT) // 2))
    match pending.kind:
        case "start":
            after = replace(state, can_stream=False)
        case "append" | "stop" | "update":
            message = state.messages[pending.index]
            after = state.with_message(
                pending.index, _message_after_rejection(message, pending.kind, reason, error, state.refusals)
            )
        case "no_button":
            # Where deleting is not allowed, the button stays and replies that the run is over.
            refusals = state.stop_button_refusals + 1
            is_over = reason == "message_gone" or refusals > _MAX_REJECTIONS
            after = replace(
                state, stop_button_ts="" if is_over else state.stop_button_ts, stop_button_refusals=refusals
            )
        case "button":
            # The run has no stop button; the slash command can stop it.
            after = replace(state, stop_button_rejected=True)
        case "form":
            asked = state.forms[pending.index]
            after = state.with_form(pending.index, replace(asked, as_text=True))
        case "form_update":
            # The form stays as it is shown.
            after = _form_updated(state, pending)
        case "file":
            inline_files = (*state.content.inline_files, files_of(state.content)[pending.index])
            after = replace(
                state, files_sent=pending.index + 1, content=replace(state.content, inline_files=inline_files)
            )
        case _:
            after = replace(state, status="refused") if pending.kind == "status" else state
    return after


def _message_after_rejection(
    message: ShownMessage, kind: PendingKind, reason: Rejection, error: str, refusals: int
) -> ShownMessage:
    if reason == "message_gone":
        return replace(message, gone=True, streaming=False, unsure=False, end=message.sent)
    if reason == "not_streaming":
        # The stream ended by itself; confirmed text is in the message.
        return replace(message, streaming=False)
    if kind == "update":
        if error == _STILL_STREAMING:
            return replace(message, streaming=True, unsure=True)
        if reason == "too_long" or refusals < _MAX_REJECTIONS:
            return message
        # The message cannot be changed any more: the rest goes into a new one.
        return replace(message, unsure=False, end=message.sent)
    return replace(message, unsure=True, streaming=kind == "append")


def _unconfirmed(state: State, pending: PendingOperation) -> State:
    if pending.kind not in _MESSAGE_KINDS:
        return state
    message = state.messages[pending.index]
    return state.with_message(pending.index, replace(message, unsure=True))


def _failed(state: State, kind: PendingKind, now: float, max_failures: int | None = MAX_FAILURES) -> State:
    failures = state.failures + 1
    pause = 0.0 if failures == 1 else min(_MAX_PAUSE, 0.25 * 2 ** min(failures, 10))
    closed = state.closed or (max_failures is not None and failures > max_failures)
    return replace(_deferred(state, kind, now + pause), failures=failures, closed=closed)


def _deferred(state: State, kind: PendingKind, until: float) -> State:
    state = replace(state, retry_at={**state.retry_at, kind: until})
    # The batch was not delivered, so it is due at once.
    return replace(state, buffer=state.buffer.after_failed_flush()) if kind in CONTENT_KINDS else state
