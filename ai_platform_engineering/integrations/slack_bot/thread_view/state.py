"""The reducer's state for one run in a thread: the content to show, and the part of it that Slack has confirmed.

The state is stored as JSON, so that a restarted bot continues from it. The stored keys are older than some of the field
names; the aliases map them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, TypeAdapter

from ai_platform_engineering.events import Form
from ai_platform_engineering.integrations.slack_bot.forms.arguments import masked_form
from ai_platform_engineering.integrations.slack_bot.thread_view.content import Content
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Card
from ai_platform_engineering.integrations.slack_bot.thread_view.stream_buffer import StreamBuffer, WritePace

FooterKind = Literal["none", "rating", "retry"]
PendingKind = Literal[
    "status", "start", "append", "stop", "post", "update", "form", "form_update", "file", "button", "no_button"
]
"""The purpose of an operation. `button` posts the message with the stop button, `no_button` deletes it."""
CONTENT_KINDS: Final[frozenset[PendingKind]] = frozenset({"start", "append", "stop", "post", "update"})
"""Operations that write the run's content."""

MaskedForm = Annotated[Form, AfterValidator(masked_form)]
"""A form whose credentials are masked, also when it is loaded from a state that was stored with them."""


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A Slack message with the content's text from `start`. Slack has confirmed the text up to `sent`.

    `end` is set when the message takes no more text. The first message also shows the plan and the cards.
    """

    start: int
    sent: int
    ts: str
    created_at: Annotated[float, Field(alias="born")] = 0.0
    streaming: bool = False
    end: int | None = None
    plan: str = ""
    cards: tuple[Card, ...] = ()
    footer: FooterKind = "none"
    unsure: bool = False
    """Slack's response to a write was lost, so the message's current text is unknown."""
    gone: bool = False
    """The message was deleted, or can no longer be changed."""
    rotated: bool = False
    """The stream reached its maximum duration; updates write the rest of the paragraph."""


@dataclass(frozen=True, slots=True)
class OpenForm:
    """A form of the run. `shown` is the version that Slack shows, `ts` its message, empty until it is posted.

    `with_errors` is the form as a person filled it in, with validation errors; it is shown in place of `form`. `note`
    is set when the form takes no more answers.
    """

    form: MaskedForm
    ts: str = ""
    shown: MaskedForm | None = None
    with_errors: Annotated[MaskedForm | None, Field(alias="wrong")] = None
    note: str | None = None
    note_shown: Annotated[bool, Field(alias="noted")] = False
    as_text: Annotated[bool, Field(alias="in_words")] = False
    """Slack rejected the form's blocks, so the question is posted as text."""

    @property
    def wanted(self) -> Form:
        """The version that Slack should show."""
        return self.with_errors or self.form


@dataclass(frozen=True, slots=True)
class PendingOperation:
    """The operation in flight, with the data to record its result or to build it again.

    `index` is the position of the message, form or file in the state. Text operations write from `start` to `upto`.
    """

    number: int
    kind: PendingKind
    index: Annotated[int, Field(alias="place")] = 0
    start: int = 0
    upto: int = 0
    end: int | None = None
    plan: str = ""
    cards: tuple[Card, ...] = ()
    footer: FooterKind = "none"
    form: MaskedForm | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ThreadReply:
    """A person's reply to a waiting run: the `answer` to a form, or `text` in the thread.

    It stays in the state until the supervisor has received it. Its message id is fixed when it is created, so a resend
    is idempotent.
    """

    message_id: str
    team: str
    person: str
    form_id: str = ""
    answer: dict[str, Any] | None = None
    text: Annotated[str, Field(alias="words")] = ""
    note: str = ""
    """The note that the answered form shows."""


@dataclass(frozen=True, slots=True)
class State:
    run_id: str = ""
    task_id: str = ""
    trace_id: str = ""
    after: str = ""
    """Timestamp of the last message in the thread before the run."""
    quiet: bool = False
    begun: float = 0.0
    content: Annotated[Content, Field(alias="telling")] = field(default_factory=Content)
    messages: tuple[ShownMessage, ...] = ()
    forms: tuple[OpenForm, ...] = ()
    files_sent: int = 0
    current_reply: Annotated[ThreadReply | None, Field(alias="saying")] = None
    """The last reply sent to the run; None while it works on the question that started it."""
    queued_replies: Annotated[tuple[ThreadReply, ...], Field(alias="sayings")] = ()
    """Replies to send when the run waits again."""
    stop_button_ts: Annotated[str, Field(alias="stopper")] = ""
    """The message with the stop button; empty while there is none."""
    stop_button_rejected: Annotated[bool, Field(alias="unstoppable")] = False
    stop_button_refusals: int = 0
    """Rejected deletions of the stop button."""
    stopped_by: str = ""
    pending: Annotated[PendingOperation | None, Field(alias="flight")] = None
    last_number: Annotated[int, Field(alias="numbers")] = 0
    can_stream: Annotated[bool, Field(alias="streams")] = True
    limit: int = 0
    """Maximum characters of a message, lowered after Slack rejected one as too long."""
    retry_at: Annotated[dict[PendingKind, float], Field(alias="busy")] = field(default_factory=dict)
    """The earliest time of the next operation of a kind."""
    failures: int = 0
    """Operations in a row without a confirmed success."""
    refusals: int = 0
    """Operations that Slack has rejected since the last success."""
    buffer: StreamBuffer = field(default_factory=StreamBuffer)
    updated: float = 0.0
    pace: WritePace = field(default_factory=WritePace)
    status: str = ""
    closed: bool = False
    """Slack accepts no more writes in this thread."""

    @property
    def ended(self) -> bool:
        return self.content.outcome is not None

    def known_messages(self) -> tuple[str, ...]:
        """Timestamps of the messages the run has posted, and of the message before it."""
        posted = (*(message.ts for message in self.messages), *(form.ts for form in self.forms), self.stop_button_ts)
        return tuple(ts for ts in (self.after, *posted) if ts)

    def with_message(self, index: int, message: ShownMessage) -> State:
        return replace(self, messages=(*self.messages[:index], message, *self.messages[index + 1 :]))

    def with_form(self, index: int, form: OpenForm) -> State:
        return replace(self, forms=(*self.forms[:index], form, *self.forms[index + 1 :]))


_ADAPTER: Final = TypeAdapter(State)


def to_json(state: State) -> str:
    return _ADAPTER.dump_json(state, by_alias=True).decode()


def from_json(text: str) -> State:
    return _ADAPTER.validate_json(text)
