"""A run that is heard over the wire and shown in a thread, and short names for what happens in it."""

from __future__ import annotations

from collections.abc import Callable

from a2a.types.a2a_pb2 import StreamResponse, TaskArtifactUpdateEvent

from ai_platform_engineering.events import (
    SUPERVISOR,
    AgentFinished,
    AgentStarted,
    Event,
    FinalResult,
    Form,
    FormField,
    MessageEnded,
    PlanStep,
    PlanUpdated,
    StepStatus,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Operation
from ai_platform_engineering.integrations.slack_bot.thread_view.reducer import ReplyReceived, RunResumed
from ai_platform_engineering.integrations.slack_bot.thread_view.state import State, ThreadReply
from ai_platform_engineering.utils.a2a_common.wire import Decoder, StreamState, WireEvent, begin, encode, stamp
from tests.integrations.slack_bot.thread_model import Driver, Fate, ThreadModel


def writes(message: str, text: str) -> TextDelta:
    return TextDelta(SUPERVISOR, message, text)


def says(message: str, text: str) -> list[Event]:
    return [writes(message, text), MessageEnded(SUPERVISOR, message)]


def answers(message: str, text: str) -> list[Event]:
    return [*says(message, text), FinalResult(text, message)]


def begins(agent: str, call: str = "", step: str | None = None) -> AgentStarted:
    return AgentStarted(agent, call or agent, None, step)


def reports(agent: str, call: str = "", step: str | None = None, *, ok: bool = True) -> AgentFinished:
    return AgentFinished(agent, call or agent, ok, None if ok else "it did not answer", None, step)


def works(agent: str, call: str = "", step: str | None = None) -> list[Event]:
    return [begins(agent, call, step), reports(agent, call, step)]


def uses(tool: str, agent: str = SUPERVISOR, within: str | None = None, skill: str | None = None) -> list[Event]:
    return [
        ToolStarted(agent, tool, f"call-{tool}", within, skill=skill),
        ToolFinished(agent, tool, f"call-{tool}", True, None, within, skill=skill),
    ]


def plan(*steps: tuple[str, str, StepStatus], title: str = "The plan") -> PlanUpdated:
    """Steps as title, agent and status; their ids are s0, s1 ..."""
    return PlanUpdated(
        tuple(PlanStep(f"s{order}", name, status, order, agent) for order, (name, agent, status) in enumerate(steps)),
        title,
    )


def form(form_id: str, *fields: str, title: str = "") -> Form:
    return Form(form_id, title or f"Form {form_id}", tuple(FormField(name) for name in fields or ("name",)))


def answer_to(form_id: str, note: str = "") -> ThreadReply:
    return ThreadReply(
        f"answer-{form_id}", "T1", "U1", form_id, {"values": {"name": "demo"}}, note=note or f"{form_id} is in."
    )


class Scene:
    """What the supervisor's server would send is decoded as the bot's client does, and shown in a thread."""

    def __init__(self, fate: Callable[[Operation], Fate] = lambda _: "done", state: State | None = None) -> None:
        self.model = ThreadModel(fate)
        self.driver = Driver(self.model, state)
        self._stream = StreamState("task", "context", "trace")
        self._decoder = Decoder(SUPERVISOR)
        self._numbers = 0
        self.heard: list[Event] = []
        for update in begin(self._stream):
            self._feed(update)

    def hear(self, *events: Event, then: float = 1.0) -> None:
        """They come at once, and then so many seconds pass."""
        for event in events:
            for update in encode(self._stream, event):
                self._feed(update)
        self.driver.wait(then)

    def answer(self, reply: ThreadReply) -> None:
        self.driver.feed(ReplyReceived(reply))
        self.driver.wait(1.0)

    def go_on(self) -> None:
        self.driver.feed(RunResumed())

    def _feed(self, update: WireEvent) -> None:
        self._numbers += 1
        stamp(update, self._numbers)
        is_artifact = isinstance(update, TaskArtifactUpdateEvent)
        sent = StreamResponse(artifact_update=update) if is_artifact else StreamResponse(status_update=update)
        for event in self._decoder.feed(StreamResponse.FromString(sent.SerializeToString())):
            self.heard.append(event)
            self.driver.feed(event)

    @property
    def text(self) -> str:
        return self.model.text

    @property
    def paragraphs(self) -> list[str]:
        return [paragraph for paragraph in self.text.split("\n\n") if paragraph]

    @property
    def statuses(self) -> dict[str, str]:
        """Of all cards, by title."""
        return {card.title: card.status for shown in self.model.messages for card in shown.cards.values()}

    def done(self, kind: type[Operation]) -> list[Operation]:
        return [operation for operation in self.driver.operations if isinstance(operation, kind)]
