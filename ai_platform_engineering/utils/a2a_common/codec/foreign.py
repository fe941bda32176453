"""Decodes the streams of agents that are not ours into events.

Foreign agents report progress as prose, and send their answer in one of several places. The answer is chosen when the
task ends, not concatenated: a text that appears twice on the wire is emitted once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from a2a.types.a2a_pb2 import (
    Artifact,
    Message,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

from ai_platform_engineering.call_ledger import CallLedger, LedgerCall
from ai_platform_engineering.events import (
    Canceled,
    Event,
    Failed,
    FinalResult,
    Form,
    FormField,
    InputRequired,
    MessageEnded,
    TextDelta,
    ToolStarted,
)
from ai_platform_engineering.utils.a2a_common.codec import labels, progress
from ai_platform_engineering.utils.a2a_common.codec.forms import is_form_data, read_form
from ai_platform_engineering.utils.a2a_common.codec.parts import content_of, data_of, text_of
from ai_platform_engineering.utils.redact import redact

SENTENCE_LENGTH = 300

PLAIN_REPLY = FormField("response", "multiline", "Your reply")
"""The field of a form for a question that an agent asked as plain text."""

_ANSWER_ARTIFACTS = frozenset({"current_result", "complete_result", "final_result"})
_NOTIFICATIONS = frozenset({"tool_notification_start", "tool_notification_end"})
_PLANS = frozenset({"execution_plan_update", "execution_plan_status_update"})


@dataclass(slots=True)
class _ArtifactText:
    """The text of an artifact so far."""

    name: str
    text: str


class ForeignStream:
    """One stream of a foreign agent. `turn` counts the messages sent to its task; generated ids contain it."""

    def __init__(self, agent: str, turn: int, ledger: CallLedger) -> None:
        self._agent = agent
        self._turn = turn
        self._open = ledger
        self._task_id = ""
        self._ids = 0
        self._running: list[ToolStarted] = []
        self._artifacts: dict[str, _ArtifactText] = {}
        self._forms: dict[str, Form] = {}
        self._last_status = ""
        self._message_id: str | None = None
        self._emitted = ""

    def artifact_update(self, update: TaskArtifactUpdateEvent) -> list[Event]:
        self._task_id = update.task_id or self._task_id
        artifact = update.artifact
        if artifact.name in _NOTIFICATIONS:
            return self._progress(text_of(artifact.parts))
        self._store(artifact, append=update.append)
        # A text that only grows is streamed before the task ends.
        if update.append or artifact.name in _ANSWER_ARTIFACTS:
            answer = self._artifact_answer()
            if answer.strip() and answer.startswith(self._emitted):
                return self._emit(answer)
        return []

    def status_update(self, update: TaskStatusUpdateEvent) -> list[Event]:
        self._task_id = update.task_id or self._task_id
        return self._status(update.status)

    def task(self, task: Task) -> list[Event]:
        """The events of a task that has ended or waits, for its parts that were not streamed."""
        self._task_id = task.id or self._task_id
        events: list[Event] = []
        if not self._artifacts and not self._last_status:
            for message in _since_question(task.history):
                events += self._progress(text_of(message.parts))
        if not self._artifact_answer().strip():
            for artifact in task.artifacts:
                self._store(artifact, append=False)
        return [*events, *self._status(task.status)]

    def message(self, message: Message) -> list[Event]:
        """The events of an answer without a task."""
        self._task_id = message.task_id or self._task_id or message.message_id
        self._last_status = content_of(message.parts)
        return self._final_events()

    def fail(self, code: str, sentence: str, reason: str) -> list[Event]:
        partial = self._artifact_answer()
        return [*self._close(False, reason), Failed(code, sentence, partial if partial.strip() else None)]

    def _status(self, status: TaskStatus) -> list[Event]:
        name = labels.display(self._agent)
        text = text_of(status.message.parts)
        match status.state:
            case TaskState.TASK_STATE_COMPLETED:
                events = [*self._progress(text), *self._final_events()]
            case TaskState.TASK_STATE_INPUT_REQUIRED:
                events = self._ask(status.message)
            case TaskState.TASK_STATE_AUTH_REQUIRED:
                sentence = _sentence(text) or f"{name} needs you to sign in first."
                events = self.fail("auth_required", sentence, "not signed in")
            case TaskState.TASK_STATE_FAILED:
                sentence = _sentence(text) or f"{name} failed without saying why."
                events = self.fail("agent", sentence, "the agent failed")
            case TaskState.TASK_STATE_REJECTED:
                sentence = _sentence(text) or f"{name} refused the request."
                events = self.fail("rejected", sentence, "the agent refused")
            case TaskState.TASK_STATE_CANCELED:
                events = [*self._close(False, "canceled"), Canceled(self._agent, _sentence(text))]
            case _:
                events = self._progress(text)
        return events

    def _store(self, artifact: Artifact, *, append: bool) -> None:
        if is_form_data(data := data_of(artifact.parts)):
            self._forms[artifact.artifact_id] = self._form(read_form(data))
            return
        stored = self._artifacts.setdefault(artifact.artifact_id, _ArtifactText(artifact.name, ""))
        text = content_of(artifact.parts)
        stored.name = artifact.name or stored.name
        stored.text = stored.text + text if append else text

    def _progress(self, text: str) -> list[Event]:
        """The calls that `text` reports. The rest of it becomes the latest status."""
        events: list[Event] = []
        lines = text.strip().splitlines()
        while lines:
            match progress.read_line(lines[0]):
                case None if not lines[0].strip():
                    pass
                case progress.Started(tool):
                    events.append(self._start(tool))
                case progress.Finished() as end if end.certain or self._is_running(end.tool):
                    events += self._end(end)
                    if not end.ok:
                        # The lines after a failure are its details.
                        return events
                case _:
                    break
            del lines[0]
        if lines:
            self._last_status = "\n".join(lines) if events else text
        return events

    def _start(self, tool: str) -> Event:
        start = ToolStarted(self._agent, tool, self._id("call"))
        self._running.append(start)
        self._open.record(start)
        return start

    def _is_running(self, tool: str) -> bool:
        return any(start.tool.casefold() == tool.casefold() for start in self._running)

    def _end(self, end: progress.Finished) -> list[Event]:
        events: list[Event] = [] if self._is_running(end.tool) else [self._start(end.tool)]
        start = next(start for start in self._running if start.tool.casefold() == end.tool.casefold())
        self._running.remove(start)
        reason = None if end.ok or end.reason is None else _sentence(end.reason, labels.REASON_LENGTH)
        self._open.record(ending := LedgerCall.of(start).finished(end.ok, reason))
        return [*events, ending]

    def _artifact_answer(self) -> str:
        """The answer in the artifacts: the last one with the name of an answer, else all texts except plans."""
        texts = [(stored.name, stored.text) for stored in self._artifacts.values() if stored.text.strip()]
        answers = [text for name, text in texts if name in _ANSWER_ARTIFACTS]
        return answers[-1] if answers else "\n\n".join(text for name, text in texts if name not in _PLANS)

    def _final_events(self) -> list[Event]:
        text = self._artifact_answer()
        if not text.strip():
            text = self._last_status
        if not text.strip():
            text = f"{labels.display(self._agent)} completed the task without a text."
        events = [*self._close(True, None, message=False), *self._emit(text)]
        message_id = self._message_id or ""
        return [*events, MessageEnded(self._agent, message_id), FinalResult(text, message_id)]

    def _emit(self, text: str) -> list[Event]:
        """Emit `text`: its new end if it continues the current message, else a message that supersedes that one."""
        if self._message_id is not None and text.startswith(self._emitted):
            rest, self._emitted = text[len(self._emitted) :], text
            return [TextDelta(self._agent, self._message_id, rest)] if rest else []
        before, self._message_id, self._emitted = self._message_id, self._id("message"), text
        ended: list[Event] = [] if before is None else [MessageEnded(self._agent, before)]
        return [*ended, TextDelta(self._agent, self._message_id, text, supersedes=before)]

    def _ask(self, message: Message) -> list[Event]:
        forms = list(self._forms.values())
        if is_form_data(data := data_of(message.parts)):
            forms = [self._form(read_form(data))]
        if not forms:
            text = text_of(message.parts).strip()
            forms = [self._form(Form("", "", (PLAIN_REPLY,), text or "It needs more information to go on."))]
        return [*self._close(True, None), InputRequired(tuple(forms))]

    def _form(self, form: Form) -> Form:
        return replace(
            form,
            form_id=form.form_id or self._id("form"),
            title=form.title or f"{labels.display(self._agent)} needs your input",
            agent=self._agent,
        )

    def _close(self, ok: bool, reason: str | None, *, message: bool = True) -> list[Event]:
        ends: list[Event] = [*self._open.close(reason, ok=ok)]
        if message and self._message_id is not None:
            ends.append(MessageEnded(self._agent, self._message_id))
        return ends

    def _id(self, purpose: str) -> str:
        self._ids += 1
        return f"{self._task_id}:{self._turn}:{purpose}:{self._ids}"


def _sentence(text: str, limit: int = SENTENCE_LENGTH) -> str:
    # Redacted before it is cut: a part of a credential might not be recognised.
    return labels.one_line(redact(text), limit)


def _since_question(history: Iterable[Message]) -> list[Message]:
    messages: list[Message] = []
    for message in history:
        messages = [] if message.role == Role.ROLE_USER else [*messages, message]
    return messages
