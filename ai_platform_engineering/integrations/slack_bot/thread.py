"""One run, shown in a Slack thread: hears what the supervisor tells, has it reduced, has the operations done.

All that is known is in the store before anything is done in Slack: a bot that is killed goes on from there.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import httpx
from a2a.types.a2a_pb2 import CancelTaskRequest, Message
from a2a.utils.errors import A2AError

from ai_platform_engineering.events import Canceled, Event, Failed, Form
from ai_platform_engineering.integrations.slack_bot import words
from ai_platform_engineering.integrations.slack_bot.clock import Clock
from ai_platform_engineering.integrations.slack_bot.places import Person
from ai_platform_engineering.integrations.slack_bot.store import BotStore, KeptRun, StoreError
from ai_platform_engineering.integrations.slack_bot.supervisor_link import SupervisorLink
from ai_platform_engineering.integrations.slack_bot.thread_view.delivery_reports import reported
from ai_platform_engineering.integrations.slack_bot.thread_view.operation_builder import operation_of
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    CREATING,
    Arrived,
    Later,
    Operation,
    Refused,
    Report,
    Unclear,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.planner import is_done
from ai_platform_engineering.integrations.slack_bot.thread_view.reducer import (
    Answered,
    Begun,
    FilledInWrongly,
    GoingOn,
    Input,
    Stopping,
    Tick,
    next_look,
    reduce,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.state import Saying, State, from_json, to_json
from ai_platform_engineering.integrations.slack_bot.thread_view.stream_buffer import Pace
from ai_platform_engineering.integrations.slack_bot.web_api.delivery import Delivery
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import message_to, question_message
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import Lost, Parked, Run, SupervisorError
from ai_platform_engineering.utils.a2a_common.request_context import TO_CONVERSATION
from ai_platform_engineering.utils.a2a_common.server.admission import QUESTION_ONLY

logger = logging.getLogger(__name__)

STOPPED_IN_SLACK: Final = "stopped_by_user"
"""How Slack says that somebody stopped a stream with Slack's own button."""
_LEAVE_SECONDS: Final = 2.0
_UNKEPT_SECONDS: Final = 5.0
_URGENT: Final = frozenset({"start", "post", "stop", "form", "form_update"})


@dataclass(frozen=True, slots=True)
class Environment:
    """What all threads share."""

    store: BotStore
    delivery: Delivery
    clock: Clock
    link: SupervisorLink
    pace: Callable[[], Pace]


@dataclass(frozen=True, slots=True)
class _Heard:
    """An event; `told` is the number to go on after."""

    event: Event
    told: int


class Thread:
    """`again` is for a run from a former life of the bot: what was being said or done then may have arrived."""

    def __init__(self, kept: KeptRun, environment: Environment, *, again: bool = False) -> None:
        self.kept = kept
        self._environment = environment
        self._again = again
        self._items: deque[Input | _Heard] = deque()
        self._stirred = asyncio.Event()
        self._run: Run | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._doing: asyncio.Task[None] | None = None
        self._unkept = False
        self.state = from_json(kept.state) if kept.state else self._fresh()

    def _fresh(self) -> State:
        incoming = self.kept.incoming
        begun, streams = self._environment.clock.now(), not incoming.person.is_bot
        return State(run_id=self.kept.id, after=incoming.ts, quiet=incoming.quiet, begun=begun, streams=streams)

    @property
    def waits(self) -> bool:
        """Whether people have to answer before it goes on."""
        return self._has_asked and not self.state.sayings and not self.state.closed

    @property
    def latest(self) -> str:
        """The last message in the thread that it knows of. Slack names messages by its own clock."""
        return max(self.state.known_messages(), key=float, default=self.kept.incoming.place.thread_ts)

    @property
    def _has_asked(self) -> bool:
        return self.state.telling.outcome == "asked"

    @property
    def is_spoken_to(self) -> bool:
        """Whether it waited, and somebody has answered."""
        return self._has_asked and bool(self.state.sayings)

    def was_told(self, message_id: str) -> bool:
        """Whether that message is an answer that it was given, and is about to hear."""
        sayings = (*self.state.sayings, *filter(None, [self.state.saying]))
        return any(saying.message_id == message_id for saying in sayings)

    @property
    def is_streaming(self) -> bool:
        return bool(self.state.messages) and self.state.messages[-1].streaming

    async def live(self) -> None:
        """Until all there is to tell has been told."""
        try:
            if self.state.flight is not None and self._doing is None:
                self._doing = asyncio.create_task(self._find_out(operation_of(self.state, self.state.flight)))
            self._hear_on()
            self._step(Tick(self._environment.pace()))
            while self.is_spoken_to or not self.state.ended or not is_done(self.state) or not self._is_kept(over=True):
                await self._next()
        finally:
            await self._leave()
        if self.state.closed:
            logger.warning("%s: given up: nothing can be written in this thread", self.kept.id)
            if self._has_asked:
                await self._withdraw()

    async def _withdraw(self) -> None:
        """Nobody sees what was asked: whatever is said in the thread next must not become the answer."""
        try:
            supervisor = await self._environment.link.supervisor(patient=False)
            await supervisor.client.cancel_task(CancelTaskRequest(id=self.state.task_id))
        except (A2AError, SupervisorError, httpx.HTTPError, TimeoutError) as error:
            logger.warning("%s: what nobody can answer still waits: %s", self.kept.id, type(error).__name__)

    def answer(self, saying: Saying) -> None:
        """Something is said to the run, which waits or will wait again. It is kept when this returns."""
        before = self.state
        self.state, operations = reduce(self.state, Answered(saying), self._environment.clock.now())
        try:
            self._keep()
        except StoreError:
            self.state = before
            raise
        self._start(operations)
        self._stirred.set()

    def show_again(self, form: Form) -> None:
        """A form that waits was filled in wrongly, and says so."""
        self._step(FilledInWrongly(form))
        self._is_kept()
        self._stirred.set()

    async def cancel(self, person: Person | None) -> bool:
        """Whether the supervisor has stopped it, for that person, or for somebody unknown. One that waited is told so:
        it hears nothing by itself."""
        try:
            if self.waits:
                supervisor = await self._environment.link.supervisor(patient=False)
                await supervisor.client.cancel_task(CancelTaskRequest(id=self.state.task_id))
                return True
            if self._run is not None:
                if person is not None:
                    self._step(Stopping(person.id))
                await self._run.cancel()
        except (A2AError, SupervisorError, httpx.HTTPError, TimeoutError) as error:
            logger.info("%s: not stopped: %s", self.kept.id, type(error).__name__)
            return False
        return self._run is not None or self.state.ended

    def stopped(self, person: Person) -> None:
        """It waited, and is over."""
        self._step(Stopping(person.id))
        self._step(Canceled())
        self._is_kept()
        self._stirred.set()

    async def _leave(self) -> None:
        """What is being done in Slack is waited for, but not for long; nothing new is done."""
        if self._hearing is not None:
            self._hearing.cancel()
        if self._doing is not None and not self._doing.done():
            await asyncio.wait([self._doing], timeout=_LEAVE_SECONDS)
            self._doing.cancel()
        for item in self._items:
            if isinstance(item, Arrived | Refused | Later | Unclear):
                self.state = reported(self.state, item, self._environment.clock.now())
        if not self.kept.done:
            self._is_kept()

    async def _next(self) -> None:
        """Take what has come, or wait for it, as long as there is nothing to do by itself."""
        if self.is_spoken_to:
            self._step(GoingOn())
            self._is_kept()
            self._hear_on()
        if not self._items:
            await self._wait()
        self._step(Tick(self._environment.pace()))
        while self._items:
            match self._items.popleft():
                case _Heard(event, told):
                    self._step(event, told)
                case item:
                    self._step(item)

    async def _wait(self) -> None:
        now = self._environment.clock.now()
        look = next_look(self.state, now)
        if look is None and self._unkept:
            look = now + _UNKEPT_SECONDS
        self._stirred.clear()
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(self._stirred.wait())]
        if look is not None:
            waits.append(asyncio.create_task(self._environment.clock.sleep(max(0.0, look - now))))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _put(self, item: Input | _Heard) -> None:
        self._items.append(item)
        self._stirred.set()

    def _step(self, item: Input, told: int | None = None) -> None:
        self.state, operations = reduce(self.state, item, self._environment.clock.now())
        if told is not None:
            self.kept = replace(self.kept, seen=told)
        if operations:
            self._is_kept()
        self._start(operations)

    def _start(self, operations: list[Operation]) -> None:
        for operation in operations:
            self._doing = asyncio.create_task(self._do(operation))

    def _is_kept(self, *, over: bool = False) -> bool:
        """People are told also what cannot be kept: a full disk is worse for whoever is killed than for who reads."""
        try:
            self._keep(done=over and not self.waits)
        except StoreError as error:
            if not self._unkept:
                logger.error("%s: it goes on, but cannot be kept: %s", self.kept.id, error)
            self._unkept = True
            return False
        self._unkept = False
        return True

    def _keep(self, *, done: bool = False) -> None:
        kept = replace(
            self.kept, task_id=self.state.task_id, trace_id=self.state.trace_id, state=to_json(self.state), done=done
        )
        self._environment.store.put_run(kept)
        self.kept = kept

    async def _do(self, operation: Operation) -> None:
        urgent = self.state.ended or (self.state.flight is not None and self.state.flight.kind in _URGENT)
        incoming = self.kept.incoming
        report = await self._environment.delivery.do(
            incoming.place, incoming.person, operation, urgent=urgent, holder=self.kept.id, after=self.latest
        )
        self._put(report)
        if isinstance(report, Refused) and report.error == STOPPED_IN_SLACK and not self.state.ended:
            # Anybody may have pressed it. Who it was comes as an event, where the app is told of those.
            await self.cancel(None)

    async def _find_out(self, operation: Operation) -> None:
        """What became of the operation that was being done when the bot was killed."""
        report: Report = Unclear(operation.number)
        if isinstance(operation, CREATING):
            place = self.kept.incoming.place
            try:
                report = await self._environment.delivery.find(place, operation, holder=self.kept.id, after=self.latest)
            except Exception:  # then it is done once more: better twice than never
                logger.exception("%s: nobody knows what became of an operation", self.kept.id)
        self._put(report)

    def _hear_on(self) -> None:
        if not self.state.ended:
            self._hearing = asyncio.create_task(self._hear())

    async def _hear(self) -> None:
        ending: Failed | None = None
        try:
            supervisor = await self._environment.link.supervisor()
            self._run = Run(
                supervisor,
                self._message(),
                self.kept.seen,
                task_id=self.kept.task_id if self.state.saying is None else "",
                sent=self._again,
                reconnect_seconds=self._environment.link.timeout,
            )
            self._again = False
            begun = asyncio.create_task(self._begin(self._run))
            try:
                async for item in self._run.items():
                    if isinstance(item, Lost):
                        continue
                    if not self.state.trace_id:
                        self._put(Begun(self._run.task_id, self._run.trace_id))
                    self._put(_Heard(item, self._run.told))
            finally:
                begun.cancel()
        except SupervisorError as error:
            logger.warning("%s: %s", self.kept.id, error)
            ending = _failure(error, is_answer=self.state.saying is not None)
        except Exception:  # whatever it was, the person is told that it is over
            logger.exception("%s: the run broke off", self.kept.id)
            ending = Failed("internal", words.BROKEN)
        if ending is not None:
            self._put(_Heard(ending, self.kept.seen))

    async def _begin(self, run: Run) -> None:
        self._put(Begun(await run.accepted(), ""))

    def _message(self) -> Message:
        """What is said to the supervisor: the question, or what was said to the run when it waited."""
        incoming, saying = self.kept.incoming, self.state.saying
        if saying is None:
            # Who may answer a form is looked up before; this has not been.
            metadata = {**self._environment.link.metadata(self.kept.id, incoming.person, incoming), QUESTION_ONLY: True}
            return question_message(incoming.text, self.kept.context_id, message_id=self.kept.id, metadata=metadata)
        person = Person(saying.team, saying.person)
        metadata = self._environment.link.metadata(saying.message_id, person, incoming)
        parked = Parked(self.kept.task_id, self.kept.context_id, self.kept.seen)
        if saying.answer is None:
            # People talk in threads: only words that plainly answer the form are an answer.
            metadata = {**metadata, TO_CONVERSATION: True}
        said = saying.words if saying.answer is None else {"resume": {"form_id": saying.form_id, **saying.answer}}
        return message_to(parked, said, message_id=saying.message_id, metadata=metadata)


def _failure(error: SupervisorError, *, is_answer: bool) -> Failed:
    if error.misconfigured:
        return Failed("misconfigured", words.MISCONFIGURED)
    if error.refused:
        return Failed("refused", words.TOO_LATE if is_answer else words.NOT_TAKEN)
    return Failed("unreachable", words.NO_SUPERVISOR)
