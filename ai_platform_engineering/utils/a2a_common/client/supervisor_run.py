"""A message to the supervisor and the events of its run. A broken stream is resumed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import httpx
from a2a.client import ClientCallContext
from a2a.client.errors import A2AClientError
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    ListTasksRequest,
    Message,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
)
from a2a.utils.errors import A2AError
from google.protobuf.struct_pb2 import Struct

from ai_platform_engineering.events import SUPERVISOR, Ending, Event, Failed
from ai_platform_engineering.utils.a2a_common.protocol import OVER_BUDGET
from ai_platform_engineering.utils.a2a_common.wire import Decoder, seq_of
from ai_platform_engineering.utils.access_tokens import AccessTokenError, AccessTokenRefusedError
from ai_platform_engineering.utils.connections import causes

if TYPE_CHECKING:
    from ai_platform_engineering.utils.a2a_common.client.supervisor_client import Supervisor

RECONNECT_SECONDS: Final = 60.0
_FIRST_PAUSE: Final = 0.2
_MAX_PAUSE: Final = 5.0
_ACCEPT_SECONDS: Final = 2.0
_CANCEL_SECONDS: Final = 5.0
_DRAIN_SECONDS: Final = 1.0


class SupervisorError(Exception):
    """A request to the supervisor failed; the text says why and what to do.

    `misconfigured`: a setting is wrong. `refused`: the supervisor rejected the request; `over_budget`: because a budget
    is used up, which the text says to the person.
    """

    def __init__(
        self, sentence: str, *, misconfigured: bool = False, refused: bool = False, over_budget: bool = False
    ) -> None:
        super().__init__(sentence)
        self.misconfigured = misconfigured
        self.refused = refused
        self.over_budget = over_budget


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """A task that waits for an answer. `last_seq` is the number of its last event that the client has."""

    task_id: str
    context_id: str
    last_seq: int = 0


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """The connection was lost; the client reconnects."""


class SupervisorRun:
    """Sends a message and yields the events of its run that come after number `after_seq`.

    With a `task_id` the supervisor has accepted the message as that task. `sent`: an earlier process may have sent the
    message already, so its task is searched for before the message is sent again.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        message: Message,
        after_seq: int = 0,
        *,
        task_id: str = "",
        sent: bool = False,
        reconnect_seconds: float = RECONNECT_SECONDS,
    ) -> None:
        self._supervisor = supervisor
        self._message = message
        self._sent = sent
        self._reconnect_seconds = reconnect_seconds
        self._decoder = Decoder(SUPERVISOR)
        self._last_seq = after_seq
        self._accepted = asyncio.Event()
        self.task_id = task_id
        self.trace_id = ""
        self.emitted_seq = after_seq
        """The number of the last update whose events have all been yielded. Some events consist of several updates."""
        if task_id:
            self._accepted.set()

    async def items(self) -> AsyncIterator[Event | ConnectionLost]:
        """Yield the events of the run, the ending last, also if the connection breaks.

        Raises `SupervisorError` if the supervisor did not accept the message.
        """
        responses = await self._open_stream()
        while True:
            problem: Exception | None = None
            try:
                async for response in responses:
                    for event in self._read(response):
                        yield event
                        if isinstance(event, Ending):
                            await _drain(responses)
                            return
            except (A2AError, httpx.HTTPError) as error:
                problem = error
            if problem is not None and not is_temporary(problem) and not self.task_id:
                raise self._refused(problem)
            if self._supervisor.resumes:
                yield ConnectionLost()
            resumed = await self._reconnect(problem)
            if resumed is None and not (self._sent or self.task_id):
                raise SupervisorError(
                    f"The supervisor at {self._supervisor.address} cannot be reached, so nothing was sent. "
                    "Ask again when it is running."
                )
            if resumed is None:
                for event in self._decoder.finish():
                    yield replace(event, message=self._connection_lost()) if isinstance(event, Failed) else event
                return
            responses = resumed

    def waiting_task(self) -> WaitingTask:
        """The task, after the run ended with a form."""
        return WaitingTask(self.task_id, self._message.context_id, self._last_seq)

    async def accepted(self) -> str:
        """Wait until the supervisor has accepted the message; return the id of its task."""
        await self._accepted.wait()
        return self.task_id

    async def cancel(self) -> None:
        """Request the cancellation. The run ends with `Canceled` once the supervisor has stopped it."""
        async with asyncio.timeout(_ACCEPT_SECONDS):
            await self._accepted.wait()
        async with asyncio.timeout(_CANCEL_SECONDS):
            await self._supervisor.client.cancel_task(CancelTaskRequest(id=self.task_id))

    async def _open_stream(self) -> AsyncIterator[StreamResponse]:
        if self._sent and not self.task_id:
            try:
                self.task_id = await self._find_task()
            except (A2AError, httpx.HTTPError) as error:
                return _failing(error)
        return self._subscribe() if self.task_id else self._send()

    def _read(self, response: StreamResponse) -> list[Event]:
        self.task_id = (
            self.task_id or response.task.id or response.status_update.task_id or response.artifact_update.task_id
        )
        if self.task_id:
            self._accepted.set()
        match response.WhichOneof("payload"):
            case "status_update":
                seq, metadata = seq_of(response.status_update), response.status_update.metadata
            case "artifact_update":
                seq, metadata = seq_of(response.artifact_update), response.artifact_update.artifact.metadata
            case _:
                seq, metadata = None, response.task.metadata
        self.trace_id = self.trace_id or _text(metadata, "trace_id")
        if seq is not None:
            self._last_seq = max(self._last_seq, seq)
        events = self._decoder.feed(response)
        if events:
            self.emitted_seq = self._last_seq
        return events

    def _send(self) -> AsyncIterator[StreamResponse]:
        return self._supervisor.client.send_message(SendMessageRequest(message=self._message))

    def _subscribe(self) -> AsyncIterator[StreamResponse]:
        context = ClientCallContext(service_parameters={"Last-Event-ID": str(self._last_seq)})
        return self._supervisor.client.subscribe(SubscribeToTaskRequest(id=self.task_id), context=context)

    async def _reconnect(self, problem: Exception | None) -> AsyncIterator[StreamResponse] | None:
        """The rest of the stream, once the supervisor can be reached again; None if that does not succeed in time."""
        # From now on the message may have arrived, so it is not sent again before its task was searched for.
        self._sent = self._sent or not _was_never_sent(problem)
        if not self._supervisor.resumes:
            return None
        deadline = time.monotonic() + self._reconnect_seconds
        pause = _FIRST_PAUSE
        while (left := deadline - time.monotonic()) > 0:
            await asyncio.sleep(min(pause, left))
            pause = min(_MAX_PAUSE, 2 * pause)
            try:
                if self._sent and not self.task_id:
                    self.task_id = await self._find_task()
                responses = self._subscribe() if self.task_id else self._send()
                return _prepended(await anext(responses), responses)
            except StopAsyncIteration:
                return None
            except (A2AError, httpx.HTTPError) as error:
                if not is_temporary(error) and not (self._sent or self.task_id):
                    raise self._refused(error) from error
                if not is_temporary(error):
                    return None
                self._sent = self._sent or not _was_never_sent(error)
        return None

    async def _find_task(self) -> str:
        """The id of the task that the message began, or an empty text if the message did not arrive."""
        request = ListTasksRequest(context_id=self._message.context_id)
        response = await self._supervisor.client.list_tasks(request)
        wanted = self._message.message_id
        return next((task.id for task in response.tasks if any(m.message_id == wanted for m in task.history)), "")

    def _refused(self, problem: Exception) -> SupervisorError:
        return refusal(problem, self._supervisor.address, "answer" if self._message.task_id else "question")

    def _connection_lost(self) -> str:
        return (
            f"The connection to the supervisor at {self._supervisor.address} was lost and did not come back. "
            "The request may still be running; ask again in the same conversation to see its result."
        )


def refusal(error: Exception, address: str, what: str) -> SupervisorError:
    """The error for a request that the supervisor rejected; `what` names its content, for example "question"."""
    if (no_token := access_token_error_in(error)) is not None:
        return SupervisorError(str(no_token), misconfigured=isinstance(no_token, AccessTokenRefusedError))
    status = _status_of(error)
    if status == httpx.codes.UNAUTHORIZED:
        sentence = (
            f"The supervisor at {address} requires a key; set A2A_AUTH_SHARED_KEY to its key, or sign in with "
            f"`platform-engineer login --url {address}` if it requires an access token. A program sets "
            "A2A_OAUTH_GRANT_URL and its client's id and secret."
        )
        return SupervisorError(sentence, misconfigured=True)
    if isinstance(error, A2AError) and OVER_BUDGET.items() <= (error.data or {}).items():
        return SupervisorError(str(error), refused=True, over_budget=True)
    reason = f"HTTP {status}" if status else str(error).rstrip(".")
    return SupervisorError(f"The supervisor at {address} rejected the {what}: {reason}.", refused=True)


def is_temporary(error: Exception) -> bool:
    """Whether a retry may succeed: the connection or the server failed, not the request."""
    if isinstance(access_token_error_in(error), AccessTokenRefusedError):
        return False
    status = _status_of(error)
    if status is not None:
        return status >= httpx.codes.INTERNAL_SERVER_ERROR
    return isinstance(error, A2AClientError | httpx.HTTPError)


async def _prepended(first: StreamResponse, rest: AsyncIterator[StreamResponse]) -> AsyncIterator[StreamResponse]:
    yield first
    async for response in rest:
        yield response


async def _drain(responses: AsyncIterator[StreamResponse]) -> None:
    """Read to the end of the stream, so that its connection can be reused."""
    with suppress(A2AError, httpx.HTTPError, TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in responses:
                pass


async def _failing(problem: Exception) -> AsyncIterator[StreamResponse]:
    raise problem
    yield


def _was_never_sent(error: Exception | None) -> bool:
    return error is not None and any(
        isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout) for cause in causes(error)
    )


def access_token_error_in(error: Exception) -> AccessTokenError | None:
    return next((cause for cause in causes(error) if isinstance(cause, AccessTokenError)), None)


def _status_of(error: Exception) -> int | None:
    for cause in causes(error):
        if isinstance(cause, httpx.HTTPStatusError):
            return cause.response.status_code
    return None


def _text(metadata: Struct, name: str) -> str:
    value = metadata.fields.get(name)
    return "" if value is None else value.string_value
