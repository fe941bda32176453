"""A recording, played into a workspace by the bot's own reducer: in its own time, which does not pass for us."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from ai_platform_engineering.events import Ending, Event
from ai_platform_engineering.events_json import Asked, Line
from ai_platform_engineering.forms.answers import answer_data
from ai_platform_engineering.forms.replies import Reply, Resume, understand
from ai_platform_engineering.integrations.slack_bot.forms.words import answered_note
from ai_platform_engineering.integrations.slack_bot.places import Person, Place
from ai_platform_engineering.integrations.slack_bot.preview.moments import Moment
from ai_platform_engineering.integrations.slack_bot.preview.workspace import Workspace
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Arrived, File, Operation, UploadFile
from ai_platform_engineering.integrations.slack_bot.thread_view.reducer import (
    Answered,
    Begun,
    GoingOn,
    Input,
    Tick,
    next_look,
    reduce,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.state import Saying, State
from ai_platform_engineering.integrations.slack_bot.web_api.requests import Job, Request, request_of
from ai_platform_engineering.recordings import runs_of

BOT: Final = "UBOT"
PERSON: Final = Person("T1", "UYOU")
NAMES: Final = {BOT: "Platform Engineer", PERSON.id: "You"}
UNTIMED: Final = 0.3
"""Seconds between events of a recording that has no times."""

_CHANNEL: Final = "C1"
_THINKING: Final = 3.0
"""Seconds that people take before they write or answer."""
_BEGINNING: Final = datetime(2026, 1, 12, 9, 41, tzinfo=UTC).timestamp()
_MAX_WAIT: Final = 600.0
_NOT_RECORDED: Final = "(What was asked was not recorded.)"


def moments_of(lines: Iterable[Line]) -> list[Moment]:
    """What people see of a recording, each time that it changes."""
    stage = _Stage()
    for asked, run in runs_of(lines):
        stage.say(asked.question if asked else "")
        stage.play(run)
    return stage.moments


@dataclass(slots=True)
class _Stage:
    """A workspace with one thread, and the bot's run in it; every operation arrives at once."""

    workspace: Workspace = field(default_factory=lambda: Workspace(BOT, dict(NAMES)))
    moments: list[Moment] = field(default_factory=list)
    now: float = _BEGINNING
    place: Place | None = None
    state: State = field(default_factory=State)
    made: int = 0

    def say(self, text: str) -> None:
        """Somebody asks something in the thread; or, where the bot has asked, answers."""
        if self.place:
            self._pass(self.now + _THINKING)
        if self.state.telling.outcome == "asked":
            self._answer(text)
            return
        place = self._write(text or _NOT_RECORDED)
        self.place = place
        self.state = State(begun=self.now)
        self._feed(Begun(f"task-{self.made}", f"trace-{self.made}"))

    def play(self, run: Sequence[Line]) -> None:
        begun = self.now
        first = next((line.at for line in run if line.at is not None), 0.0)
        for line in run:
            self._pass(self.now + UNTIMED if line.at is None else max(self.now, begun + line.at - first))
            if not isinstance(line.item, Asked):
                self._take(line.item)
        self._work_until(self.now + _MAX_WAIT)

    def _take(self, event: Event) -> None:
        if self.state.telling.outcome == "asked" and not isinstance(event, Ending):
            # What was answered is not in the recording; that the run goes on says that it was.
            self._answer("")
        self._feed(event)

    def _answer(self, text: str) -> None:
        forms = [asked.form for asked in self.state.forms if asked.note is None]
        mention = f"<@{PERSON.id}>"
        match understand(forms, Reply(text)) if forms and text else None:
            case Resume(form, answer):
                note = answered_note(form, answer, mention)
                saying = Saying(text, PERSON.team, PERSON.id, form.form_id, answer_data(answer), note=note)
            case _:
                if text:
                    self._write(text)
                saying = Saying(text, PERSON.team, PERSON.id, words=text, note=f"Answered by {mention}")
        self._feed(Answered(saying))
        self._work_until(self.now + _MAX_WAIT)
        self._feed(GoingOn())

    def _write(self, text: str) -> Place:
        """A message of the person, in the thread if there is one."""
        ts = self._new_ts()
        self.workspace.say(PERSON.id, _CHANNEL, ts, _escaped(text), self.place.thread_ts if self.place else "")
        self._see(self.place or Place(PERSON.team, _CHANNEL, ts))
        return self.place or Place(PERSON.team, _CHANNEL, ts)

    def _pass(self, time: float) -> None:
        self._work_until(time)
        self.now = max(self.now, time)

    def _work_until(self, time: float) -> None:
        """The bot does what is due by then."""
        while (due := next_look(self.state, self.now)) is not None and due <= time:
            self.now = max(self.now, due)
            self._feed(Tick())

    def _feed(self, item: Input) -> None:
        waiting: list[Input] = [item]
        while waiting:
            self.state, operations = reduce(self.state, waiting.pop(0), self.now)
            waiting += [self._do(operation) for operation in operations]

    def _do(self, operation: Operation) -> Arrived:
        place = self.place or self._write(_NOT_RECORDED)
        match operation:
            case UploadFile(file=file):
                request = self._uploaded(file, place)
            case _:
                request = request_of(Job(place, PERSON, operation, "preview"))
        ts = self._new_ts()
        self.workspace.apply(request.method, request.arguments, now=self.now, made=ts)
        self._see(place)
        return Arrived(operation.number, ts)

    def _uploaded(self, file: File, place: Place) -> Request:
        """The request that shares a file which is already there."""
        file_id, content = f"F{self.made}", file.content.encode(errors="replace")
        self.workspace.apply("files.getUploadURLExternal", {"filename": file.name}, now=self.now, made=file_id)
        self.workspace.upload(file_id, content)
        where = {"channel_id": place.channel, "thread_ts": place.thread_ts}
        return Request("files.completeUploadExternal", {**where, "files": [{"id": file_id, "title": file.title}]})

    def _new_ts(self) -> str:
        self.made += 1
        return f"{int(self.now)}.{self.made:06}"

    def _see(self, place: Place) -> None:
        transcript = self.workspace.transcript(place.channel, place.thread_ts, viewer=PERSON.id)
        if not self.moments or transcript != self.moments[-1].transcript:
            self.moments.append(Moment(self.now - _BEGINNING, transcript))


def _escaped(text: str) -> str:
    """As Slack escapes what people write."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
