"""Operations in a Slack thread, and the reports on their results. Values only.

The reducer returns operations and `web_api.delivery` performs them, one at a time per run. Every operation has a
number, and exactly one report with that number follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ai_platform_engineering.events import Form

CardStatus = Literal["pending", "in_progress", "complete", "error"]


@dataclass(frozen=True, slots=True)
class Card:
    """A plan step or a running agent. `details` only grow, because Slack appends the details of a stream."""

    id: str
    title: str
    status: CardStatus
    details: str = ""


@dataclass(frozen=True, slots=True)
class Rating:
    """Buttons to rate an answer."""

    task_id: str
    trace_id: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Retry:
    """A button to repeat the question of a task, or of a run that did not become a task."""

    task_id: str


@dataclass(frozen=True, slots=True)
class Stop:
    """A button that cancels the run."""

    task_id: str


Footer = Rating | Retry | Stop


@dataclass(frozen=True, slots=True)
class Body:
    """The whole content of a message: the plan, then the text as Markdown."""

    text: str = ""
    plan: str = ""
    cards: tuple[Card, ...] = ()
    footer: Footer | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """An addition to a stream: text, the plan's title if it changed, the changed cards with the new part of their
    details, and the text below the cards. The plan stays where it first appeared."""

    text: str = ""
    plan: str | None = None
    cards: tuple[Card, ...] = ()
    below: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """A block that is too long for a message."""

    name: str
    title: str
    content: str


@dataclass(frozen=True, slots=True)
class SetStatus:
    """The status below the thread while the bot works; empty clears it. It is best effort."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class StartStream:
    number: int
    piece: Piece


@dataclass(frozen=True, slots=True)
class AppendStream:
    number: int
    ts: str
    piece: Piece


@dataclass(frozen=True, slots=True)
class StopStream:
    number: int
    ts: str
    piece: Piece = Piece()
    footer: Footer | None = None


@dataclass(frozen=True, slots=True)
class PostMessage:
    number: int
    body: Body


@dataclass(frozen=True, slots=True)
class UpdateMessage:
    number: int
    ts: str
    body: Body


@dataclass(frozen=True, slots=True)
class DeleteMessage:
    number: int
    ts: str


@dataclass(frozen=True, slots=True)
class PostForm:
    number: int
    form: Form
    task_id: str


@dataclass(frozen=True, slots=True)
class UpdateForm:
    """The form's current version. A `note` closes the form and says why."""

    number: int
    ts: str
    form: Form
    task_id: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class UploadFile:
    number: int
    file: File


Operation = (
    SetStatus
    | StartStream
    | AppendStream
    | StopStream
    | PostMessage
    | UpdateMessage
    | DeleteMessage
    | PostForm
    | UpdateForm
    | UploadFile
)
CREATING = (StartStream, PostMessage, PostForm, UploadFile)
"""Operations that create a message or a file. They are not idempotent: a repetition is visible."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """The operation succeeded; `ts` is the message it created."""

    number: int
    ts: str = ""


Rejection = Literal["not_streaming", "no_streaming", "too_long", "message_gone", "thread_gone", "bad_blocks", "other"]
"""Why Slack rejected an operation. `not_streaming`: the stream has ended. `no_streaming`: streams are not available
here. `message_gone`: the message was deleted. `thread_gone`: the thread accepts no more messages. `bad_blocks`: the
workspace does not support the blocks."""


@dataclass(frozen=True, slots=True)
class OperationRejected:
    """The operation failed, and a retry would fail as well."""

    number: int
    reason: Rejection
    error: str = ""


@dataclass(frozen=True, slots=True)
class Deferred:
    """The operation was not performed; it may be retried after `seconds`."""

    number: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """Slack's response was lost, so the operation may have been performed."""

    number: int


Report = Delivered | OperationRejected | Deferred | Unconfirmed
