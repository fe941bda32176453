"""What an A2A request does: messages start runs, and everything a client sees of a run comes from the event log.

A client that goes away, or is slow, has no effect on the run. The SDK's handler answers what has nothing to do with
runs: reading and listing tasks, and where push notifications go.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.request_handlers.request_handler import validate_request_params
from a2a.server.tasks import PushNotificationConfigStore
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    Message,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskState,
    TaskStatus,
)
from a2a.utils.errors import (
    A2AError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from a2a.utils.task import apply_history_length, validate_history_length

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.storage.event_log.event_log import Entry, EventLog, Snapshot, TaskEndedError
from ai_platform_engineering.utils.a2a_common.delegation import without_skills
from ai_platform_engineering.utils.a2a_common.protocol import PARKED_STATES, TERMINAL_STATES
from ai_platform_engineering.utils.a2a_common.request_context import TO_CONVERSATION, is_delegated
from ai_platform_engineering.utils.a2a_common.server.admission import Admission, is_question_only
from ai_platform_engineering.utils.a2a_common.server.assignments import Assignments
from ai_platform_engineering.utils.a2a_common.server.push import BackgroundSender
from ai_platform_engineering.utils.a2a_common.server.task_store import LogTaskStore
from ai_platform_engineering.utils.a2a_common.wire import FORM_ARTIFACT

AFTER_SEQ = "after_seq"
"""Key in the call context's state: the number of the last event the caller has seen, as the caller sent it."""
PROTOCOL = "protocol"
"""Key in the call context's state: "0.3" or "1.0", the protocol the caller speaks."""

_ENDED = "The task has ended. Send the message without its taskId, with the same contextId, to go on from it."
_BUSY = "The task is being worked on. Send the message without its taskId, with the same contextId: it waits its turn."
_FORM_OPEN = "A form is open in this conversation. Answer it or cancel its task first, or ask in another conversation."

StreamItem = Snapshot | Entry
"""A stream is one snapshot, then entries."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message that a task has got: the task as it was then, and whether the message began it."""

    snapshot: Snapshot
    begins_task: bool


class ServerStoppingError(A2AError):
    """The server is being shut down and takes no more work."""

    message = "The server is stopping. Send the message again when it is back."


class LogRequestHandler(DefaultRequestHandlerV2):
    """Serves A2A requests from the event log."""

    def __init__(
        self,
        executor: AgentExecutor,
        log: EventLog,
        card: AgentCard,
        *,
        agent: str = SUPERVISOR,
        admission: Admission | None = None,
        push_config_store: PushNotificationConfigStore | None = None,
        push_sender: BackgroundSender | None = None,
        push_url_validator: Callable[[str], Awaitable[bool]] | None = None,
    ) -> None:
        super().__init__(
            agent_executor=executor,
            task_store=LogTaskStore(log),
            agent_card=card,
            push_config_store=push_config_store,
            push_sender=push_sender,
            push_url_validator=push_url_validator,
        )
        self.log = log
        self.assignments = Assignments(executor, log, agent, push_sender)
        self._pushes = push_sender
        self._admission = admission

    @property
    def stopping(self) -> bool:
        return self.assignments.stopping

    async def stop_work(self) -> None:
        """End all work, so that every stream and every call that waits for it ends; take no more."""
        await self.assignments.aclose()

    async def aclose(self) -> None:
        await self.stop_work()
        await super().aclose()
        if self._pushes is not None:
            await self._pushes.aclose()

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        accepted = await self.accept(params, context)
        task = accepted.snapshot.task
        at_once = params.configuration.return_immediately
        if not (at_once and accepted.begins_task):
            async for _ in self.log.follow(task.id, accepted.snapshot.seq):
                if at_once:
                    break
            task = await self.log.task(task.id) or task
        return apply_history_length(task, params.configuration)

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        async for items in self.stream_message(params, context):
            for item in items:
                yield item.task if isinstance(item, Snapshot) else item.event

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        async for items in self.stream_task(params, context):
            for item in items:
                yield item.task if isinstance(item, Snapshot) else item.event

    async def stream_message(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncIterator[Sequence[StreamItem]]:
        """Give the message to its task; the task at that moment, then every event its work gives rise to.

        Each time all that there is, and the task at once. A supervisor gets the task together with what happens first,
        which is told soon: every piece wakes it.
        """
        snapshot = (await self.accept(params, context)).snapshot
        entries = self.log.follow(snapshot.task.id, snapshot.seq)
        first: list[StreamItem] = [Snapshot(snapshot.seq, apply_history_length(snapshot.task, params.configuration))]
        if is_delegated(params.message):
            first += await anext(entries, ())
        yield first
        del snapshot, params, first  # a stream may wait for long
        async for some in entries:
            yield some

    async def stream_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncIterator[Sequence[StreamItem]]:
        """The task as the caller last knew it, or as it is now, alone; then every event after that."""
        validate_proto_required_fields(params)
        snapshot = await self.log.snapshot(params.id)
        if snapshot is None:
            raise TaskNotFoundError
        if (after := context.state.get(AFTER_SEQ)) is not None:
            snapshot = await self.log.snapshot(params.id, at=_seen(after, snapshot.seq)) or snapshot
        elif snapshot.task.status.state in TERMINAL_STATES and context.state.get(PROTOCOL) != "0.3":
            raise UnsupportedOperationError(
                message="The task has ended. Read it with GetTask, or subscribe with the header Last-Event-ID."
            )
        yield [snapshot]
        async for entries in self.log.follow(params.id, snapshot.seq):
            yield entries

    @validate_request_params
    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task | None:
        task = await self.log.task(params.id)
        if task is None:
            raise TaskNotFoundError
        if task.status.state in TERMINAL_STATES:
            raise TaskNotCancelableError
        await self.assignments.cancel(RequestContext(context, task_id=params.id, context_id=task.context_id, task=task))
        task = await self.log.task(params.id)
        if task is None or task.status.state != TaskState.TASK_STATE_CANCELED:
            raise TaskNotCancelableError
        return task

    async def accept(self, params: SendMessageRequest, context: ServerCallContext) -> Accepted:
        """Give a message to its task, or to a new one, and see to it that it is worked on."""
        if self.stopping:
            raise ServerStoppingError
        check_required(params)
        validate_history_length(params.configuration)
        message = params.message
        check_message(message)
        if self._admission is not None:
            self._admission.admit(params)
        if message.context_id and not message.task_id:
            # While a form is open, a message to the conversation goes to the form's task.
            message.task_id = await self.log.waiting(message.context_id) or ""
            if message.task_id:
                if is_question_only(message):
                    raise UnsupportedOperationError(message=_FORM_OPEN)
                message.metadata[TO_CONVERSATION] = True
        known = await self._named_task(message)
        request = await self._request_context_builder.build(
            params=params, task_id=message.task_id or None, context_id=message.context_id or None, context=context
        )
        push = None
        if params.configuration.HasField("task_push_notification_config"):
            push = params.configuration.task_push_notification_config
            await self._reject_unsafe_push_url(push.url)
        if known is None:
            await self.log.create(_submitted(without_skills(message)))
        if push is not None and self._push_config_store is not None:
            await self._push_config_store.set_info(message.task_id, push, context)
        if known is not None:
            try:
                await self.log.add_message(message.task_id, without_skills(message))
            except TaskEndedError as error:
                # It ended between the first look at it and now.
                raise UnsupportedOperationError(message=_ENDED) from error
        snapshot = await self.log.snapshot(message.task_id)
        if snapshot is None:
            raise TaskNotFoundError
        self.assignments.give(request)
        return Accepted(snapshot, begins_task=known is None)

    async def _named_task(self, message: Message) -> Snapshot | None:
        if not message.task_id:
            return None
        snapshot = await self.log.snapshot(message.task_id)
        if snapshot is None:
            raise TaskNotFoundError
        if snapshot.task.status.state in TERMINAL_STATES:
            raise UnsupportedOperationError(message=_ENDED)
        # A task that has asked may get a second answer while it works on the first; one that never asked takes none.
        if snapshot.task.status.state not in PARKED_STATES and not _has_asked(snapshot.task):
            raise UnsupportedOperationError(message=_BUSY)
        if message.context_id and message.context_id != snapshot.task.context_id:
            raise InvalidParamsError(message="message.contextId: not the context of the task named by taskId.")
        # Left empty, the SDK would make up a context that is not the task's.
        message.context_id = snapshot.task.context_id
        return snapshot


def check_required(params: SendMessageRequest) -> None:
    """What the protocol's schema wants. Looking through all of it takes time, and almost every message has it."""
    message = params.message
    has_push = params.configuration.HasField("task_push_notification_config")
    if has_push or not (message.message_id and message.role and message.parts):
        validate_proto_required_fields(params)


def check_message(message: Message) -> None:
    """What the protocol's schema leaves open and a run cannot do without."""
    for place, part in enumerate(message.parts):
        if part.WhichOneof("content") is None:
            raise InvalidParamsError(message=f"message.parts[{place}]: needs one of text, data, raw or url.")
    if not any(part.WhichOneof("content") != "text" or part.text.strip() for part in message.parts):
        raise InvalidParamsError(message="message.parts: there is no text and nothing else in it.")


def _has_asked(task: Task) -> bool:
    return any(artifact.name == FORM_ARTIFACT for artifact in task.artifacts)


def _submitted(message: Message) -> Task:
    status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
    status.timestamp.GetCurrentTime()
    return Task(id=message.task_id, context_id=message.context_id, status=status, history=[message])


def _seen(value: Any, last: int) -> int:
    """The number of the last event the caller has seen, from a header (text) or from JSON (a number)."""
    match value:
        case str() if value.isascii() and value.isdigit() and len(value) < 16:
            seq = int(value)
        case int() if not isinstance(value, bool):
            seq = value
        case float() if value.is_integer():
            seq = int(value)
        case _:
            seq = -1
    if not 0 <= seq <= last:
        raise InvalidParamsError(
            message=f"Last-Event-ID (or metadata.after_seq): must be a whole number from 0 to {last}, the last event."
        )
    return seq
