"""What the reducer knows of one run in a thread: what there is to tell, and what of it has arrived.

Plain values that can be written as JSON: a bot that is killed goes on from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, TypeAdapter

from ai_platform_engineering.events import Form
from ai_platform_engineering.integrations.slack_bot.forms.masking import masked_form
from ai_platform_engineering.integrations.slack_bot.thread_view.content import Telling
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Card
from ai_platform_engineering.integrations.slack_bot.thread_view.stream_buffer import Pace, StreamBuffer

FooterKind = Literal["none", "rating", "retry"]
PendingKind = Literal[
    "status", "start", "append", "stop", "post", "update", "form", "form_update", "file", "button", "no_button"
]
"""What an operation is for; `button` is the message with the button that stops the run."""
TELLING: Final[frozenset[PendingKind]] = frozenset({"start", "append", "stop", "post", "update"})
"""Those that tell people what there is to tell."""

KeptForm = Annotated[Form, AfterValidator(masked_form)]
"""A form without credentials, also where one was kept with them."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message in Slack with the text from `start`. Of that, everything up to `sent` has arrived.

    `end` is set when no more text belongs into it. The first message also shows the plan and the cards.
    """

    start: int
    sent: int
    ts: str
    born: float = 0.0
    streaming: bool = False
    end: int | None = None
    plan: str = ""
    cards: tuple[Card, ...] = ()
    footer: FooterKind = "none"
    unsure: bool = False
    """What it shows is not known: an answer of Slack was lost."""
    gone: bool = False
    """Somebody deleted it."""
    rotated: bool = False
    """It streamed for as long as streams may; the rest of its paragraph is written by updates."""


@dataclass(frozen=True, slots=True)
class OpenForm:
    """A form that was asked. `shown` is how people see it, `ts` empty until they do. `wrong` is the form as somebody
    has filled it in wrongly, with what is wrong: people see that then."""

    form: KeptForm
    ts: str = ""
    shown: KeptForm | None = None
    wrong: KeptForm | None = None
    note: str | None = None
    noted: bool = False
    in_words: bool = False
    """Slack did not take it as a form."""

    @property
    def wanted(self) -> Form:
        """How people should see it."""
        return self.wrong or self.form


@dataclass(frozen=True, slots=True)
class PendingOperation:
    """The operation that is being done: enough to know what it has brought about, or to ask for it again.

    `place` is the index of the message, form or file; with it, text goes from `start` to `upto`.
    """

    number: int
    kind: PendingKind
    place: int = 0
    start: int = 0
    upto: int = 0
    end: int | None = None
    plan: str = ""
    cards: tuple[Card, ...] = ()
    footer: FooterKind = "none"
    form: KeptForm | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Saying:
    """Something said to a run that waits: the answer to a form, as data, or words. It is kept until it has been heard,
    and has the id of its message from the beginning, so that it is said once."""

    message_id: str
    team: str
    person: str
    form_id: str = ""
    answer: dict[str, Any] | None = None
    words: str = ""
    note: str = ""
    """What the form shows from then on."""


@dataclass(frozen=True, slots=True)
class State:
    run_id: str = ""
    task_id: str = ""
    trace_id: str = ""
    after: str = ""
    """The last message that was in the thread before the run."""
    quiet: bool = False
    begun: float = 0.0
    telling: Telling = field(default_factory=Telling)
    messages: tuple[Message, ...] = ()
    forms: tuple[OpenForm, ...] = ()
    files_sent: int = 0
    saying: Saying | None = None
    """What was last said to the run; None for the question that began it."""
    sayings: tuple[Saying, ...] = ()
    """What is to be said when the run waits again."""
    stopper: str = ""
    """The message with the button that stops the run, once it is there."""
    unstoppable: bool = False
    """Slack did not take that message."""
    stopped_by: str = ""
    flight: PendingOperation | None = None
    numbers: int = 0
    streams: bool = True
    limit: int = 0
    """Characters of a message, where Slack takes fewer than it says."""
    busy: dict[PendingKind, float] = field(default_factory=dict)
    """Until when operations of a kind have to wait."""
    failures: int = 0
    """How many operations in a row have come to nothing, as far as is known."""
    refusals: int = 0
    """How many of them Slack has refused, since something last arrived."""
    buffer: StreamBuffer = field(default_factory=StreamBuffer)
    updated: float = 0.0
    pace: Pace = field(default_factory=Pace)
    status: str = ""
    closed: bool = False
    """Nothing can be written in this thread any more."""

    @property
    def ended(self) -> bool:
        return self.telling.outcome is not None

    def known_messages(self) -> tuple[str, ...]:
        """All that the run has made so far, and the one it came after."""
        made = (*(message.ts for message in self.messages), *(form.ts for form in self.forms), self.stopper)
        return tuple(ts for ts in (self.after, *made) if ts)

    def with_message(self, place: int, message: Message) -> State:
        return replace(self, messages=(*self.messages[:place], message, *self.messages[place + 1 :]))

    def with_form(self, place: int, form: OpenForm) -> State:
        return replace(self, forms=(*self.forms[:place], form, *self.forms[place + 1 :]))


_ADAPTER: Final = TypeAdapter(State)


def to_json(state: State) -> str:
    return _ADAPTER.dump_json(state).decode()


def from_json(text: str) -> State:
    return _ADAPTER.validate_json(text)
