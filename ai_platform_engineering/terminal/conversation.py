"""A conversation with the supervisor: its id, its task with open forms, and the running request."""

from __future__ import annotations

import signal
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce as fold
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Final

import httpx
from a2a.utils.errors import A2AError, TaskNotCancelableError

from ai_platform_engineering.events import Event, Form, InputRequired
from ai_platform_engineering.events_json import Asked
from ai_platform_engineering.forms.answers import Answer
from ai_platform_engineering.terminal.background import BackgroundLoop
from ai_platform_engineering.terminal.output import Output, play
from ai_platform_engineering.terminal.reducer import reduce, resume_view
from ai_platform_engineering.terminal.view import TerminalNotice, View
from ai_platform_engineering.text.form_text import answer_text
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import Supervisor
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import ConnectionLost, SupervisorRun, WaitingTask

STOPPING: Final = "Stopping..."
RECONNECTING: Final = "The connection was lost; reconnecting..."
NOT_STOPPED: Final = "The supervisor did not confirm that it stopped."


@dataclass(frozen=True, slots=True)
class _StreamEnded:
    """The stream has ended; `problem` is the error that ended it."""

    problem: Exception | None = None


class _CtrlC:
    """The person pressed Ctrl-C."""


_Arrival = Event | TerminalNotice | _StreamEnded | _CtrlC


class ChatConversation:
    """Runs one request after the other. While a task has an open form, the next message goes to that task."""

    def __init__(self, supervisor: Supervisor, background: BackgroundLoop, context_id: str | None = None) -> None:
        self._supervisor = supervisor
        self._background = background
        self._view = View()
        self.waiting_task: WaitingTask | None = None
        self.context_id = context_id or uuid.uuid4().hex
        self.interrupted = False

    @classmethod
    def waiting(cls, supervisor: Supervisor, background: BackgroundLoop, task_id: str) -> ChatConversation:
        """The conversation of a task with an open form. Earlier events are read but not shown."""
        waiting_task, events = background.submit(supervisor.waiting_task(task_id)).result()
        conversation = cls(supervisor, background, waiting_task.context_id)
        conversation.waiting_task = waiting_task
        conversation._view = fold(reduce, events, View())
        return conversation

    @property
    def forms(self) -> tuple[Form, ...]:
        """The open forms."""
        ending = self._view.ending
        return ending.forms if self.waiting_task is not None and isinstance(ending, InputRequired) else ()

    @property
    def view(self) -> View:
        return self._view

    def show_forms(self, output: Output) -> None:
        """Show the open forms, without the events before them."""
        if isinstance(self._view.ending, InputRequired):
            output.begin(Asked("", self.context_id), typed=True, view=View())
            output.take(self._view.ending)
            output.end(reduce(View(), self._view.ending))

    def new_conversation(self) -> ChatConversation:
        return ChatConversation(self._supervisor, self._background)

    def ask(self, question: str, output: Output, *, typed: bool = True, to_conversation: bool = False) -> View:
        """Ask, and show the run. The first Ctrl-C cancels the run, the second one exits at once.

        With `to_conversation` the text answers an open form only if it clearly is an answer.
        """
        run = self._supervisor.ask(question, self.context_id, self.waiting_task, to_conversation=to_conversation)
        return self._show(run, Asked(question, self.context_id), output, typed=typed)

    def answer(self, form: Form, answer: Answer, output: Output, *, typed: bool = True) -> View:
        """Answer an open form, and show the resumed run."""
        if self.waiting_task is None:
            raise ValueError(f"No form is open in the conversation {self.context_id}.")
        run = self._supervisor.answer(form, answer, self.waiting_task)
        return self._show(run, Asked(answer_text(form, answer), self.context_id), output, typed=typed)

    def _show(self, run: SupervisorRun, asked: Asked, output: Output, *, typed: bool) -> View:
        view = resume_view(self._view)
        output.begin(asked, typed=typed, view=view)
        arrivals: SimpleQueue[_Arrival] = SimpleQueue()
        with _interrupts_to(arrivals):
            source = _LiveRun(run, arrivals, self._background)
            try:
                self._view = play(source, output, view)
            finally:
                source.leave()
        self.waiting_task = run.waiting_task() if isinstance(self._view.ending, InputRequired) else None
        self.interrupted = source.interrupted
        source.check()
        return self._view


class _LiveRun:
    """A running request as a `RunSource`: the event loop's thread puts the items into a queue."""

    def __init__(self, run: SupervisorRun, arrivals: SimpleQueue[_Arrival], background: BackgroundLoop) -> None:
        self._run = run
        self._arrivals = arrivals
        self._background = background
        self._problem: Exception | None = None
        self._pumping: Future[None] = background.submit(self._pump())
        self.interrupted = False

    def next(self, timeout: float) -> Event | TerminalNotice | None:
        try:
            arrival = self._arrivals.get(timeout=timeout) if timeout > 0 else self._arrivals.get_nowait()
        except Empty:
            return None
        match arrival:
            case _StreamEnded(problem):
                self._problem = problem
                raise EOFError
            case _CtrlC():
                if self.interrupted:
                    raise KeyboardInterrupt
                self.interrupted = True
                self._background.submit(self._stop())
                return TerminalNotice(STOPPING)
            case _:
                return arrival

    def leave(self) -> None:
        self._pumping.cancel()

    def check(self) -> None:
        """Raise the error that ended the stream, if there was one."""
        if self._problem is not None:
            raise self._problem

    async def _pump(self) -> None:
        try:
            async for item in self._run.items():
                self._arrivals.put(TerminalNotice(RECONNECTING) if isinstance(item, ConnectionLost) else item)
        except Exception as error:
            self._arrivals.put(_StreamEnded(error))
        else:
            self._arrivals.put(_StreamEnded())

    async def _stop(self) -> None:
        try:
            await self._run.cancel()
        except TaskNotCancelableError:
            # The task has ended; its last event is still to arrive.
            return
        except (A2AError, httpx.HTTPError, TimeoutError):
            self._arrivals.put(TerminalNotice(NOT_STOPPED))
            self._arrivals.put(_StreamEnded())


@contextmanager
def _interrupts_to(arrivals: SimpleQueue[_Arrival]) -> Iterator[None]:
    """Queue Ctrl-C like any other item, so that it cannot interrupt the drawing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def arrive(_signal: int, _frame: FrameType | None) -> None:
        arrivals.put(_CtrlC())

    before = signal.signal(signal.SIGINT, arrive)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
