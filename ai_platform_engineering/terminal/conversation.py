"""A conversation with the supervisor: its id, the task that waits for an answer, and the run under way."""

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
from ai_platform_engineering.terminal.background import Background
from ai_platform_engineering.terminal.output import Output
from ai_platform_engineering.terminal.playback import play
from ai_platform_engineering.terminal.reducer import go_on, reduce
from ai_platform_engineering.terminal.view import Notice, View
from ai_platform_engineering.text.form_words import answer_text
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import Supervisor
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import Lost, Parked, Run

STOPPING: Final = "Stopping..."
LOST: Final = "The connection was lost; picking it up again..."
NOT_STOPPED: Final = "The supervisor did not confirm that it stopped."


@dataclass(frozen=True, slots=True)
class _Over:
    """No more comes; `problem` where that is not as it should be."""

    problem: Exception | None = None


class _Interrupt:
    """The person pressed Ctrl-C."""


_Arrival = Event | Notice | _Over | _Interrupt


class Conversation:
    """Runs one after the other; where one waits for an answer, what is said next goes to it and it goes on."""

    def __init__(self, supervisor: Supervisor, background: Background, context_id: str | None = None) -> None:
        self._supervisor = supervisor
        self._background = background
        self._view = View()
        self.parked: Parked | None = None
        self.context_id = context_id or uuid.uuid4().hex
        self.interrupted = False

    @classmethod
    def waiting(cls, supervisor: Supervisor, background: Background, task_id: str) -> Conversation:
        """The conversation of a task that waits for an answer. Nothing of what happened before is shown."""
        parked, events = background.start(supervisor.parked(task_id)).result()
        conversation = cls(supervisor, background, parked.context_id)
        conversation.parked = parked
        conversation._view = fold(reduce, events, View())
        return conversation

    @property
    def forms(self) -> tuple[Form, ...]:
        """The forms that are open."""
        ending = self._view.ending
        return ending.forms if self.parked is not None and isinstance(ending, InputRequired) else ()

    @property
    def view(self) -> View:
        return self._view

    def show_forms(self, output: Output) -> None:
        """Show what waits, and nothing of what led to it."""
        if isinstance(self._view.ending, InputRequired):
            output.begin(Asked("", self.context_id), typed=True, view=View())
            output.take(self._view.ending)
            output.end(reduce(View(), self._view.ending))

    def anew(self) -> Conversation:
        return Conversation(self._supervisor, self._background)

    def ask(self, question: str, output: Output, *, typed: bool = True, to_conversation: bool = False) -> View:
        """Ask, and show what comes of it. Ctrl-C stops the run; a second one leaves at once.

        With `to_conversation` a text answers an open form only if it plainly does.
        """
        run = self._supervisor.ask(question, self.context_id, self.parked, to_conversation=to_conversation)
        return self._show(run, Asked(question, self.context_id), output, typed=typed)

    def answer(self, form: Form, answer: Answer, output: Output, *, typed: bool = True) -> View:
        """Answer an open form, and show how the run goes on."""
        if self.parked is None:
            raise ValueError(f"No form is open in the conversation {self.context_id}.")
        run = self._supervisor.answer(form, answer, self.parked)
        return self._show(run, Asked(answer_text(form, answer), self.context_id), output, typed=typed)

    def _show(self, run: Run, asked: Asked, output: Output, *, typed: bool) -> View:
        view = go_on(self._view)
        output.begin(asked, typed=typed, view=view)
        arrivals: SimpleQueue[_Arrival] = SimpleQueue()
        with _interrupts_to(arrivals):
            source = _LiveRun(run, arrivals, self._background)
            try:
                self._view = play(source, output, view)
            finally:
                source.leave()
        self.parked = run.parked() if isinstance(self._view.ending, InputRequired) else None
        self.interrupted = source.interrupted
        source.check()
        return self._view


class _LiveRun:
    """A run as it comes in from the event loop's thread."""

    def __init__(self, run: Run, arrivals: SimpleQueue[_Arrival], background: Background) -> None:
        self._run = run
        self._arrivals = arrivals
        self._background = background
        self._problem: Exception | None = None
        self._pumping: Future[None] = background.start(self._pump())
        self.interrupted = False

    def next(self, timeout: float) -> Event | Notice | None:
        try:
            arrival = self._arrivals.get(timeout=timeout) if timeout > 0 else self._arrivals.get_nowait()
        except Empty:
            return None
        match arrival:
            case _Over(problem):
                self._problem = problem
                raise EOFError
            case _Interrupt():
                if self.interrupted:
                    raise KeyboardInterrupt
                self.interrupted = True
                self._background.start(self._stop())
                return Notice(STOPPING)
            case _:
                return arrival

    def leave(self) -> None:
        self._pumping.cancel()

    def check(self) -> None:
        """Raises what kept the question from being asked."""
        if self._problem is not None:
            raise self._problem

    async def _pump(self) -> None:
        try:
            async for item in self._run.items():
                self._arrivals.put(Notice(LOST) if isinstance(item, Lost) else item)
        except Exception as error:
            self._arrivals.put(_Over(error))
        else:
            self._arrivals.put(_Over())

    async def _stop(self) -> None:
        try:
            await self._run.cancel()
        except TaskNotCancelableError:
            # It has ended by itself; how is on its way.
            return
        except (A2AError, httpx.HTTPError, TimeoutError):
            self._arrivals.put(Notice(NOT_STOPPED))
            self._arrivals.put(_Over())


@contextmanager
def _interrupts_to(arrivals: SimpleQueue[_Arrival]) -> Iterator[None]:
    """Ctrl-C arrives like everything else, so that it cannot tear apart what is being drawn."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def arrive(_signal: int, _frame: FrameType | None) -> None:
        arrivals.put(_Interrupt())

    before = signal.signal(signal.SIGINT, arrive)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
