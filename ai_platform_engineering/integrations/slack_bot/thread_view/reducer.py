"""The reducer: what is known of a run in a thread and what happened next give what is known then, and what is to be
done in Slack. Pure; one operation at a time is under way.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ai_platform_engineering.events import Event, Form, InputRequired, TextDelta
from ai_platform_engineering.integrations.slack_bot.forms.masking import masked_form
from ai_platform_engineering.integrations.slack_bot.thread_view.content import go_on, raw_text, tell
from ai_platform_engineering.integrations.slack_bot.thread_view.delivery_reports import reported
from ai_platform_engineering.integrations.slack_bot.thread_view.operation_builder import operation_of
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    Arrived,
    Later,
    Operation,
    Refused,
    Unclear,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.planner import decide
from ai_platform_engineering.integrations.slack_bot.thread_view.state import (
    TELLING,
    OpenForm,
    PendingOperation,
    Saying,
    State,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.stream_buffer import Pace, StreamBuffer

CLOSED_NOTE = "This is no longer open."


@dataclass(frozen=True, slots=True)
class Begun:
    """The supervisor has taken the question."""

    task_id: str
    trace_id: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""

    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True, slots=True)
class Stopping:
    """Somebody wants the run to stop."""

    person: str


@dataclass(frozen=True, slots=True)
class Answered:
    """Somebody has answered a form, or has written in the thread while one is open."""

    saying: Saying


@dataclass(frozen=True, slots=True)
class FilledInWrongly:
    """Somebody has filled in a form, which says what is wrong with it."""

    form: Form


@dataclass(frozen=True, slots=True)
class GoingOn:
    """The run, which waited, is told what was said first."""


Input = Event | Arrived | Refused | Later | Unclear | Begun | Tick | Stopping | Answered | FilledInWrongly | GoingOn


def reduce(state: State, item: Input, now: float) -> tuple[State, list[Operation]]:
    state = _known(state, item, now)
    match decide(state, now):
        case PendingOperation() as flight:
            buffer = state.buffer.taken(now) if flight.kind in TELLING else state.buffer
            state = replace(state, flight=flight, numbers=flight.number, buffer=buffer)
            return state, [operation_of(state, flight)]
        case _:
            return state, []


def next_look(state: State, now: float) -> float | None:
    """When a tick is needed, if nothing else happens before."""
    decision = decide(state, now)
    # What was not due yet when something last happened may be so by now.
    return now if isinstance(decision, PendingOperation) else decision


def _known(state: State, item: Input, now: float) -> State:
    match item:
        case Arrived() | Refused() | Later() | Unclear():
            after = reported(state, item, now)
        case Begun(task_id, trace_id):
            after = replace(state, task_id=task_id or state.task_id, trace_id=trace_id or state.trace_id)
        case Tick(pace):
            after = replace(state, pace=pace)
        case Stopping(person):
            after = replace(state, stopped_by=person)
        case Answered(saying):
            after = _answered(state, saying)
        case FilledInWrongly(form):
            after = _filled_in_wrongly(state, form)
        case GoingOn():
            after = _going_on(state, now)
        case _:
            after = _told(state, item, now)
    return after


def _told(state: State, event: Event, now: float) -> State:
    telling = tell(state.telling, event, state.stopped_by)
    length = len(raw_text(telling))
    line = isinstance(event, TextDelta) and "\n" in event.text
    state = replace(state, telling=telling, buffer=state.buffer.grown(length, line, now))
    if state.ended:
        # It was heard, and may hold a secret.
        state = replace(state, saying=None)
    if isinstance(event, InputRequired):
        return _asked(state, tuple(map(masked_form, event.forms)))
    # What has not been heard by now never will be.
    return _with_forms_closed(replace(state, sayings=())) if state.ended else state


def _asked(state: State, forms: tuple[Form, ...]) -> State:
    """Forms that are open already stay where they are. One that comes back after an answer is shown again, below."""
    wanted = {form.form_id: form for form in forms}
    known = tuple(
        _asked_again(asked, wanted[asked.form.form_id])
        if asked.note is None and asked.form.form_id in wanted
        else replace(asked, note=asked.note or CLOSED_NOTE)
        for asked in state.forms
    )
    still = {asked.form.form_id for asked in known if asked.note is None}
    still |= {saying.form_id for saying in state.sayings}
    new = tuple(OpenForm(form) for form in forms if form.form_id not in still)
    return replace(state, forms=known + new)


def _asked_again(asked: OpenForm, form: Form) -> OpenForm:
    return asked if asked.form == form else replace(asked, form=form, wrong=None)


def _filled_in_wrongly(state: State, form: Form) -> State:
    """It is for everybody to see while the form is open, and comes to nothing when somebody else was faster."""
    forms = tuple(
        replace(asked, wrong=form) if asked.note is None and asked.form.form_id == form.form_id else asked
        for asked in state.forms
    )
    return replace(state, forms=forms)


def _with_forms_closed(state: State) -> State:
    return _noted(state, CLOSED_NOTE)


def _noted(state: State, note: str, form_id: str | None = None) -> State:
    """Open forms, or that one, take no answer any more."""
    forms = tuple(
        replace(asked, note=note, wrong=None) if asked.note is None and form_id in (None, asked.form.form_id) else asked
        for asked in state.forms
    )
    return replace(state, forms=forms)


def _answered(state: State, saying: Saying) -> State:
    # Words may answer any of the forms.
    noted = _noted(state, saying.note, saying.form_id if saying.answer is not None else None)
    return replace(noted, sayings=(*noted.sayings, saying))


def _going_on(state: State, now: float) -> State:
    """The text goes on below the form, in a message of its own."""
    messages = tuple(
        replace(message, end=message.sent) if message.end is None else message for message in state.messages
    )
    said, *later = state.sayings
    return replace(
        state,
        saying=said,
        sayings=tuple(later),
        messages=messages,
        telling=go_on(state.telling),
        begun=now,
        buffer=StreamBuffer(),
    )
