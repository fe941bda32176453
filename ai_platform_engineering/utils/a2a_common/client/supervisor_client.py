"""The client of a supervisor: connects, sends questions and answers to forms, and reads tasks."""

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
    SupervisorError,
    SupervisorRun,
    WaitingTask,
    access_token_error_in,
    refusal,
)
from ai_platform_engineering.utils.a2a_common.codec.values import set_value
from ai_platform_engineering.utils.a2a_common.protocol import WAITING_STATES, can_resume
from ai_platform_engineering.utils.a2a_common.request_context import TO_CONVERSATION
from ai_platform_engineering.utils.a2a_common.wire import decode_task
from ai_platform_engineering.utils.connections import reason_of

_CONNECT_SECONDS: Final = 5.0
# A supervisor that accepts the connection is there; on a busy machine its answer may take a while.
_CARD_SECONDS: Final = 20.0
# The supervisor sends a ping every 15 seconds; a connection without data for longer is dead.
_READ_SECONDS: Final = 40.0


class Supervisor:
    """A connection to a supervisor."""

    def __init__(self, client: Client, card: AgentCard, address: str, http: httpx.AsyncClient) -> None:
        self.client = client
        self.card = card
        self.address = address
        self.http = http
        """For routes other than A2A, with the same authentication as `client`."""
        self.resumes = can_resume(card)
        """Whether a broken stream can be resumed. Other servers would repeat all events."""

    def ask(
        self, question: str, context_id: str, waiting: WaitingTask | None = None, *, to_conversation: bool = False
    ) -> SupervisorRun:
        """Ask a question, or answer the task `waiting` with a text.

        With `to_conversation` the text answers an open form only if it clearly is an answer.
        """
        if waiting is None:
            return SupervisorRun(self, question_message(question, context_id))
        metadata = {TO_CONVERSATION: True} if to_conversation else None
        return SupervisorRun(self, message_to(waiting, question, metadata=metadata), waiting.last_seq)

    def answer(self, form: Form, answer: Answer, waiting: WaitingTask) -> SupervisorRun:
        """Answer one form of a waiting task. Its run resumes where it stopped."""
        named = {"form_id": form.form_id} if form.form_id else {}
        return SupervisorRun(self, message_to(waiting, {"resume": {**named, **answer_data(answer)}}), waiting.last_seq)

    async def waiting_task(self, task_id: str) -> tuple[WaitingTask, list[Event]]:
        """The waiting task `task_id`, and its events so far. Raises `SupervisorError` if it waits for no answer."""
        try:
            task = await self.client.get_task(GetTaskRequest(id=task_id))
        except TaskNotFoundError:
            raise SupervisorError(f"There is no task {task_id} at {self.address}.") from None
        except (A2AError, httpx.HTTPError) as error:
            raise refusal(error, self.address, "task") from None
        if task.status.state not in WAITING_STATES:
            state = TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower().replace("_", " ")
            raise SupervisorError(f"Task {task_id} is {state}: it does not wait for an answer.")
        return WaitingTask(task.id, task.context_id, _seq_of_task(task)), decode_task(task)

    async def find_waiting_task(self, context_id: str) -> str:
        """The id of the task in a conversation that waits for an answer."""
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
    """Connect to the supervisor at `address`: fetch its card. `auth` is usually a `SupervisorAuth`."""
    http = httpx.AsyncClient(
        transport=transport,
        auth=auth,
        timeout=httpx.Timeout(_CONNECT_SECONDS, read=_READ_SECONDS),
        # Every stream takes a connection, and there may be hundreds.
        limits=httpx.Limits(max_connections=None),
    )
    async with http:
        card = await _fetch_card(http, address)
        for interface in card.supported_interfaces:
            interface.url = _reachable_url(interface.url, address)
        client = ClientFactory(ClientConfig(streaming=True, httpx_client=http)).create(card)
        yield Supervisor(client, card, address, http)


def question_message(
    question: str, context_id: str, *, message_id: str = "", metadata: Mapping[str, Any] | None = None
) -> Message:
    """The message of a question in a conversation."""
    return _message(Part(text=question), WaitingTask("", context_id), message_id, metadata)


def message_to(
    task: WaitingTask,
    content: str | Mapping[str, Any],
    *,
    message_id: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> Message:
    """The message of an answer to a waiting task: a text, or data."""
    part = Part(text=content) if isinstance(content, str) else Part()
    if not isinstance(content, str):
        set_value(part.data, content)
    return _message(part, task, message_id, metadata)


def _message(part: Part, task: WaitingTask, message_id: str, metadata: Mapping[str, Any] | None) -> Message:
    message = Message(
        message_id=message_id or uuid.uuid4().hex,
        context_id=task.context_id,
        task_id=task.task_id,
        role=Role.ROLE_USER,
        parts=[part],
    )
    message.metadata.update(dict(metadata or {}))
    return message


def _seq_of_task(task: Task) -> int:
    """The number of the last event in the task."""
    value = task.metadata.fields.get("seq")
    return 0 if value is None else int(value.number_value)


async def _fetch_card(http: httpx.AsyncClient, address: str) -> AgentCard:
    try:
        async with asyncio.timeout(_CARD_SECONDS):
            return await A2ACardResolver(http, address).get_agent_card()
    except TimeoutError:
        reason = f"no answer within {_CARD_SECONDS:g} s"
    except (A2AClientError, httpx.HTTPError) as error:
        if access_token_error_in(error):
            raise refusal(error, address, "question") from None
        status = error.status_code if isinstance(error, AgentCardResolutionError) else None
        reason = f"HTTP {status}" if status else reason_of(error)
    except httpx.InvalidURL:
        reason = "that is not an address"
    raise SupervisorError(
        f"There is no supervisor at {address} ({reason}). Start one with `platform-engineer serve`, "
        "or check the address."
    )


def _reachable_url(advertised: str, address: str) -> str:
    """A URL of the card, with the host that the card was fetched from: a server rarely knows its public address."""
    ours, theirs = urlsplit(address), urlsplit(advertised)
    path = theirs.path if ours.path in {"", "/"} else ours.path
    return urlunsplit((ours.scheme, ours.netloc, path, theirs.query, ""))
