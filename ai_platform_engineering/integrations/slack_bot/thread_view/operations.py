"""What can be done in a Slack thread, and what is heard back about it. Values only.

The reducer asks for operations and delivery does them, one at a time in each thread. Every operation has a number, and
is followed by exactly one report with that number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ai_platform_engineering.events import Form

CardStatus = Literal["pending", "in_progress", "complete", "error"]


@dataclass(frozen=True, slots=True)
class Card:
    """A line of the plan, or an agent at work. `details` only ever grow: in a stream, Slack appends what is sent."""

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
    """A button to ask the same again: what a task was asked, or a run that has not become one."""

    task_id: str


@dataclass(frozen=True, slots=True)
class Stop:
    """A button that cancels the run."""

    task_id: str


Footer = Rating | Retry | Stop


@dataclass(frozen=True, slots=True)
class Body:
    """Everything that a message shows, the plan first. A text is Markdown."""

    text: str = ""
    plan: str = ""
    cards: tuple[Card, ...] = ()
    footer: Footer | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """What is added to a stream: text, the title of the plan if it has changed, the cards that have changed, whose
    details are the part that Slack has not got yet, and the text below them. A plan stays where it first comes."""

    text: str = ""
    plan: str | None = None
    cards: tuple[Card, ...] = ()
    below: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """Something too long to be read in a message."""

    name: str
    title: str
    content: str


@dataclass(frozen=True, slots=True)
class SetStatus:
    """What Slack shows below the thread while the bot works; empty to take it away. Nothing depends on it."""

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
    """The form as it is now; with a `note`, it takes no answer any more, and this says why."""

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
"""Operations that make something new: done twice, people see it twice."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """It was done; `ts` is the message that was made by it."""

    number: int
    ts: str = ""


Refusal = Literal["not_streaming", "no_streaming", "too_long", "message_gone", "thread_gone", "bad_blocks", "other"]
"""Why Slack did not do it. `not_streaming`: that stream has ended. `no_streaming`: streams cannot be had here.
`message_gone`: somebody deleted it. `thread_gone`: nothing can be written in this thread any more. `bad_blocks`: this
workspace does not know such blocks."""


@dataclass(frozen=True, slots=True)
class Refused:
    """It was not done, and would not be if it were tried again."""

    number: int
    why: Refusal
    error: str = ""


@dataclass(frozen=True, slots=True)
class Later:
    """It was not done; it may be tried again in so many seconds."""

    number: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Unclear:
    """It may have been done: the answer was lost."""

    number: int


Report = Arrived | Refused | Later | Unclear
