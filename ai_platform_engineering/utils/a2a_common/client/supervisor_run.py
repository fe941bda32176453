"""One question, or one answer to a form, and what comes of it: a stream that is picked up when it breaks off."""

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
from ai_platform_engineering.utils.a2a_common.wire import Decoder, seq_of
from ai_platform_engineering.utils.access_tokens import AccessTokenError, AccessTokenRefusedError
from ai_platform_engineering.utils.connections import causes

if TYPE_CHECKING:
    from ai_platform_engineering.utils.a2a_common.client.supervisor_client import Supervisor

RECONNECT_SECONDS: Final = 60.0
_FIRST_PAUSE: Final = 0.2
_MAX_PAUSE: Final = 5.0
_TASK_SECONDS: Final = 2.0
_CANCEL_SECONDS: Final = 5.0
_END_SECONDS: Final = 1.0


class SupervisorError(Exception):
    """The supervisor cannot be asked; the text says why and what to do. `misconfigured` where a setting is wrong,
    `refused` where it was asked and did not want to."""

    def __init__(self, sentence: str, *, misconfigured: bool = False, refused: bool = False) -> None:
        super().__init__(sentence)
        self.misconfigured = misconfigured
        self.refused = refused


@dataclass(frozen=True, slots=True)
class Parked:
    """A task that waits for an answer; `seen` is the number of the last event of it that is known."""

    task_id: str
    context_id: str
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection was lost and is being picked up."""


class Run:
    """A message to the supervisor and the events that follow. What has a number up to `seen` is known.

    With a `task_id` the message has become that task. `sent` is for a message that may have arrived already, from a
    caller who did not live to hear the answer: it is looked for before it is sent.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        message: Message,
        seen: int = 0,
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
        self._seen = seen
        self._known = asyncio.Event()
        self.task_id = task_id
        self.trace_id = ""
        self.told = seen
        """The number of the last update of which everything has been told: some events are made of several."""
        if task_id:
            self._known.set()

    async def items(self) -> AsyncIterator[Event | Lost]:
        """The events of the run, the ending last, whatever happens to the connection.

        Raises `SupervisorError` where the supervisor did not take the question.
        """
        answers = await self._begin()
        while True:
            problem: Exception | None = None
            try:
                async for answer in answers:
                    for event in self._read(answer):
                        yield event
                        if isinstance(event, Ending):
                            await _read_out(answers)
                            return
            except (A2AError, httpx.HTTPError) as error:
                problem = error
            if problem is not None and not is_passing(problem) and not self.task_id:
                raise self._refused(problem)
            if self._supervisor.resumes:
                yield Lost()
            next_answers = await self._pick_up(problem)
            if next_answers is None and not (self._sent or self.task_id):
                raise SupervisorError(
                    f"The supervisor at {self._supervisor.address} cannot be reached, so nothing was sent. "
                    "Ask again when it is there."
                )
            if next_answers is None:
                for event in self._decoder.finish():
                    yield replace(event, message=self._given_up()) if isinstance(event, Failed) else event
                return
            answers = next_answers

    def parked(self) -> Parked:
        """The task, once it waits for an answer."""
        return Parked(self.task_id, self._message.context_id, self._seen)

    async def accepted(self) -> str:
        """The id of the task, once the supervisor has taken the message."""
        await self._known.wait()
        return self.task_id

    async def cancel(self) -> None:
        """Ask the supervisor to stop; the run then ends as such."""
        async with asyncio.timeout(_TASK_SECONDS):
            await self._known.wait()
        async with asyncio.timeout(_CANCEL_SECONDS):
            await self._supervisor.client.cancel_task(CancelTaskRequest(id=self.task_id))

    async def _begin(self) -> AsyncIterator[StreamResponse]:
        if self._sent and not self.task_id:
            try:
                self.task_id = await self._find_task()
            except (A2AError, httpx.HTTPError) as error:
                return _broken_off(error)
        return self._subscribe() if self.task_id else self._send()

    def _read(self, answer: StreamResponse) -> list[Event]:
        self.task_id = self.task_id or answer.task.id or answer.status_update.task_id or answer.artifact_update.task_id
        if self.task_id:
            self._known.set()
        match answer.WhichOneof("payload"):
            case "status_update":
                seq, metadata = seq_of(answer.status_update), answer.status_update.metadata
            case "artifact_update":
                seq, metadata = seq_of(answer.artifact_update), answer.artifact_update.artifact.metadata
            case _:
                seq, metadata = None, answer.task.metadata
        self.trace_id = self.trace_id or _text(metadata, "trace_id")
        if seq is not None:
            self._seen = max(self._seen, seq)
        events = self._decoder.feed(answer)
        if events:
            self.told = self._seen
        return events

    def _send(self) -> AsyncIterator[StreamResponse]:
        return self._supervisor.client.send_message(SendMessageRequest(message=self._message))

    def _subscribe(self) -> AsyncIterator[StreamResponse]:
        context = ClientCallContext(service_parameters={"Last-Event-ID": str(self._seen)})
        return self._supervisor.client.subscribe(SubscribeToTaskRequest(id=self.task_id), context=context)

    async def _pick_up(self, problem: Exception | None) -> AsyncIterator[StreamResponse] | None:
        """The rest of the stream, as soon as the supervisor answers again; nothing when it cannot be had."""
        # Whatever comes later, from now on it may have arrived.
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
                answers = self._subscribe() if self.task_id else self._send()
                return _after_first(await anext(answers), answers)
            except StopAsyncIteration:
                return None
            except (A2AError, httpx.HTTPError) as error:
                if not is_passing(error) and not (self._sent or self.task_id):
                    raise self._refused(error) from error
                if not is_passing(error):
                    return None
                self._sent = self._sent or not _was_never_sent(error)
        return None

    async def _find_task(self) -> str:
        """The task that the question has become, if it arrived: nobody knows when the first reply was lost."""
        request = ListTasksRequest(context_id=self._message.context_id)
        response = await self._supervisor.client.list_tasks(request)
        wanted = self._message.message_id
        return next((task.id for task in response.tasks if any(m.message_id == wanted for m in task.history)), "")

    def _refused(self, problem: Exception) -> SupervisorError:
        return refusal(problem, self._supervisor.address, "answer" if self._message.task_id else "question")

    def _given_up(self) -> str:
        return (
            f"The connection to the supervisor at {self._supervisor.address} was lost and did not come back. "
            "The request may still be worked on; ask again in the same conversation to see what came of it."
        )


def refusal(error: Exception, address: str, what: str) -> SupervisorError:
    """What to say where the supervisor did not take `what` it was given."""
    if (no_token := no_token_in(error)) is not None:
        return SupervisorError(str(no_token), misconfigured=isinstance(no_token, AccessTokenRefusedError))
    status = _status_of(error)
    if status == httpx.codes.UNAUTHORIZED:
        sentence = (
            f"The supervisor at {address} wants a key; set A2A_AUTH_SHARED_KEY to the one it was given, or "
            "A2A_OAUTH_GRANT_URL and the client's id and secret where it wants an access token."
        )
        return SupervisorError(sentence, misconfigured=True)
    reason = f"HTTP {status}" if status else str(error).rstrip(".")
    return SupervisorError(f"The supervisor at {address} did not take the {what}: {reason}.", refused=True)


def is_passing(error: Exception) -> bool:
    """Whether it is worth trying again: the connection was at fault, not the request."""
    if isinstance(no_token_in(error), AccessTokenRefusedError):
        return False
    status = _status_of(error)
    if status is not None:
        return status >= httpx.codes.INTERNAL_SERVER_ERROR
    return isinstance(error, A2AClientError | httpx.HTTPError)


async def _after_first(first: StreamResponse, rest: AsyncIterator[StreamResponse]) -> AsyncIterator[StreamResponse]:
    yield first
    async for answer in rest:
        yield answer


async def _read_out(answers: AsyncIterator[StreamResponse]) -> None:
    """To the end, which comes at once: a stream that is left before it costs its connection."""
    with suppress(A2AError, httpx.HTTPError, TimeoutError):
        async with asyncio.timeout(_END_SECONDS):
            async for _ in answers:
                pass


async def _broken_off(problem: Exception) -> AsyncIterator[StreamResponse]:
    raise problem
    yield


def _was_never_sent(error: Exception | None) -> bool:
    return error is not None and any(
        isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout) for cause in causes(error)
    )


def no_token_in(error: Exception) -> AccessTokenError | None:
    return next((cause for cause in causes(error) if isinstance(cause, AccessTokenError)), None)


def _status_of(error: Exception) -> int | None:
    for cause in causes(error):
        if isinstance(cause, httpx.HTTPStatusError):
            return cause.response.status_code
    return None


def _text(metadata: Struct, name: str) -> str:
    value = metadata.fields.get(name)
    return "" if value is None else value.string_value
