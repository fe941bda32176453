"""One run in a Slack thread: reads the supervisor's events, reduces them, and has the operations performed.

The state is stored before each operation, so a restarted bot continues from it.
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
from ai_platform_engineering.integrations.slack_bot.places import SlackUser
from ai_platform_engineering.integrations.slack_bot.store import BotStore, BotStoreError, StoredRun
from ai_platform_engineering.integrations.slack_bot.supervisor_link import SupervisorLink
from ai_platform_engineering.integrations.slack_bot.thread_view.delivery_reports import record_report
from ai_platform_engineering.integrations.slack_bot.thread_view.operation_builder import operation_of
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    CREATING,
    Deferred,
    Delivered,
    Operation,
    OperationRejected,
    Report,
    Unconfirmed,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.planner import is_done
from ai_platform_engineering.integrations.slack_bot.thread_view.reducer import (
    FormInvalid,
    Input,
    ReplyReceived,
    RunAccepted,
    RunResumed,
    StopRequested,
    Tick,
    next_tick,
    reduce,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.state import State, ThreadReply, from_json, to_json
from ai_platform_engineering.integrations.slack_bot.thread_view.stream_buffer import WritePace
from ai_platform_engineering.integrations.slack_bot.web_api.delivery import Delivery
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import message_to, question_message
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import (
    ConnectionLost,
    SupervisorError,
    SupervisorRun,
    WaitingTask,
)
from ai_platform_engineering.utils.a2a_common.request_context import TO_CONVERSATION
from ai_platform_engineering.utils.a2a_common.server.admission import QUESTION_ONLY

logger = logging.getLogger(__name__)

STOPPED_IN_SLACK: Final = "stopped_by_user"
"""Slack's error code after a person stopped a stream with Slack's own button."""
_CLOSE_SECONDS: Final = 2.0
_STORE_RETRY_SECONDS: Final = 5.0
_URGENT: Final = frozenset({"start", "post", "stop", "form", "form_update"})


@dataclass(frozen=True, slots=True)
class Environment:
    """The dependencies that all threads share."""

    store: BotStore
    delivery: Delivery
    clock: Clock
    link: SupervisorLink
    pace: Callable[[], WritePace]


@dataclass(frozen=True, slots=True)
class _Received:
    """An event, and the number to resume the stream after."""

    event: Event
    number: int


class Thread:
    """`resumed` is for a run from before a restart: its message or its operation in flight may have been received.

    `earlier` is the previous run of the same conversation: its message is sent first.
    """

    def __init__(
        self, stored: StoredRun, environment: Environment, *, resumed: bool = False, earlier: Thread | None = None
    ) -> None:
        self.stored = stored
        self._environment = environment
        self._resumed = resumed
        self._earlier = earlier
        self._sent = asyncio.Event()
        self._items: deque[Input | _Received] = deque()
        self._wake_up = asyncio.Event()
        self._run: SupervisorRun | None = None
        self._reader: asyncio.Task[None] | None = None
        self._performing: asyncio.Task[None] | None = None
        self._store_failed = False
        self.state = from_json(stored.state) if stored.state else self._initial_state()

    def _initial_state(self) -> State:
        incoming = self.stored.incoming
        begun, can_stream = self._environment.clock.now(), not incoming.person.is_bot
        return State(run_id=self.stored.id, after=incoming.ts, quiet=incoming.quiet, begun=begun, can_stream=can_stream)

    @property
    def waits(self) -> bool:
        """Whether the run waits for a person's reply."""
        return self._has_asked and not self.state.queued_replies and not self.state.closed

    @property
    def latest(self) -> str:
        """The last known message in the thread. Message ids are timestamps of Slack's clock."""
        return max(self.state.known_messages(), key=float, default=self.stored.incoming.place.thread_ts)

    @property
    def _has_asked(self) -> bool:
        return self.state.content.outcome == "asked"

    @property
    def has_queued_reply(self) -> bool:
        """Whether the run waits and a reply for it is queued."""
        return self._has_asked and bool(self.state.queued_replies)

    def has_reply(self, message_id: str) -> bool:
        """Whether that message is a queued or current reply."""
        queued_replies = (*self.state.queued_replies, *filter(None, [self.state.current_reply]))
        return any(reply.message_id == message_id for reply in queued_replies)

    @property
    def is_streaming(self) -> bool:
        return bool(self.state.messages) and self.state.messages[-1].streaming

    async def run(self) -> None:
        """Run until all content is delivered."""
        try:
            if self.state.pending is not None and self._performing is None:
                self._performing = asyncio.create_task(self._look_up(operation_of(self.state, self.state.pending)))
            self._start_reading()
            self._reduce(Tick(self._environment.pace()))
            while (
                self.has_queued_reply
                or not self.state.ended
                or not is_done(self.state)
                or not self._try_store(over=True)
            ):
                await self._next()
        finally:
            await self._close()
        if self.state.closed:
            logger.warning("%s: given up: Slack accepts no messages in this thread", self.stored.id)
            if self._has_asked:
                await self._cancel_unanswerable()

    async def _cancel_unanswerable(self) -> None:
        """Cancel the task. Its form is not visible, so the next message in the thread must not become the answer."""
        try:
            supervisor = await self._environment.link.supervisor(wait=False)
            await supervisor.client.cancel_task(CancelTaskRequest(id=self.state.task_id))
        except (A2AError, SupervisorError, httpx.HTTPError, TimeoutError) as error:
            logger.warning("%s: a form that cannot be answered stays open: %s", self.stored.id, type(error).__name__)

    def answer(self, reply: ThreadReply) -> None:
        """Queue a reply to the run, which waits or will wait again. It is stored when this returns."""
        before = self.state
        self.state, operations = reduce(self.state, ReplyReceived(reply), self._environment.clock.now())
        try:
            self._store()
        except BotStoreError:
            self.state = before
            raise
        self._start(operations)
        self._wake_up.set()

    def show_again(self, form: Form) -> None:
        """Show validation errors on an open form."""
        self._reduce(FormInvalid(form))
        self._try_store()
        self._wake_up.set()

    async def cancel(self, person: SlackUser | None) -> bool:
        """Cancel the run for `person`, or for an unknown person. Returns whether the supervisor confirmed it. A waiting
        run reads no events, so the caller must also call `stopped`."""
        try:
            if self.waits:
                supervisor = await self._environment.link.supervisor(wait=False)
                await supervisor.client.cancel_task(CancelTaskRequest(id=self.state.task_id))
                return True
            if self._run is not None:
                if person is not None:
                    self._reduce(StopRequested(person.id))
                await self._run.cancel()
        except (A2AError, SupervisorError, httpx.HTTPError, TimeoutError) as error:
            logger.info("%s: not stopped: %s", self.stored.id, type(error).__name__)
            return False
        return self._run is not None or self.state.ended

    def stopped(self, person: SlackUser) -> None:
        """Record that a waiting run was canceled."""
        self._reduce(StopRequested(person.id))
        self._reduce(Canceled())
        self._try_store()
        self._wake_up.set()

    async def _close(self) -> None:
        """Wait briefly for the operation in flight, record its report, and store the state."""
        if self._reader is not None:
            self._reader.cancel()
        if self._performing is not None and not self._performing.done():
            await asyncio.wait([self._performing], timeout=_CLOSE_SECONDS)
            self._performing.cancel()
        for item in self._items:
            if isinstance(item, Delivered | OperationRejected | Deferred | Unconfirmed):
                self.state = record_report(self.state, item, self._environment.clock.now())
        if not self.stored.done:
            self._try_store()

    async def _next(self) -> None:
        """Process the queued inputs; wait for one, or for the next tick, if there are none."""
        if self.has_queued_reply:
            self._reduce(RunResumed())
            self._try_store()
            self._start_reading()
        if not self._items:
            await self._wait()
        self._reduce(Tick(self._environment.pace()))
        while self._items:
            match self._items.popleft():
                case _Received(event, number):
                    self._reduce(event, number)
                case item:
                    self._reduce(item)

    async def _wait(self) -> None:
        now = self._environment.clock.now()
        tick = next_tick(self.state, now)
        if tick is None and self._store_failed:
            tick = now + _STORE_RETRY_SECONDS
        self._wake_up.clear()
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(self._wake_up.wait())]
        if tick is not None:
            waits.append(asyncio.create_task(self._environment.clock.sleep(max(0.0, tick - now))))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _enqueue(self, item: Input | _Received) -> None:
        self._items.append(item)
        self._wake_up.set()

    def _reduce(self, item: Input, number: int | None = None) -> None:
        self.state, operations = reduce(self.state, item, self._environment.clock.now())
        if number is not None:
            self.stored = replace(self.stored, seen=number)
        if operations:
            self._try_store()
        self._start(operations)

    def _start(self, operations: list[Operation]) -> None:
        for operation in operations:
            self._performing = asyncio.create_task(self._perform(operation))

    def _try_store(self, *, over: bool = False) -> bool:
        """Store the state; False if that fails. The run continues on a full disk, and only a restart would lose it."""
        try:
            self._store(done=over and not self.waits)
        except BotStoreError as error:
            if not self._store_failed:
                logger.error("%s: the run continues, but its state cannot be stored: %s", self.stored.id, error)
            self._store_failed = True
            return False
        self._store_failed = False
        return True

    def _store(self, *, done: bool = False) -> None:
        stored = replace(
            self.stored, task_id=self.state.task_id, trace_id=self.state.trace_id, state=to_json(self.state), done=done
        )
        self._environment.store.put_run(stored)
        self.stored = stored

    async def _perform(self, operation: Operation) -> None:
        urgent = self.state.ended or (self.state.pending is not None and self.state.pending.kind in _URGENT)
        incoming = self.stored.incoming
        report = await self._environment.delivery.do(
            incoming.place, incoming.person, operation, urgent=urgent, holder=self.stored.id, after=self.latest
        )
        self._enqueue(report)
        if isinstance(report, OperationRejected) and report.error == STOPPED_IN_SLACK and not self.state.ended:
            # The error does not name the person. An event does, if the app subscribes to it.
            await self.cancel(None)

    async def _look_up(self, operation: Operation) -> None:
        """Find out whether the operation that was in flight before the restart took effect."""
        report: Report = Unconfirmed(operation.number)
        if isinstance(operation, CREATING):
            place = self.stored.incoming.place
            try:
                report = await self._environment.delivery.find(
                    place, operation, holder=self.stored.id, after=self.latest
                )
            except Exception:  # the operation is repeated: a duplicate is better than a loss
                logger.exception("%s: the result of an operation is unknown", self.stored.id)
        self._enqueue(report)

    def _start_reading(self) -> None:
        if self.state.ended:
            self._sent.set()
        else:
            self._reader = asyncio.create_task(self._read_events())

    async def _read_events(self) -> None:
        ending: Failed | None = None
        try:
            if self._earlier is not None:
                await self._earlier.sent()
                self._earlier = None
            supervisor = await self._environment.link.supervisor()
            self._run = SupervisorRun(
                supervisor,
                self._message(),
                self.stored.seen,
                task_id=self.stored.task_id if self.state.current_reply is None else "",
                sent=self._resumed,
                reconnect_seconds=self._environment.link.timeout,
            )
            self._resumed = False
            begun = asyncio.create_task(self._report_acceptance(self._run))
            try:
                async for item in self._run.items():
                    if isinstance(item, ConnectionLost):
                        continue
                    if not self.state.trace_id:
                        self._enqueue(RunAccepted(self._run.task_id, self._run.trace_id))
                    self._enqueue(_Received(item, self._run.emitted_seq))
            finally:
                begun.cancel()
        except SupervisorError as error:
            logger.warning("%s: %s", self.stored.id, error)
            ending = _failure(error, is_answer=self.state.current_reply is not None)
        except Exception:  # every failure ends the run with a message
            logger.exception("%s: reading the run's events failed", self.stored.id)
            ending = Failed("internal", words.BROKEN)
        finally:
            self._sent.set()
        if ending is not None:
            self._enqueue(_Received(ending, self.stored.seen))

    async def _report_acceptance(self, run: SupervisorRun) -> None:
        task_id = await run.accepted()
        self._sent.set()
        self._enqueue(RunAccepted(task_id, ""))

    async def sent(self) -> None:
        """Wait until the supervisor has accepted the message of this run, or the run is over."""
        await self._sent.wait()

    def _message(self) -> Message:
        """The message to the supervisor: the question, or the current reply."""
        incoming, reply, link = self.stored.incoming, self.state.current_reply, self._environment.link
        metadata = link.metadata(incoming)
        if reply is None:
            # The person's permission to answer a form was not checked, so this must not become an answer.
            metadata[QUESTION_ONLY] = True
            question = question_message(
                incoming.text, self.stored.context_id, message_id=self.stored.id, metadata=metadata
            )
            return link.signed(question, incoming.person, incoming)
        person = SlackUser(reply.team, reply.person)
        waiting_task = WaitingTask(self.stored.task_id, self.stored.context_id, self.stored.seen)
        if reply.answer is None:
            # People also talk in threads: only text that clearly answers the form counts as the answer.
            metadata[TO_CONVERSATION] = True
        content = reply.text if reply.answer is None else {"resume": {"form_id": reply.form_id, **reply.answer}}
        answer = message_to(waiting_task, content, message_id=reply.message_id, metadata=metadata)
        return link.signed(answer, person, incoming)


def _failure(error: SupervisorError, *, is_answer: bool) -> Failed:
    if error.misconfigured:
        return Failed("misconfigured", words.MISCONFIGURED)
    if error.over_budget:
        return Failed("budget", str(error))
    if error.refused:
        return Failed("refused", words.TOO_LATE if is_answer else words.NOT_ACCEPTED)
    return Failed("unreachable", words.NO_SUPERVISOR)
