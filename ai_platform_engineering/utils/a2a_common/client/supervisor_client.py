"""A client's side of the connection to a supervisor: finds it, asks, answers forms."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError, AgentCardResolutionError
from a2a.types.a2a_pb2 import (
    AgentCard,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    Task,
    TaskState,
)
from a2a.utils.errors import A2AError, TaskNotFoundError

from ai_platform_engineering.events import Event, Form
from ai_platform_engineering.forms.answers import Answer, answer_data
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import (
    Parked,
    Run,
    SupervisorError,
    no_token_in,
    refusal,
)
from ai_platform_engineering.utils.a2a_common.codec.values import set_value
from ai_platform_engineering.utils.a2a_common.protocol import can_resume
from ai_platform_engineering.utils.a2a_common.request_context import TO_CONVERSATION
from ai_platform_engineering.utils.a2a_common.wire import decode_task
from ai_platform_engineering.utils.connections import reason_of

_CONNECT_SECONDS: Final = 5.0
# The supervisor sends a sign of life every 15 seconds; a connection that is silent for longer is dead.
_SILENCE_SECONDS: Final = 40.0
_WAITING: Final = frozenset({TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})


class Supervisor:
    """A supervisor that was found, and the way to it."""

    def __init__(self, client: Client, card: AgentCard, address: str, http: httpx.AsyncClient) -> None:
        self.client = client
        self.card = card
        self.address = address
        self.http = http
        """For the routes beside A2A; it authenticates as `client` does."""
        self.resumes = can_resume(card)
        """Whether a stream can be picked up where it broke off; other servers would say everything again."""

    def ask(
        self, question: str, context_id: str, parked: Parked | None = None, *, to_conversation: bool = False
    ) -> Run:
        """Ask, or answer `parked` with a text; `to_conversation` where only a plain answer may count as one."""
        if parked is None:
            return Run(self, question_message(question, context_id))
        metadata = {TO_CONVERSATION: True} if to_conversation else None
        return Run(self, message_to(parked, question, metadata=metadata), parked.seen)

    def answer(self, form: Form, answer: Answer, parked: Parked) -> Run:
        """Answer one form of a task that waits; the run goes on from where it stopped."""
        named = {"form_id": form.form_id} if form.form_id else {}
        return Run(self, message_to(parked, {"resume": {**named, **answer_data(answer)}}), parked.seen)

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
    address: str, auth: httpx.Auth | None = None, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[Supervisor]:
    """The supervisor at `address`, which is asked for its card now. `auth` is mostly a `SupervisorAuth`."""
    http = httpx.AsyncClient(
        transport=transport,
        auth=auth,
        timeout=httpx.Timeout(_CONNECT_SECONDS, read=_SILENCE_SECONDS),
        # Every run that is listened to is a connection, and there may be hundreds.
        limits=httpx.Limits(max_connections=None),
    )
    async with http:
        card = await _fetch_card(http, address)
        for interface in card.supported_interfaces:
            interface.url = _seen_from_here(interface.url, address)
        client = ClientFactory(ClientConfig(streaming=True, httpx_client=http)).create(card)
        yield Supervisor(client, card, address, http)


def question_message(
    question: str, context_id: str, *, message_id: str = "", metadata: Mapping[str, Any] | None = None
) -> Message:
    """A question in a conversation."""
    return _message(Part(text=question), Parked("", context_id), message_id, metadata)


def message_to(
    parked: Parked, said: str | Mapping[str, Any], *, message_id: str = "", metadata: Mapping[str, Any] | None = None
) -> Message:
    """Words, or data, for a task that waits."""
    part = Part(text=said) if isinstance(said, str) else Part()
    if not isinstance(said, str):
        set_value(part.data, said)
    return _message(part, parked, message_id, metadata)


def _message(part: Part, parked: Parked, message_id: str, metadata: Mapping[str, Any] | None) -> Message:
    message = Message(
        message_id=message_id or uuid.uuid4().hex,
        context_id=parked.context_id,
        task_id=parked.task_id,
        role=Role.ROLE_USER,
        parts=[part],
    )
    message.metadata.update(dict(metadata or {}))
    return message


def _seq_of_task(task: Task) -> int:
    """The number of the last event in a task as it was read."""
    value = task.metadata.fields.get("seq")
    return 0 if value is None else int(value.number_value)


async def _fetch_card(http: httpx.AsyncClient, address: str) -> AgentCard:
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            return await A2ACardResolver(http, address).get_agent_card()
    except TimeoutError:
        reason = f"no answer within {_CONNECT_SECONDS:g} s"
    except (A2AClientError, httpx.HTTPError) as error:
        if no_token_in(error):
            raise refusal(error, address, "question") from None
        status = error.status_code if isinstance(error, AgentCardResolutionError) else None
        reason = f"HTTP {status}" if status else reason_of(error)
    except httpx.InvalidURL:
        reason = "that is not an address"
    raise SupervisorError(
        f"There is no supervisor at {address} ({reason}). Start one with `platform-engineer serve`, "
        "or check the address."
    )


def _seen_from_here(advertised: str, address: str) -> str:
    """The url of a card on the host that the card came from: a server seldom knows how it is reached."""
    ours, theirs = urlsplit(address), urlsplit(advertised)
    path = theirs.path if ours.path in {"", "/"} else ours.path
    return urlunsplit((ours.scheme, ours.netloc, path, theirs.query, ""))
