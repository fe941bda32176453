"""`reduce(state, item, now) -> (state, operations)`: pure, no I/O. At most one operation per run is in flight."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ai_platform_engineering.events import Event, Form, InputRequired, TextDelta
from ai_platform_engineering.integrations.slack_bot.forms.arguments import masked_form
from ai_platform_engineering.integrations.slack_bot.thread_view.content import apply_event, raw_text, resume
from ai_platform_engineering.integrations.slack_bot.thread_view.delivery_reports import record_report
from ai_platform_engineering.integrations.slack_bot.thread_view.operation_builder import operation_of
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    Deferred,
    Delivered,
    Operation,
    OperationRejected,
    Unconfirmed,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.planner import decide
from ai_platform_engineering.integrations.slack_bot.thread_view.state import (
    CONTENT_KINDS,
    OpenForm,
    PendingOperation,
    State,
    ThreadReply,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.stream_buffer import StreamBuffer, WritePace

CLOSED_NOTE = "This is no longer open."


@dataclass(frozen=True, slots=True)
class RunAccepted:
    """The supervisor has accepted the question."""

    task_id: str
    trace_id: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""

    pace: WritePace = field(default_factory=WritePace)


@dataclass(frozen=True, slots=True)
class StopRequested:
    """A person asked to stop the run."""

    person: str


@dataclass(frozen=True, slots=True)
class ReplyReceived:
    """A person answered a form, or wrote in the thread while one was open."""

    reply: ThreadReply


@dataclass(frozen=True, slots=True)
class FormInvalid:
    """A person submitted a form with invalid values. `form` has the values and the validation errors."""

    form: Form


@dataclass(frozen=True, slots=True)
class RunResumed:
    """The first queued reply is sent to the waiting run."""


Input = (
    Event
    | Delivered
    | OperationRejected
    | Deferred
    | Unconfirmed
    | RunAccepted
    | Tick
    | StopRequested
    | ReplyReceived
    | FormInvalid
    | RunResumed
)


def reduce(state: State, item: Input, now: float) -> tuple[State, list[Operation]]:
    state = _next_state(state, item, now)
    match decide(state, now):
        case PendingOperation() as pending:
            buffer = state.buffer.after_flush(now) if pending.kind in CONTENT_KINDS else state.buffer
            state = replace(state, pending=pending, last_number=pending.number, buffer=buffer)
            return state, [operation_of(state, pending)]
        case _:
            return state, []


def next_tick(state: State, now: float) -> float | None:
    """When a `Tick` is needed, unless another input comes first; None if none is needed."""
    decision = decide(state, now)
    # An operation that was not due at the last input may be due by now.
    return now if isinstance(decision, PendingOperation) else decision


def _next_state(state: State, item: Input, now: float) -> State:
    match item:
        case Delivered() | OperationRejected() | Deferred() | Unconfirmed():
            after = record_report(state, item, now)
        case RunAccepted(task_id, trace_id):
            after = replace(state, task_id=task_id or state.task_id, trace_id=trace_id or state.trace_id)
        case Tick(pace):
            after = replace(state, pace=pace)
        case StopRequested(person):
            after = replace(state, stopped_by=person)
        case ReplyReceived(reply):
            after = _with_reply(state, reply)
        case FormInvalid(form):
            after = _with_form_errors(state, form)
        case RunResumed():
            after = _resumed(state, now)
        case _:
            after = _with_event(state, item, now)
    return after


def _with_event(state: State, event: Event, now: float) -> State:
    content = apply_event(state.content, event, state.stopped_by)
    length = len(raw_text(content))
    line = isinstance(event, TextDelta) and "\n" in event.text
    state = replace(state, content=content, buffer=state.buffer.grown(length, line, now))
    if state.ended:
        # The supervisor has received the reply, which may contain a secret.
        state = replace(state, current_reply=None)
    if isinstance(event, InputRequired):
        return _with_forms(state, tuple(map(masked_form, event.forms)))
    # The run is over, so queued replies can no longer be sent.
    return _closed_forms(replace(state, queued_replies=()), CLOSED_NOTE) if state.ended else state


def _with_forms(state: State, forms: tuple[Form, ...]) -> State:
    """Open forms keep their message. A form that the run asks again after an answer is posted again."""
    wanted = {form.form_id: form for form in forms}
    known = tuple(
        _refreshed(asked, wanted[asked.form.form_id])
        if asked.note is None and asked.form.form_id in wanted
        else replace(asked, note=asked.note or CLOSED_NOTE)
        for asked in state.forms
    )
    still = {asked.form.form_id for asked in known if asked.note is None}
    still |= {reply.form_id for reply in state.queued_replies}
    new = tuple(OpenForm(form) for form in forms if form.form_id not in still)
    return replace(state, forms=known + new)


def _refreshed(asked: OpenForm, form: Form) -> OpenForm:
    return asked if asked.form == form else replace(asked, form=form, with_errors=None)


def _with_form_errors(state: State, form: Form) -> State:
    """Show the validation errors on the open form. If it was answered meanwhile, nothing changes."""
    forms = tuple(
        replace(asked, with_errors=form) if asked.note is None and asked.form.form_id == form.form_id else asked
        for asked in state.forms
    )
    return replace(state, forms=forms)


def _closed_forms(state: State, note: str, form_id: str | None = None) -> State:
    """Close all open forms, or the one with `form_id`, with a note."""
    forms = tuple(
        replace(asked, note=note, with_errors=None)
        if asked.note is None and form_id in (None, asked.form.form_id)
        else asked
        for asked in state.forms
    )
    return replace(state, forms=forms)


def _with_reply(state: State, reply: ThreadReply) -> State:
    # A text may answer any of the forms.
    closed = _closed_forms(state, reply.note, reply.form_id if reply.answer is not None else None)
    return replace(closed, queued_replies=(*closed.queued_replies, reply))


def _resumed(state: State, now: float) -> State:
    """Continue the text in a new message below the form."""
    messages = tuple(
        replace(message, end=message.sent) if message.end is None else message for message in state.messages
    )
    reply, *later = state.queued_replies
    return replace(
        state,
        current_reply=reply,
        queued_replies=tuple(later),
        messages=messages,
        content=resume(state.content),
        begun=now,
        buffer=StreamBuffer(),
    )
