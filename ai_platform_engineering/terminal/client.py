"""The terminal's side of the connection to a supervisor: asks, listens, picks up a stream that broke off, cancels."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import httpx
from a2a.client import A2ACardResolver, Client, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError, AgentCardResolutionError
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import A2AError, TaskNotFoundError

from ai_platform_engineering.events import SUPERVISOR, Ending, Event, Failed, Form
from ai_platform_engineering.terminal.view import Notice
from ai_platform_engineering.utils.a2a_common.a2a_server import RESUME_EXTENSION
from ai_platform_engineering.utils.a2a_common.codec.values import set_value
from ai_platform_engineering.utils.a2a_common.wire import Decoder, decode_task, seq_of
from ai_platform_engineering.utils.connections import causes, reason_of
from ai_platform_engineering.utils.forms.answers import Answer, answer_data

LOST: Final = "The connection was lost; picking it up again..."
NOT_STOPPED: Final = "The supervisor did not confirm that it stopped."

_CONNECT_SECONDS: Final = 5.0
# The supervisor sends a sign of life every 15 seconds; a connection that is silent for longer is dead.
_SILENCE_SECONDS: Final = 40.0
_PATIENCE_SECONDS: Final = 60.0
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 5.0
_TASK_SECONDS: Final = 2.0
_WAITING: Final = frozenset({TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})
_CANCEL_SECONDS: Final = 5.0


class SupervisorError(Exception):
    """The supervisor cannot be asked; the text says why and what to do. `misconfigured` where a setting is wrong."""

    def __init__(self, sentence: str, *, misconfigured: bool = False) -> None:
        super().__init__(sentence)
        self.misconfigured = misconfigured


@dataclass(frozen=True, slots=True)
class Parked:
    """A task that waits for an answer; `seen` is the number of the last event of it that is known."""

    task_id: str
    context_id: str
    seen: int = 0


class Supervisor:
    """A supervisor that was found, and the way to it."""

    def __init__(self, client: Client, card: AgentCard, address: str) -> None:
        self.client = client
        self.card = card
        self.address = address
        self.resumes = any(extension.uri == RESUME_EXTENSION for extension in card.capabilities.extensions)
        """Whether a stream can be picked up where it broke off; other servers would say everything again."""

    def ask(self, question: str, context_id: str, parked: Parked | None = None) -> Run:
        """Ask, or answer `parked` with a text."""
        return Run(self, _message(Part(text=question), context_id, parked), parked.seen if parked else 0)

    def answer(self, form: Form, answer: Answer, parked: Parked) -> Run:
        """Answer one form of a task that waits; the run goes on from where it stopped."""
        named = {"form_id": form.form_id} if form.form_id else {}
        part = Part()
        set_value(part.data, {"resume": {**named, **answer_data(answer)}})
        return Run(self, _message(part, parked.context_id, parked), parked.seen)

    async def parked(self, task_id: str) -> tuple[Parked, list[Event]]:
        """The task `task_id`, which waits for an answer, and what happened in it until then."""
        try:
            task = await self.client.get_task(GetTaskRequest(id=task_id))
        except TaskNotFoundError:
            raise SupervisorError(f"There is no task {task_id} at {self.address}.") from None
        except (A2AError, httpx.HTTPError) as error:
            raise refusal(error, self.address, "task") from None
        if task.status.state not in _WAITING:
            state = TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower().replace("_", " ")
            raise SupervisorError(f"Task {task_id} is {state}: it does not wait for an answer.")
        return Parked(task.id, task.context_id, _seq_of_task(task)), decode_task(task)

    async def find_parked(self, context_id: str) -> str:
        """The id of the task of a conversation that waits for an answer."""
        request = ListTasksRequest(context_id=context_id, status=TaskState.TASK_STATE_INPUT_REQUIRED)
        try:
            response = await self.client.list_tasks(request)
        except (A2AError, httpx.HTTPError) as error:
            raise refusal(error, self.address, "task") from None
        if not response.tasks:
            raise SupervisorError(f"Nothing in the conversation {context_id} waits for an answer.")
        return response.tasks[0].id


@asynccontextmanager
async def connected(
    address: str, key: str | None = None, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[Supervisor]:
    """The supervisor at `address`, which is asked for its card now."""
    http = httpx.AsyncClient(
        transport=transport,
        headers={"Authorization": f"Bearer {key}"} if key else {},
        timeout=httpx.Timeout(_CONNECT_SECONDS, read=_SILENCE_SECONDS),
    )
    async with http:
        card = await _fetch_card(http, address)
        for interface in card.supported_interfaces:
            interface.url = _seen_from_here(interface.url, address)
        client = ClientFactory(ClientConfig(streaming=True, httpx_client=http)).create(card)
        yield Supervisor(client, card, address)


class Run:
    """One question, or one answer to a form, and what comes of it. What has a number up to `seen` is known."""

    def __init__(self, supervisor: Supervisor, message: Message, seen: int = 0) -> None:
        self._supervisor = supervisor
        self._message = message
        self._decoder = Decoder(SUPERVISOR)
        self._seen = seen
        self._known = asyncio.Event()
        self.task_id = ""

    async def items(self) -> AsyncIterator[Event | Notice]:
        """The events of the run, the ending last, whatever happens to the connection.

        Raises `SupervisorError` where the supervisor did not take the question.
        """
        answers = self._send()
        while True:
            problem: Exception | None = None
            try:
                async for answer in answers:
                    for event in self._read(answer):
                        yield event
                        if isinstance(event, Ending):
                            return
            except (A2AError, httpx.HTTPError) as error:
                problem = error
            if problem is not None and not _is_passing(problem) and not self.task_id:
                raise refusal(problem, self._supervisor.address, "answer" if self._message.task_id else "question")
            if self._supervisor.resumes:
                yield Notice(LOST)
            next_answers = await self._pick_up(problem)
            if next_answers is None:
                for event in self._decoder.finish():
                    yield replace(event, message=self._given_up()) if isinstance(event, Failed) else event
                return
            answers = next_answers

    def parked(self) -> Parked:
        """The task, once it waits for an answer."""
        return Parked(self.task_id, self._message.context_id, self._seen)

    async def cancel(self) -> None:
        """Ask the supervisor to stop; the run then ends as such."""
        async with asyncio.timeout(_TASK_SECONDS):
            await self._known.wait()
        async with asyncio.timeout(_CANCEL_SECONDS):
            await self._supervisor.client.cancel_task(CancelTaskRequest(id=self.task_id))

    def _read(self, answer: StreamResponse) -> list[Event]:
        self.task_id = self.task_id or answer.task.id or answer.status_update.task_id or answer.artifact_update.task_id
        if self.task_id:
            self._known.set()
        match answer.WhichOneof("payload"):
            case "status_update":
                seq = seq_of(answer.status_update)
            case "artifact_update":
                seq = seq_of(answer.artifact_update)
            case _:
                seq = None
        if seq is not None:
            self._seen = max(self._seen, seq)
        return self._decoder.feed(answer)

    def _send(self) -> AsyncIterator[StreamResponse]:
        return self._supervisor.client.send_message(SendMessageRequest(message=self._message))

    def _subscribe(self) -> AsyncIterator[StreamResponse]:
        context = ClientCallContext(service_parameters={"Last-Event-ID": str(self._seen)})
        return self._supervisor.client.subscribe(SubscribeToTaskRequest(id=self.task_id), context=context)

    async def _pick_up(self, problem: Exception | None) -> AsyncIterator[StreamResponse] | None:
        """The rest of the stream, as soon as the supervisor answers again; nothing when it cannot be had."""
        if not self._supervisor.resumes:
            return None
        deadline = time.monotonic() + _PATIENCE_SECONDS
        pause = _FIRST_PAUSE
        while time.monotonic() < deadline:
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, 2 * pause)
            try:
                if not self.task_id and not _was_never_sent(problem):
                    self.task_id = await self._find_task()
                answers = self._subscribe() if self.task_id else self._send()
                return _after_first(await anext(answers), answers)
            except StopAsyncIteration:
                return None
            except (A2AError, httpx.HTTPError) as error:
                if not _is_passing(error):
                    return None
                problem = error
        return None

    async def _find_task(self) -> str:
        """The task that the question has become, if it arrived: nobody knows when the first reply was lost."""
        request = ListTasksRequest(context_id=self._message.context_id)
        response = await self._supervisor.client.list_tasks(request)
        wanted = self._message.message_id
        return next((task.id for task in response.tasks if any(m.message_id == wanted for m in task.history)), "")

    def _given_up(self) -> str:
        return (
            f"The connection to the supervisor at {self._supervisor.address} was lost and did not come back. "
            "The request may still be worked on; ask again in the same conversation to see what came of it."
        )


def refusal(error: Exception, address: str, what: str) -> SupervisorError:
    """What to say where the supervisor did not take `what` it was given."""
    status = _status_of(error)
    if status == httpx.codes.UNAUTHORIZED:
        sentence = f"The supervisor at {address} wants a key; set A2A_AUTH_SHARED_KEY to the one it was given."
        return SupervisorError(sentence, misconfigured=True)
    reason = f"HTTP {status}" if status else str(error).rstrip(".")
    return SupervisorError(f"The supervisor at {address} did not take the {what}: {reason}.")


def _message(part: Part, context_id: str, parked: Parked | None) -> Message:
    return Message(
        message_id=uuid.uuid4().hex,
        context_id=context_id,
        task_id=parked.task_id if parked else "",
        role=Role.ROLE_USER,
        parts=[part],
    )


def _seq_of_task(task: Task) -> int:
    """The number of the last event in a task as it was read."""
    value = task.metadata.fields.get("seq")
    return 0 if value is None else int(value.number_value)


async def _after_first(first: StreamResponse, rest: AsyncIterator[StreamResponse]) -> AsyncIterator[StreamResponse]:
    yield first
    async for answer in rest:
        yield answer


async def _fetch_card(http: httpx.AsyncClient, address: str) -> AgentCard:
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            return await A2ACardResolver(http, address).get_agent_card()
    except TimeoutError:
        reason = f"no answer within {_CONNECT_SECONDS:g} s"
    except AgentCardResolutionError as error:
        reason = f"HTTP {error.status_code}" if error.status_code else reason_of(error)
    except (A2AClientError, httpx.HTTPError) as error:
        reason = reason_of(error)
    except httpx.InvalidURL:
        reason = "that is not an address"
    raise SupervisorError(
        f"There is no supervisor at {address} ({reason}). Start one with `platform-engineer serve`, "
        "or leave --url out to run one here."
    )


def _is_passing(error: Exception) -> bool:
    """Whether it is worth trying again: the connection was at fault, not the request."""
    status = _status_of(error)
    if status is not None:
        return status >= httpx.codes.INTERNAL_SERVER_ERROR
    return isinstance(error, A2AClientError | httpx.HTTPError)


def _was_never_sent(error: Exception | None) -> bool:
    return error is not None and any(
        isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout) for cause in causes(error)
    )


def _status_of(error: Exception) -> int | None:
    for cause in causes(error):
        if isinstance(cause, httpx.HTTPStatusError):
            return cause.response.status_code
    return None


def _seen_from_here(advertised: str, address: str) -> str:
    """The url of a card on the host that the card came from: a server seldom knows how it is reached."""
    ours, theirs = urlsplit(address), urlsplit(advertised)
    path = theirs.path if ours.path in {"", "/"} else ours.path
    return urlunsplit((ours.scheme, ours.netloc, path, theirs.query, ""))
