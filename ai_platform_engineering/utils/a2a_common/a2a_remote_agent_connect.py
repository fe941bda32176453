"""The connection to one remote agent: connects on first use, sends messages, yields the events of the agent's run.

An agent that cannot be reached fails the call within a few seconds, with a sentence that the model gets as the result.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

import httpx
from a2a.client import A2ACardResolver, Client, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError, AgentCardResolutionError
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
)
from a2a.utils.constants import PROTOCOL_VERSION_1_0, TransportProtocol
from a2a.utils.errors import A2AError, TaskNotFoundError, UnsupportedOperationError

from ai_platform_engineering.events import Event
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.codec.values import set_fields
from ai_platform_engineering.utils.a2a_common.delegation import SKILLS, Delegations
from ai_platform_engineering.utils.a2a_common.protocol import can_resume
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.a2a_common.wire import Decoder
from ai_platform_engineering.utils.access_tokens import AccessTokenError, OwnBearer
from ai_platform_engineering.utils.connections import CLIENT_KEEP_ALIVE_SECONDS, causes, reason_of
from ai_platform_engineering.utils.errors import FailureCode, ReadableError
from ai_platform_engineering.utils.keys import agents_key

if TYPE_CHECKING:
    import aiohttp

    from ai_platform_engineering.utils.a2a_common.client.own_transport import OwnTransport

logger = logging.getLogger(__name__)

_LEGACY_CARD_PATH: Final = "/.well-known/agent.json"
_CANCEL_SECONDS: Final = 2.0
# A tool may take long without sending anything; after this time the agent's card is fetched to see if it is alive.
_IDLE_SECONDS: Final = 20.0
_PROBE_SECONDS: Final = 1.0
_QUEUE_SIZE: Final = 256
_STATUS_REASONS: Final = {
    401: "it requires other credentials: set A2A_AGENTS_AUTH_KEY to its key",
    421: "it does not accept this host name: add it to ALLOWED_HOSTS at the agent",
}
_LOCAL_HOSTS: Final = frozenset({"0.0.0.0", "::", "localhost", "127.0.0.1", "::1", ""})


class RemoteAgentError(ReadableError):
    """A call of a remote agent failed; the text says why."""

    def __init__(self, sentence: str, code: FailureCode = "unavailable") -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(slots=True)
class RemoteThread:
    """The conversation of a delegation at the agent, and its task there once the agent has created it.

    `turn` counts the messages. Message ids consist of delegation and turn, so a message that is sent again has the same
    id.
    """

    delegation: str
    task_id: str = ""
    turn: int = 1


class A2ARemoteAgentConnectTool:
    """The client of one remote agent. Card and HTTP client are cached until a call fails."""

    def __init__(self, name: str, address: str, settings: Settings, bearer: OwnBearer | None = None) -> None:
        self.name = name
        self._address = address
        self._connect_timeout = settings.agent_connect_timeout
        self._bearer = bearer or OwnBearer(settings)
        self._delegations = Delegations(settings, agents_key(settings))
        self._http: httpx.AsyncClient | None = None
        self._session: aiohttp.ClientSession | None = None
        self._client: Client | OwnTransport | None = None
        # The origin of the card's URL, if it is not the configured address.
        self._other_origin = ""
        self._connecting = asyncio.Lock()

    async def stream(
        self, parts: Sequence[Part], context: RequestContext, thread: RemoteThread
    ) -> AsyncGenerator[Event]:
        """Send a message; yield the events of the agent's run, the ending last. Cancelling cancels its task, too.

        The message goes to the conversation and task of `thread`; `thread.task_id` is set from the responses.
        """
        message = Message(
            message_id=f"{thread.delegation}-{thread.turn}",
            context_id=thread.delegation,
            task_id=thread.task_id,
            role=Role.ROLE_USER,
            parts=parts,
        )
        set_fields(message.metadata, _message_metadata(context))
        self._delegations.sign(message)
        client, call = await self._ready(context)
        decoder = Decoder(self.name, thread.turn)
        reader = _StreamReader(_send(client, SendMessageRequest(message=message), call))
        try:
            async for response in self._responses(reader):
                thread.task_id = reader.known_task_id
                for event in decoder.feed(response):
                    yield event
            for event in decoder.finish():
                yield event
        except asyncio.CancelledError:
            if not context.is_handed_over():
                with suppress(Exception):
                    await asyncio.shield(self._cancel(client, reader, call))
            raise
        except (A2AClientError, A2AError, httpx.HTTPError) as error:
            self._client = None
            raise self._call_error(error, reader.started, thread) from error
        finally:
            await reader.aclose()

    async def cancel(self, task_id: str, context: RequestContext) -> None:
        """Cancel a waiting task that will get no answer. If the agent cannot be reached, the task expires there."""
        with suppress(A2AClientError, A2AError, httpx.HTTPError, RemoteAgentError, TimeoutError):
            async with asyncio.timeout(_CANCEL_SECONDS):
                client, call = await self._ready(context)
                await client.cancel_task(CancelTaskRequest(id=task_id), context=call)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
        if self._http is not None:
            await self._http.aclose()

    async def _ready(self, context: RequestContext) -> tuple[Client | OwnTransport, ClientCallContext]:
        """The client, and the credentials for a call. Credentials are sent to the configured address only."""
        headers = await self._headers(context)
        client = await self._connected()
        if headers and self._other_origin:
            self._client = None
            raise RemoteAgentError(
                f"The {self.name} agent cannot be asked: its card names {self._other_origin}, which is not the "
                f"configured address, and credentials are sent to no other. Set {self.name.upper().replace('-', '_')}"
                "_AGENT_URL to that address, or correct the card (A2A_PUBLIC_URL at the agent).",
            )
        return client, ClientCallContext(service_parameters=headers)

    async def _connected(self) -> Client | OwnTransport:
        if self._client is not None:
            return self._client
        async with self._connecting:
            if self._client is None:
                self._client = self._client_for(await self._fetch_card(self._connect_timeout))
            return self._client

    async def _fetch_card(self, timeout: float) -> AgentCard:
        resolver = A2ACardResolver(self._http_client(), self._address)
        try:
            async with asyncio.timeout(timeout):
                headers = {"headers": await self._headers(None)}
                try:
                    return await resolver.get_agent_card(http_kwargs=headers)
                except AgentCardResolutionError as error:
                    if error.status_code != httpx.codes.NOT_FOUND:
                        raise
                    return await resolver.get_agent_card(_LEGACY_CARD_PATH, http_kwargs=headers)
        except TimeoutError as error:
            raise self._unreachable(f"no answer within {timeout:g} s") from error
        except AgentCardResolutionError as error:
            reason = _status_reason(error.status_code) if error.status_code else reason_of(error)
            raise self._unreachable(reason) from error
        except (A2AClientError, httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(reason_of(error)) from error

    def _client_for(self, card: AgentCard) -> Client | OwnTransport:
        try:
            for interface in card.supported_interfaces:
                interface.url = _reachable_url(interface.url, self._address)
            configured = [each for each in card.supported_interfaces if _origin(each.url) == _origin(self._address)]
        except ValueError as error:
            raise self._unreachable("its card names an address that cannot be used") from error
        self._other_origin = ""
        if configured:
            del card.supported_interfaces[:]
            card.supported_interfaces.extend(configured)
        elif card.supported_interfaces:
            self._other_origin = _shown_origin(card.supported_interfaces[0].url)
        if url := _own_transport_url(card):
            return self._own_transport(card, url)
        return ClientFactory(ClientConfig(streaming=True, httpx_client=self._http_client())).create(card)

    def _own_transport(self, card: AgentCard, url: str) -> OwnTransport:
        # Imported on first use: it takes a fifth of a second, which supervisors without remote agents save.
        from ai_platform_engineering.utils.a2a_common.client.own_transport import OwnTransport, new_session  # noqa: PLC0415

        if self._session is None:
            self._session = new_session(url, self._connect_timeout)
        return OwnTransport(self._session, self._http_client(), card, url)

    def _http_client(self) -> httpx.AsyncClient:
        if self._http is None:
            # A stream sends nothing while a tool works, so there is no read timeout.
            self._http = httpx.AsyncClient(
                timeout=httpx.Timeout(self._connect_timeout, read=None),
                limits=httpx.Limits(
                    max_connections=None,
                    max_keepalive_connections=20,
                    keepalive_expiry=CLIENT_KEEP_ALIVE_SECONDS,
                ),
            )
        return self._http

    async def _responses(self, reader: _StreamReader) -> AsyncIterator[StreamResponse]:
        """Yield the agent's responses. While none come, fetch its card to see if it is alive."""
        timeout = self._connect_timeout
        while True:
            try:
                response = await reader.next(timeout)
            except TimeoutError:
                await self._check_alive(reader)
            else:
                if response is None:
                    return
                yield response
            timeout = _IDLE_SECONDS

    async def _check_alive(self, reader: _StreamReader) -> None:
        try:
            await self._fetch_card(_PROBE_SECONDS)
        except RemoteAgentError as error:
            self._client = None
            if reader.started:
                raise RemoteAgentError(f"The {self.name} agent stopped answering while it worked.") from error
            raise

    async def _cancel(self, client: Client | OwnTransport, reader: _StreamReader, call: ClientCallContext) -> None:
        async with asyncio.timeout(_CANCEL_SECONDS):
            task_id = await reader.task_id()
            if task_id:
                await client.cancel_task(CancelTaskRequest(id=task_id), context=call)

    async def _headers(self, context: RequestContext | None) -> dict[str, str]:
        try:
            token = await self._bearer.token(context.auth_token if context else None)
        except AccessTokenError as error:
            raise RemoteAgentError(f"The {self.name} agent cannot be asked: {error}") from error
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _unreachable(self, reason: str) -> RemoteAgentError:
        return RemoteAgentError(f"The {self.name} agent cannot be reached ({reason}). Other agents are not affected.")

    def _call_error(self, error: Exception, started: bool, thread: RemoteThread) -> RemoteAgentError:
        reason = f"{type(error).__name__}: {error}" if isinstance(error, A2AError) else reason_of(error)
        logger.warning("%s: the call failed: %s", self.name, reason)
        if thread.turn > 1 and isinstance(error, TaskNotFoundError | UnsupportedOperationError):
            return RemoteAgentError(
                f"The {self.name} agent no longer waits for this answer. Start the work again with a new request.",
                "agent",
            )
        if isinstance(error, A2AError):
            status = _status_of(error)
            reason = f" ({_status_reason(status)})" if status in _STATUS_REASONS else ""
            return RemoteAgentError(f"The {self.name} agent rejected the request{reason}.", "agent")
        if started:
            return RemoteAgentError(f"The connection to the {self.name} agent was lost while it worked.")
        return self._unreachable(reason_of(error))


class _StreamReader:
    """Reads a stream in a background task, so that a timeout while waiting for a response loses none."""

    def __init__(self, stream: AsyncIterator[StreamResponse]) -> None:
        self._stream = stream
        self._received: asyncio.Queue[StreamResponse | Exception | None] = asyncio.Queue(_QUEUE_SIZE)
        self._reading = asyncio.create_task(self._read_all())
        self._first_received = asyncio.Event()
        self.known_task_id = ""
        self.started = False

    async def next(self, timeout: float) -> StreamResponse | None:
        """The next response, or None at the end. Raises `TimeoutError` if none comes within `timeout` seconds."""
        if self._received.empty():
            async with asyncio.timeout(timeout):
                response = await self._received.get()
        else:
            response = self._received.get_nowait()
        if isinstance(response, Exception):
            raise response
        return response

    async def task_id(self) -> str:
        """The id of the agent's task; waits for the first response if there was none yet."""
        if not self._reading.done():
            await self._first_received.wait()
        return self.known_task_id

    async def aclose(self) -> None:
        self._reading.cancel()
        await asyncio.wait({self._reading})

    async def _read_all(self) -> None:
        try:
            async for response in self._stream:
                self.known_task_id = (
                    self.known_task_id
                    or response.task.id
                    or response.status_update.task_id
                    or response.artifact_update.task_id
                )
                self.started = True
                self._first_received.set()
                await self._received.put(response)
        except Exception as error:  # raised by `next`
            await self._received.put(error)
        else:
            await self._received.put(None)
        finally:
            self._first_received.set()
            if isinstance(self._stream, AsyncGenerator):
                await self._stream.aclose()


def _message_metadata(context: RequestContext) -> dict[str, Any]:
    """The metadata of a message to the agent. It sends text only if the supervisor's caller gets it."""
    metadata: dict[str, Any] = {
        "trace_id": context.trace_id,
        "stream_text": context.stream_sub_agent_text,
        "delegated": True,
    }
    optional = {"user": context.user, "approvals": [*map(dict, context.approvals)], "step": context.step}
    metadata |= {name: value for name, value in optional.items() if value}
    # An empty list means that the agent must use no skills, also none of its own catalog.
    return metadata if context.skills is None else {**metadata, SKILLS: context.skills}


def _own_transport_url(card: AgentCard) -> str | None:
    """The URL for `OwnTransport`; None if the agent is not one of ours or does not offer JSON-RPC of protocol 1.0."""
    interfaces = {(each.protocol_binding, each.protocol_version): each.url for each in card.supported_interfaces}
    return interfaces.get((TransportProtocol.JSONRPC, PROTOCOL_VERSION_1_0)) if can_resume(card) else None


def _send(
    client: Client | OwnTransport, request: SendMessageRequest, call: ClientCallContext
) -> AsyncIterator[StreamResponse]:
    if isinstance(client, Client):
        return client.send_message(request, context=call)
    return client.send_message_streaming(request, context=call)


def _status_reason(status: int) -> str:
    return f"HTTP {status}" + (f", {_STATUS_REASONS[status]}" if status in _STATUS_REASONS else "")


def _status_of(error: Exception) -> int:
    """The HTTP status of the agent's response; 0 if there is none."""
    for cause in causes(error):
        if isinstance(cause, httpx.HTTPStatusError):
            return cause.response.status_code
        if isinstance(status := getattr(cause, "status_code", None), int):
            return status
    return 0


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _shown_origin(url: str) -> str:
    """Scheme, host and port only: the rest may contain credentials."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[-1], "", "", ""))


def _reachable_url(advertised: str, address: str) -> str:
    """A URL of the card. A local host in it is replaced by that of the configured address."""
    url = urlsplit(advertised)
    if (url.hostname or "") not in _LOCAL_HOSTS:
        return advertised
    known = urlsplit(address)
    return urlunsplit((known.scheme, known.netloc, url.path or known.path, url.query, ""))
