"""A Slack thread as values, for the reducer's tests: does operations, or fails to, and knows what people then see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    AppendStream,
    Card,
    Deferred,
    DeleteMessage,
    Delivered,
    File,
    Operation,
    OperationRejected,
    Piece,
    PostForm,
    PostMessage,
    Report,
    SetStatus,
    StartStream,
    StopStream,
    Unconfirmed,
    UpdateForm,
    UpdateMessage,
    UploadFile,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Stop as StopButton
from ai_platform_engineering.integrations.slack_bot.thread_view.reducer import Input, Tick, next_tick, reduce
from ai_platform_engineering.integrations.slack_bot.thread_view.state import State, from_json, to_json
from ai_platform_engineering.integrations.slack_bot.thread_view.stream_buffer import WritePace

STREAM_SECONDS = 300.0
MESSAGE_LIMIT = 12_000

Fate = str
"""What becomes of an operation: "done", "lost" (done, but the answer is lost), "dropped" (not done, and not known),
"later", or the reason of a refusal."""


@dataclass
class Shown:
    ts: str
    text: str = ""
    plan: str = ""
    cards: dict[str, Card] = field(default_factory=dict)
    streaming: bool = False
    created_at: float = 0.0
    footer: object = None
    form: object = None
    note: str | None = None


class ThreadModel:
    def __init__(self, fate: Callable[[Operation], Fate] = lambda _: "done") -> None:
        self.now = 1_000_000.0
        self.messages: list[Shown] = []
        self.files: list[File] = []
        self.statuses: list[str] = []
        self.fate = fate
        self.made = 0
        self.longest_stream = 0.0
        self.not_stopped: set[str] = set()
        """Streams that Slack once refused to stop; it ends them by itself, later."""

    def do(self, operation: Operation) -> Report:
        before = {shown.ts: "".join(shown.text.split()) for shown in self.messages}
        report = self._done(operation)
        for shown in self.messages:
            self._check(shown, before.get(shown.ts, ""))
        return report

    def _check(self, shown: Shown, before: str) -> None:
        """Nothing that was read is taken back, and a message has something to read. Code that goes on was closed
        meanwhile."""
        assert "".join(shown.text.split()).startswith(before.removesuffix("```"))
        assert shown.text.strip() or shown.cards or shown.form
        if shown.streaming:
            self.longest_stream = max(self.longest_stream, self.now - shown.created_at)

    def _done(self, operation: Operation) -> Report:
        fate = self.fate(operation)
        match fate:
            case "done":
                return self._apply(operation)
            case "lost":
                report = self._apply(operation)
                # Operations that create something are looked up; the result of others stays unknown.
                creates = isinstance(operation, StartStream | PostMessage | PostForm | UploadFile)
                return report if creates or isinstance(report, OperationRejected) else Unconfirmed(operation.number)
            case "dropped":
                creates = isinstance(operation, StartStream | PostMessage | PostForm | UploadFile)
                return Deferred(operation.number, 0.5) if creates else Unconfirmed(operation.number)
            case "later":
                return Deferred(operation.number, 2.0)
            case "not_streaming" if not isinstance(operation, AppendStream | StopStream):
                return self._apply(operation)
            case _:
                self._is_so(operation, fate)
                return OperationRejected(operation.number, fate)  # type: ignore[arg-type]

    def _is_so(self, operation: Operation, fate: Fate) -> None:
        """A refusal tells the truth."""
        ts = getattr(operation, "ts", "")
        found = self.find(ts)
        if found is not None and fate == "not_streaming":
            found.streaming = False
        elif isinstance(operation, StopStream):
            self.not_stopped.add(ts)
        if found is not None and fate == "message_gone":
            self.messages.remove(found)

    def _apply(self, operation: Operation) -> Report:  # noqa: PLR0911, PLR0912 - one case for each operation
        number = operation.number
        match operation:
            case SetStatus(text=text):
                self.statuses.append(text)
                return Delivered(number)
            case StartStream(piece=piece):
                shown = self._new(streaming=True)
                self._add(shown, piece)
                return Delivered(number, shown.ts)
            case AppendStream(ts=ts, piece=piece) | StopStream(ts=ts, piece=piece):
                found = self.find(ts)
                if found is None:
                    return OperationRejected(number, "message_gone")
                if not found.streaming or self.now - found.created_at >= STREAM_SECONDS:
                    found.streaming = False
                    return OperationRejected(number, "not_streaming")
                self._add(found, piece)
                if isinstance(operation, StopStream):
                    found.streaming, found.footer = False, operation.footer
                return Delivered(number)
            case PostMessage(body=body):
                shown = self._new()
                self._write(shown, body)
                return Delivered(number, shown.ts)
            case UpdateMessage(ts=ts, body=body):
                found = self.find(ts)
                if found is None:
                    return OperationRejected(number, "message_gone")
                if found.streaming and self.now - found.created_at < STREAM_SECONDS:
                    return OperationRejected(number, "other", "streaming_state_conflict")
                found.streaming = False
                self._write(found, body)
                return Delivered(number)
            case DeleteMessage(ts=ts):
                self.messages = [shown for shown in self.messages if shown.ts != ts]
                return Delivered(number)
            case PostForm(form=form):
                shown = self._new()
                shown.form = form
                return Delivered(number, shown.ts)
            case UpdateForm(ts=ts, form=form, note=note):
                found = self.find(ts)
                if found is None:
                    return OperationRejected(number, "message_gone")
                found.form, found.note = form, note
                return Delivered(number)
            case UploadFile(file=file):
                self.files.append(file)
                return Delivered(number)

    def find(self, ts: str) -> Shown | None:
        return next((shown for shown in self.messages if shown.ts == ts), None)

    def _new(self, *, streaming: bool = False) -> Shown:
        self.made += 1
        shown = Shown(f"{self.made}.0", streaming=streaming, created_at=self.now)
        self.messages.append(shown)
        return shown

    def _add(self, shown: Shown, piece: Piece) -> None:
        assert len(piece.text + piece.below) <= MESSAGE_LIMIT
        shown.text += piece.text + piece.below
        shown.plan = shown.plan if piece.plan is None else piece.plan
        for card in piece.cards:
            before = shown.cards.get(card.id)
            shown.cards[card.id] = card if before is None else replace(card, details=before.details + card.details)

    def _write(self, shown: Shown, body: object) -> None:
        assert len(body.text) <= MESSAGE_LIMIT  # type: ignore[attr-defined]
        shown.text, shown.plan, shown.footer = body.text, body.plan, body.footer  # type: ignore[attr-defined]
        shown.cards = {card.id: card for card in body.cards}  # type: ignore[attr-defined]

    @property
    def text(self) -> str:
        """What people read, one message below the other."""
        return "\n\n".join(shown.text for shown in self.messages if not isinstance(shown.footer, StopButton))

    @property
    def words(self) -> str:
        """Everything that people read, cards included."""
        cards = [f"{card.title} {card.details}" for shown in self.messages for card in shown.cards.values()]
        return "\n".join([self.text, *(shown.plan for shown in self.messages), *cards])


class Driver:
    """Feeds a reducer, does what it asks for in a model, and lets time pass."""

    def __init__(self, model: ThreadModel, state: State | None = None) -> None:
        self.model = model
        self.state = state or State(task_id="task", trace_id="trace", begun=model.now)
        self.operations: list[Operation] = []
        self.pace = WritePace()
        self._reports: list[Report] = []

    def feed(self, item: Input) -> None:
        self.state, operations = reduce(self.state, item, self.model.now)
        for operation in operations:
            self.operations.append(operation)
            self._reports.append(self.model.do(operation))

    def settle(self) -> None:
        """Let reports arrive, without time passing."""
        while self._reports:
            self.feed(self._reports.pop(0))

    def wait(self, seconds: float) -> None:
        """Let time pass; reports arrive, and what is due is done."""
        end = self.model.now + seconds
        self.settle()
        while (look := next_tick(self.state, self.model.now)) is not None and look <= end:
            self.model.now = max(self.model.now, look)
            self.feed(Tick(self.pace))
            self.settle()
        self.model.now = end

    def killed(self) -> None:
        """The bot is killed and goes on from what it had kept; what was being done has been found out."""
        self.state = from_json(to_json(self.state))

    def finish(self) -> None:
        self.wait(3_600)
