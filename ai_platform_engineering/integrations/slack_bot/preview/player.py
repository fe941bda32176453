"""Plays a recording into a model workspace with the bot's own reducer, on a simulated clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from ai_platform_engineering.events import Ending, Event
from ai_platform_engineering.events_json import Asked, Line
from ai_platform_engineering.forms.answers import answer_data
from ai_platform_engineering.forms.replies import FormReply, Resume, interpret
from ai_platform_engineering.integrations.slack_bot.forms.message import answered_note
from ai_platform_engineering.integrations.slack_bot.places import SlackUser, ThreadPlace
from ai_platform_engineering.integrations.slack_bot.preview.workspace import Moment, SlackWorkspace
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Delivered, File, Operation, UploadFile
from ai_platform_engineering.integrations.slack_bot.thread_view.reducer import (
    Input,
    ReplyReceived,
    RunAccepted,
    RunResumed,
    Tick,
    next_tick,
    reduce,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.state import State, ThreadReply
from ai_platform_engineering.integrations.slack_bot.web_api.requests import ApiRequest, Job, request_of
from ai_platform_engineering.recordings import runs_of

BOT: Final = "UBOT"
PERSON: Final = SlackUser("T1", "UYOU")
NAMES: Final = {BOT: "Platform Engineer", PERSON.id: "You"}
UNTIMED: Final = 0.3
"""Seconds between the events of a recording without timestamps."""

_CHANNEL: Final = "C1"
_REPLY_SECONDS: Final = 3.0
"""Simulated time until a person writes or answers."""
_BEGINNING: Final = datetime(2026, 1, 12, 9, 41, tzinfo=UTC).timestamp()
_MAX_WAIT: Final = 600.0
_NOT_RECORDED: Final = "(The question was not recorded.)"


def moments_of(lines: Iterable[Line]) -> list[Moment]:
    """The thread of a recording, at each moment when it changes."""
    thread = _PreviewThread()
    for asked, run in runs_of(lines):
        thread.say(asked.question if asked else "")
        thread.play(run)
    return thread.moments


@dataclass(slots=True)
class _PreviewThread:
    """A workspace with one thread, and the bot's run in it. Every operation succeeds at once."""

    workspace: SlackWorkspace = field(default_factory=lambda: SlackWorkspace(BOT, dict(NAMES)))
    moments: list[Moment] = field(default_factory=list)
    now: float = _BEGINNING
    place: ThreadPlace | None = None
    state: State = field(default_factory=State)
    id_count: int = 0

    def say(self, text: str) -> None:
        """The person asks a question in the thread, or answers the bot's open form."""
        if self.place:
            self._advance(self.now + _REPLY_SECONDS)
        if self.state.content.outcome == "asked":
            self._answer(text)
            return
        place = self._write(text or _NOT_RECORDED)
        self.place = place
        self.state = State(begun=self.now)
        self._feed(RunAccepted(f"task-{self.id_count}", f"trace-{self.id_count}"))

    def play(self, run: Sequence[Line]) -> None:
        begun = self.now
        first = next((line.at for line in run if line.at is not None), 0.0)
        for line in run:
            self._advance(self.now + UNTIMED if line.at is None else max(self.now, begun + line.at - first))
            if not isinstance(line.item, Asked):
                self._handle(line.item)
        self._work_until(self.now + _MAX_WAIT)

    def _handle(self, event: Event) -> None:
        if self.state.content.outcome == "asked" and not isinstance(event, Ending):
            # The answer is not in the recording, but the run continues, so there was one.
            self._answer("")
        self._feed(event)

    def _answer(self, text: str) -> None:
        forms = [asked.form for asked in self.state.forms if asked.note is None]
        mention = f"<@{PERSON.id}>"
        match interpret(forms, FormReply(text)) if forms and text else None:
            case Resume(form, answer):
                note = answered_note(form, answer, mention)
                reply = ThreadReply(text, PERSON.team, PERSON.id, form.form_id, answer_data(answer), note=note)
            case _:
                if text:
                    self._write(text)
                reply = ThreadReply(text, PERSON.team, PERSON.id, text=text, note=f"Answered by {mention}")
        self._feed(ReplyReceived(reply))
        self._work_until(self.now + _MAX_WAIT)
        self._feed(RunResumed())

    def _write(self, text: str) -> ThreadPlace:
        """Post a message of the person, in the thread if there is one."""
        ts = self._new_ts()
        self.workspace.say(PERSON.id, _CHANNEL, ts, _escaped(text), self.place.thread_ts if self.place else "")
        self._record_moment(self.place or ThreadPlace(PERSON.team, _CHANNEL, ts))
        return self.place or ThreadPlace(PERSON.team, _CHANNEL, ts)

    def _advance(self, time: float) -> None:
        self._work_until(time)
        self.now = max(self.now, time)

    def _work_until(self, time: float) -> None:
        """Run the bot's timers that are due by `time`."""
        while (due := next_tick(self.state, self.now)) is not None and due <= time:
            self.now = max(self.now, due)
            self._feed(Tick())

    def _feed(self, item: Input) -> None:
        waiting: list[Input] = [item]
        while waiting:
            self.state, operations = reduce(self.state, waiting.pop(0), self.now)
            waiting += [self._perform(operation) for operation in operations]

    def _perform(self, operation: Operation) -> Delivered:
        place = self.place or self._write(_NOT_RECORDED)
        match operation:
            case UploadFile(file=file):
                request = self._uploaded(file, place)
            case _:
                request = request_of(Job(place, PERSON, operation, "preview"))
        ts = self._new_ts()
        self.workspace.apply(request.method, request.arguments, now=self.now, new_id=ts)
        self._record_moment(place)
        return Delivered(operation.number, ts)

    def _uploaded(self, file: File, place: ThreadPlace) -> ApiRequest:
        """Upload the file, and return the request that shares it."""
        file_id, content = f"F{self.id_count}", file.content.encode(errors="replace")
        self.workspace.apply("files.getUploadURLExternal", {"filename": file.name}, now=self.now, new_id=file_id)
        self.workspace.upload(file_id, content)
        where = {"channel_id": place.channel, "thread_ts": place.thread_ts}
        return ApiRequest("files.completeUploadExternal", {**where, "files": [{"id": file_id, "title": file.title}]})

    def _new_ts(self) -> str:
        self.id_count += 1
        return f"{int(self.now)}.{self.id_count:06}"

    def _record_moment(self, place: ThreadPlace) -> None:
        transcript = self.workspace.transcript(place.channel, place.thread_ts, viewer=PERSON.id)
        if not self.moments or transcript != self.moments[-1].transcript:
            self.moments.append(Moment(self.now - _BEGINNING, transcript))


def _escaped(text: str) -> str:
    """Escape text in the same way as Slack escapes messages of people."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
