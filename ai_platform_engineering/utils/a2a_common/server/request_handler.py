"""The A2A request handler: a message becomes an assignment of the work queue, and streams are read from the event log.

A client that disconnects or reads slowly has no effect on the run. The SDK's handler serves the requests that start no
run: reading and listing tasks, and the receivers of push notifications.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import Event, EventQueue
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.request_handlers.request_handler import validate_request_params
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

from ai_platform_engineering.audit.access import NOT_THEIR_CONVERSATION, AccessAudit
from ai_platform_engineering.identity.access import sees_everything
from ai_platform_engineering.identity.principal import Principal, caller_in
from ai_platform_engineering.storage.event_log.event_log import (
    Entry,
    EventLog,
    ForeignConversationError,
    RepeatedMessageError,
    Snapshot,
    StoredRequest,
    TaskEndedError,
)
from ai_platform_engineering.utils.a2a_common.delegation import without_skills
from ai_platform_engineering.utils.a2a_common.protocol import (
    OVER_BUDGET,
    SERVER_STOPPING,
    TERMINAL_STATES,
    WAITING_STATES,
)
from ai_platform_engineering.utils.a2a_common.request_context import TO_CONVERSATION, is_delegated
from ai_platform_engineering.utils.a2a_common.server.admission import Admission, Sender, is_question_only
from ai_platform_engineering.utils.a2a_common.server.followed_tasks import FollowedTasks
from ai_platform_engineering.utils.a2a_common.server.incoming import bearer_token, users_token
from ai_platform_engineering.utils.a2a_common.server.push import PushNotifications
from ai_platform_engineering.utils.a2a_common.server.push_configs import PushConfigs
from ai_platform_engineering.utils.a2a_common.server.repeated_messages import RepeatedMessages
from ai_platform_engineering.utils.a2a_common.server.sse import OpenStreams
from ai_platform_engineering.utils.a2a_common.server.task_store import LogTaskStore
from ai_platform_engineering.utils.a2a_common.server.usage_ledger import BudgetExhaustedError, UsageLedger
from ai_platform_engineering.utils.a2a_common.server.work import Assignment, Work
from ai_platform_engineering.utils.a2a_common.wire import FORM_ARTIFACT
from ai_platform_engineering.utils.outbound.policy import RefusedError

AFTER_SEQ = "after_seq"
"""Key in the call context's state: the `seq` of the last event the caller has, as the caller sent it."""
PROTOCOL = "protocol"
"""Key in the call context's state: the protocol version of the caller, "0.3" or "1.0"."""

_ENDED = "The task has ended. Send the message without its taskId, with the same contextId, to go on from it."
_BUSY = "The task is being worked on. Send the message without its taskId, with the same contextId: it waits its turn."
_FOREIGN = "message.contextId: there is no conversation of yours with this id. Leave it out to begin a new one."
_FORM_OPEN = "A form is open in this conversation. Answer it or cancel its task first, or ask in another conversation."

StreamItem = Snapshot | Entry
"""A stream is one snapshot, then entries."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """An accepted message: its task just before the first event of its run, and what the message is to the task.

    A `repeated` message was accepted before. Its client sends it again to get the events.
    """

    snapshot: Snapshot
    kind: Literal["first", "later", "repeated"]


class ServerStoppingError(A2AError):
    """The server is shutting down and accepts no messages."""

    message = "The server is stopping. Send the message again when it is back."

    def __init__(self) -> None:
        super().__init__(data=dict(SERVER_STOPPING))


class BudgetError(UnsupportedOperationError):
    """A budget of the sender is used up, so the message is not accepted. It may be sent again later."""

    def __init__(self, error: BudgetExhaustedError) -> None:
        super().__init__(message=str(error), data=dict(OVER_BUDGET))


class _NoExecutor(AgentExecutor):
    """For the constructor of the SDK's handler, which runs nothing here."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise UnsupportedOperationError

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise UnsupportedOperationError


class LogRequestHandler(DefaultRequestHandlerV2):
    """Serves A2A requests from the work queue and the event log."""

    def __init__(  # noqa: PLR0913 - the parts of a handler
        self,
        work: Work,
        log: EventLog,
        card: AgentCard,
        *,
        agent: str,
        admission: Admission,
        push_configs: PushConfigs,
        pushes: PushNotifications,
        audit: AccessAudit | None = None,
        usage: UsageLedger | None = None,
    ) -> None:
        self._audit = audit or AccessAudit()
        self._usage = usage
        super().__init__(
            agent_executor=_NoExecutor(),
            task_store=LogTaskStore(log, self._audit),
            agent_card=card,
            push_config_store=push_configs,
            push_url_validator=self._accepts_push_url,
        )
        self.log = log
        self.work = work
        self.streams = OpenStreams()
        self._admission = admission
        self._push_configs = push_configs
        self.pushes = pushes
        self._repeated = RepeatedMessages(log)
        self._followed = FollowedTasks(log, agent)
        log.subscribe(pushes.notify)
        if usage is not None:
            log.subscribe(usage.observe_log)

    @property
    def stopping(self) -> bool:
        return self.work.stopping

    async def stop_work(self, grace: float = 0.0) -> None:
        """Accept no more messages and end all runs, which have `grace` seconds to finish, with all streams."""
        await self.work.aclose(grace)
        self._followed.end()

    async def aclose(self) -> None:
        await self.stop_work()
        await super().aclose()
        await self.pushes.aclose()

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        accepted = await self.accept(params, context)
        task = accepted.snapshot.task
        at_once = params.configuration.return_immediately
        if accepted.kind == "later" or not at_once:
            async for _ in self._followed.follow(task.id, accepted.snapshot.seq):
                if at_once:
                    break
        if accepted.kind != "first" or not at_once:
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
        """Accept a message; yield its task, then every event of the run, in batches as they are stored.

        A supervisor that delegates gets the task together with the first batch, because every item wakes it.
        """
        snapshot = (await self.accept(params, context)).snapshot
        entries = self._followed.follow(snapshot.task.id, snapshot.seq)
        first: list[StreamItem] = [Snapshot(snapshot.seq, apply_history_length(snapshot.task, params.configuration))]
        if is_delegated(params.message):
            first += await anext(entries, ())
        yield first
        del snapshot, params, first  # frees memory while a stream waits
        async for some in entries:
            yield some

    async def stream_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncIterator[Sequence[StreamItem]]:
        """Yield the task as of the caller's last event, or as it is now; then every event after that."""
        validate_proto_required_fields(params)
        snapshot = await self.log.snapshot(params.id)
        if snapshot is None or not await self._may_use(snapshot.task.context_id, caller_in(context.state)):
            raise TaskNotFoundError
        if (after := context.state.get(AFTER_SEQ)) is not None:
            snapshot = await self.log.snapshot(params.id, at=_seen(after, snapshot.seq)) or snapshot
        elif snapshot.task.status.state in TERMINAL_STATES and context.state.get(PROTOCOL) != "0.3":
            raise UnsupportedOperationError(
                message="The task has ended. Read it with GetTask, or subscribe with the header Last-Event-ID."
            )
        yield [snapshot]
        async for entries in self._followed.follow(params.id, snapshot.seq):
            yield entries

    @validate_request_params
    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task | None:
        task = await self.log.task(params.id)
        if task is None or not await self._may_use(task.context_id, caller_in(context.state)):
            raise TaskNotFoundError
        if task.status.state in TERMINAL_STATES:
            raise TaskNotCancelableError
        await self.work.cancel(params.id, task.context_id, bearer_token(context))
        task = await self.log.task(params.id)
        if task is None or task.status.state != TaskState.TASK_STATE_CANCELED:
            raise TaskNotCancelableError
        return task

    async def accept(self, params: SendMessageRequest, context: ServerCallContext) -> Accepted:
        """Store a message with its task, or with a new one, and queue it. A repeated message starts nothing."""
        if self.stopping:
            raise ServerStoppingError
        check_required(params)
        validate_history_length(params.configuration)
        message = params.message
        check_message(message)
        sender = self._admission.admit(params, caller_in(context.state))
        named = await self._named_task(message, sender.principal)
        if message.context_id and named is None and not await self._may_use(message.context_id, sender.principal):
            raise InvalidParamsError(message=_FOREIGN)
        async with self._repeated.checked(message) as accepted_before:
            if accepted_before is not None:
                return Accepted(accepted_before, "repeated")
            names = message.task_id
            try:
                return await self._accept_new(params, context, named, sender)
            except (A2AError, RepeatedMessageError):
                # Another process may have accepted the message meanwhile. That also changes what a check finds.
                message.task_id = names
                if (accepted_before := await self._repeated.find(message)) is None:
                    raise
                return Accepted(accepted_before, "repeated")

    @asynccontextmanager
    async def _within_budget(self, caller: Principal, task_id: str) -> AsyncIterator[None]:
        """Count the run of a new task. Nothing is stored if a budget of the caller is used up."""
        if self._usage is None:
            yield
            return
        try:
            async with self._usage.admitted(caller, task_id):
                yield
        except BudgetExhaustedError as error:
            raise BudgetError(error) from None

    async def _accept_new(
        self, params: SendMessageRequest, context: ServerCallContext, named: Snapshot | None, sender: Sender
    ) -> Accepted:
        message = params.message
        if message.context_id and named is None:
            # While a form is open, a message to the conversation goes to the form's task.
            message.task_id = await self.log.waiting(message.context_id) or ""
            if message.task_id:
                if is_question_only(message):
                    raise UnsupportedOperationError(message=_FORM_OPEN)
                message.metadata[TO_CONVERSATION] = True
                named = await self._named_task(message, sender.principal)
        if named is not None:
            _check_takes_messages(named.task)
        message.task_id = message.task_id or str(uuid.uuid4())
        message.context_id = message.context_id or str(uuid.uuid4())
        _merge_metadata(message, params)
        # An answer to a form is no new run, and the run of a delegation was counted by the supervisor.
        is_run = named is None and not is_delegated(message)
        async with self._within_budget(sender.principal, message.task_id) if is_run else nullcontext():
            return await self._begin(params, context, named, sender)

    async def _begin(
        self, params: SendMessageRequest, context: ServerCallContext, named: Snapshot | None, sender: Sender
    ) -> Accepted:
        message, caller = params.message, sender.principal
        if params.configuration.HasField("task_push_notification_config"):
            push = params.configuration.task_push_notification_config
            await self._accepts_push_url(push.url)
            # First: a task whose receiver cannot be stored is not begun.
            await self._push_configs.set_info(message.task_id, push, context)
        if named is None:
            snapshot = Snapshot(0, _submitted(without_skills(message)))
            try:
                await self.log.create(snapshot.task, caller, sender.groups)
            except ForeignConversationError:  # another principal has begun it meanwhile
                raise InvalidParamsError(message=_FOREIGN) from None
        else:
            snapshot = await self._add_message(message, caller)
        await self.work.put(
            Assignment(
                message.task_id,
                message.context_id,
                StoredRequest(message, caller, snapshot.seq),
                begins_task=named is None,
                auth_token=users_token(context, message),
            )
        )
        return Accepted(snapshot, "first" if named is None else "later")

    async def _add_message(self, message: Message, caller: Principal) -> Snapshot:
        try:
            await self.log.add_message(message.task_id, without_skills(message), caller)
        except TaskEndedError as error:  # since `_named_task` read its state
            raise UnsupportedOperationError(message=_ENDED) from error
        snapshot = await self.log.snapshot(message.task_id)
        if snapshot is None:
            raise TaskNotFoundError
        return snapshot

    async def _accepts_push_url(self, url: str) -> bool:
        """Raises the reason if not, where the SDK would send none."""
        try:
            await self.pushes.check(url)
        except RefusedError as error:
            raise InvalidParamsError(message=f"The URL for push notifications is not accepted. {error}") from None
        return True

    async def _may_use(self, context_id: str, principal: Principal) -> bool:
        """Whether the conversation is one that the principal may use, or does not exist yet."""
        if sees_everything(principal):
            return True
        access = await self.log.access(context_id)
        if access is None or access.allows(principal):
            return True
        self._audit.denied(principal, NOT_THEIR_CONVERSATION, conversation=context_id)
        return False

    async def _named_task(self, message: Message, principal: Principal) -> Snapshot | None:
        """The task that the message names; its context id is added to the message."""
        if not message.task_id:
            return None
        snapshot = await self.log.snapshot(message.task_id)
        if snapshot is None or not await self._may_use(snapshot.task.context_id, principal):
            raise TaskNotFoundError
        if message.context_id and message.context_id != snapshot.task.context_id:
            raise InvalidParamsError(message="message.contextId: not the context of the task named by taskId.")
        # The SDK would generate a new context id for an empty one.
        message.context_id = snapshot.task.context_id
        return snapshot


def check_required(params: SendMessageRequest) -> None:
    """Check the required fields of the schema: quickly for the usual message, fully for all others."""
    message = params.message
    has_push = params.configuration.HasField("task_push_notification_config")
    if has_push or not (message.message_id and message.role and message.parts):
        validate_proto_required_fields(params)


def check_message(message: Message) -> None:
    """Check what a run needs and the schema does not require: parts with content."""
    for place, part in enumerate(message.parts):
        if part.WhichOneof("content") is None:
            raise InvalidParamsError(message=f"message.parts[{place}]: needs one of text, data, raw or url.")
    if not any(part.WhichOneof("content") != "text" or part.text.strip() for part in message.parts):
        raise InvalidParamsError(message="message.parts: must contain text or data.")


def _merge_metadata(message: Message, params: SendMessageRequest) -> None:
    """Add the metadata of the request to those of the message, which take precedence and are stored."""
    if params.HasField("metadata"):
        own = message.metadata.fields
        for name, value in params.metadata.fields.items():
            if name not in own:
                own[name].CopyFrom(value)


def _check_takes_messages(task: Task) -> None:
    if task.status.state in TERMINAL_STATES:
        raise UnsupportedOperationError(message=_ENDED)
    # A task that has shown a form accepts a second answer during the run of the first. Other running tasks do not.
    if task.status.state not in WAITING_STATES and not _has_asked(task):
        raise UnsupportedOperationError(message=_BUSY)


def _has_asked(task: Task) -> bool:
    return any(artifact.name == FORM_ARTIFACT for artifact in task.artifacts)


def _submitted(message: Message) -> Task:
    status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
    status.timestamp.GetCurrentTime()
    return Task(id=message.task_id, context_id=message.context_id, status=status, history=[message])


def _seen(value: Any, last: int) -> int:
    """The `seq` of the caller's last event, from a header (text) or from JSON (a number)."""
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
