"""The connection to one remote agent: finds it on first use, sends it a question, gives back its run as events.

There is no model here. What cannot be reached says so within a few seconds, in a sentence for the model.
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
from ai_platform_engineering.utils.connections import causes, reason_of
from ai_platform_engineering.utils.errors import FailureCode, ReadableError
from ai_platform_engineering.utils.keys import agents_key

if TYPE_CHECKING:
    import aiohttp

    from ai_platform_engineering.utils.a2a_common.client.own_transport import OwnTransport

logger = logging.getLogger(__name__)

_LEGACY_CARD_PATH: Final = "/.well-known/agent.json"
_CANCEL_SECONDS: Final = 2.0
# A tool may be silent for long; an agent that is silent for this long is asked whether it is still there.
_SILENCE_SECONDS: Final = 20.0
_PROBE_SECONDS: Final = 1.0
_MAX_UNREAD: Final = 256
_STATUS_REASONS: Final = {
    401: "it wants other credentials: set A2A_AGENTS_AUTH_KEY to its key",
    421: "it does not answer to this host name: name it there with ALLOWED_HOSTS",
}
_NOT_AN_ADDRESS: Final = frozenset({"0.0.0.0", "::", "localhost", "127.0.0.1", "::1", ""})


class RemoteAgentError(ReadableError):
    """A remote agent did not do what was asked; the text says why."""

    def __init__(self, sentence: str, code: FailureCode = "unavailable") -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(slots=True)
class RemoteThread:
    """A delegation's place at the agent: a conversation of its own there and, once it has one, its task.

    `turn` counts the messages; with the delegation it names each, so that one that is sent again is the same.
    """

    delegation: str
    task_id: str = ""
    turn: int = 1


class A2ARemoteAgentConnectTool:
    """One remote agent. The card and the client made from it are kept while they work."""

    def __init__(self, name: str, address: str, settings: Settings, bearer: OwnBearer | None = None) -> None:
        self.name = name
        self._address = address
        self._connect_timeout = settings.agent_connect_timeout
        self._bearer = bearer or OwnBearer(settings)
        self._delegations = Delegations(settings, agents_key(settings))
        self._http: httpx.AsyncClient | None = None
        self._session: aiohttp.ClientSession | None = None
        self._client: Client | OwnTransport | None = None
        # Where the card sends callers, if that is not the configured address.
        self._elsewhere = ""
        self._connecting = asyncio.Lock()

    async def stream(
        self, parts: Sequence[Part], context: RequestContext, thread: RemoteThread
    ) -> AsyncGenerator[Event]:
        """Tell the agent something; yield the events of its run, the ending last. Cancelling cancels its task too.

        `thread` says where the message belongs, and afterwards which task it went to.
        """
        message = Message(
            message_id=f"{thread.delegation}-{thread.turn}",
            context_id=thread.delegation,
            task_id=thread.task_id,
            role=Role.ROLE_USER,
            parts=parts,
        )
        set_fields(message.metadata, _marks(context))
        self._delegations.sign(message)
        client, call = await self._ready(context)
        decoder = Decoder(self.name, thread.turn)
        answers = _Answers(_sent(client, SendMessageRequest(message=message), call))
        try:
            async for answer in self._while_alive(answers):
                thread.task_id = answers.known_task_id
                for event in decoder.feed(answer):
                    yield event
            for event in decoder.finish():
                yield event
        except asyncio.CancelledError:
            with suppress(Exception):
                await asyncio.shield(self._cancel(client, answers, call))
            raise
        except (A2AClientError, A2AError, httpx.HTTPError) as error:
            self._client = None
            raise self._broken(error, answers.started, thread) from error
        finally:
            await answers.aclose()

    async def cancel(self, task_id: str, context: RequestContext) -> None:
        """Stop a task that waits for an answer which will not come; an agent that cannot be told lets it expire."""
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
        """The client, and the credentials to call with. They go to the configured address and to no other."""
        headers = await self._headers(context)
        client = await self._connected()
        if headers and self._elsewhere:
            self._client = None
            raise RemoteAgentError(
                f"The {self.name} agent cannot be asked: its card sends callers to {self._elsewhere}, which is not the "
                f"configured address, and credentials go to no other. Set {self.name.upper().replace('-', '_')}"
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
            reason = _answered(error.status_code) if error.status_code else reason_of(error)
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
        self._elsewhere = ""
        if configured:
            del card.supported_interfaces[:]
            card.supported_interfaces.extend(configured)
        elif card.supported_interfaces:
            self._elsewhere = _shown_origin(card.supported_interfaces[0].url)
        if url := _own_url(card):
            return self._own_transport(card, url)
        return ClientFactory(ClientConfig(streaming=True, httpx_client=self._http_client())).create(card)

    def _own_transport(self, card: AgentCard, url: str) -> OwnTransport:
        # Loaded here, as it takes a fifth of a second that supervisors without remote agents need not wait for.
        from ai_platform_engineering.utils.a2a_common.client.own_transport import OwnTransport, new_session  # noqa: PLC0415

        if self._session is None:
            self._session = new_session(url, self._connect_timeout)
        return OwnTransport(self._session, self._http_client(), card, url)

    def _http_client(self) -> httpx.AsyncClient:
        if self._http is None:
            # A stream may be silent while a tool works, so reading has no deadline of its own.
            self._http = httpx.AsyncClient(
                timeout=httpx.Timeout(self._connect_timeout, read=None),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            )
        return self._http

    async def _while_alive(self, answers: _Answers) -> AsyncIterator[StreamResponse]:
        """The agent's answers, as long as it lives: when it is silent, ask for its card."""
        timeout = self._connect_timeout
        while True:
            try:
                answer = await answers.next(timeout)
            except TimeoutError:
                await self._check_alive(answers)
            else:
                if answer is None:
                    return
                yield answer
            timeout = _SILENCE_SECONDS

    async def _check_alive(self, answers: _Answers) -> None:
        try:
            await self._fetch_card(_PROBE_SECONDS)
        except RemoteAgentError as error:
            self._client = None
            if answers.started:
                raise RemoteAgentError(f"The {self.name} agent stopped answering while it worked.") from error
            raise

    async def _cancel(self, client: Client | OwnTransport, answers: _Answers, call: ClientCallContext) -> None:
        async with asyncio.timeout(_CANCEL_SECONDS):
            task_id = await answers.task_id()
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

    def _broken(self, error: Exception, started: bool, thread: RemoteThread) -> RemoteAgentError:
        reason = f"{type(error).__name__}: {error}" if isinstance(error, A2AError) else reason_of(error)
        logger.warning("%s: the call failed: %s", self.name, reason)
        if thread.turn > 1 and isinstance(error, TaskNotFoundError | UnsupportedOperationError):
            return RemoteAgentError(
                f"The {self.name} agent no longer waits for this answer. What it was to do has to be asked for again.",
                "agent",
            )
        if isinstance(error, A2AError):
            status = _status_of(error)
            reason = f" ({_answered(status)})" if status in _STATUS_REASONS else ""
            return RemoteAgentError(f"The {self.name} agent refused the request{reason}.", "agent")
        if started:
            return RemoteAgentError(f"The connection to the {self.name} agent was lost while it worked.")
        return self._unreachable(reason_of(error))


class _Answers:
    """A stream of answers that can be waited for without losing the one under way."""

    def __init__(self, stream: AsyncIterator[StreamResponse]) -> None:
        self._stream = stream
        self._read: asyncio.Queue[StreamResponse | Exception | None] = asyncio.Queue(_MAX_UNREAD)
        self._reader = asyncio.create_task(self._read_all())
        self._something = asyncio.Event()
        self.known_task_id = ""
        self.started = False

    async def next(self, timeout: float) -> StreamResponse | None:
        """The next answer, or None at the end; a `TimeoutError` where there is none within `timeout` seconds."""
        if self._read.empty():
            async with asyncio.timeout(timeout):
                answer = await self._read.get()
        else:
            answer = self._read.get_nowait()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def task_id(self) -> str:
        """The id of the agent's task; waits for the first answer if there was none yet."""
        if not self._reader.done():
            await self._something.wait()
        return self.known_task_id

    async def aclose(self) -> None:
        self._reader.cancel()
        await asyncio.wait({self._reader})

    async def _read_all(self) -> None:
        try:
            async for answer in self._stream:
                self.known_task_id = (
                    self.known_task_id
                    or answer.task.id
                    or answer.status_update.task_id
                    or answer.artifact_update.task_id
                )
                self.started = True
                self._something.set()
                await self._read.put(answer)
        except Exception as error:  # raised where the answers are waited for
            await self._read.put(error)
        else:
            await self._read.put(None)
        finally:
            self._something.set()
            if isinstance(self._stream, AsyncGenerator):
                await self._stream.aclose()


def _marks(context: RequestContext) -> dict[str, Any]:
    """What travels with a message. Words that nobody will see need not be sent."""
    marks: dict[str, Any] = {
        "trace_id": context.trace_id,
        "stream_text": context.stream_sub_agent_text,
        "delegated": True,
    }
    optional = {"user": context.user, "approvals": [*map(dict, context.approvals)], "step": context.step}
    marks |= {name: value for name, value in optional.items() if value}
    # An empty list says that the agent has no skills here, whatever its own catalog has.
    return marks if context.skills is None else {**marks, SKILLS: context.skills}


def _own_url(card: AgentCard) -> str | None:
    """Where its streams are those that this version of ours writes."""
    spoken = {(each.protocol_binding, each.protocol_version): each.url for each in card.supported_interfaces}
    return spoken.get((TransportProtocol.JSONRPC, PROTOCOL_VERSION_1_0)) if can_resume(card) else None


def _sent(
    client: Client | OwnTransport, request: SendMessageRequest, call: ClientCallContext
) -> AsyncIterator[StreamResponse]:
    if isinstance(client, Client):
        return client.send_message(request, context=call)
    return client.send_message_streaming(request, context=call)


def _answered(status: int) -> str:
    return f"HTTP {status}" + (f", {_STATUS_REASONS[status]}" if status in _STATUS_REASONS else "")


def _status_of(error: Exception) -> int:
    """The HTTP status that the agent answered with; 0 if it was none."""
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
    """Scheme, host and port alone: the rest may hold anything."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[-1], "", "", ""))


def _reachable_url(advertised: str, address: str) -> str:
    """The url of a card, with the host that we know where the card names only the agent's own machine."""
    url = urlsplit(advertised)
    if (url.hostname or "") not in _NOT_AN_ADDRESS:
        return advertised
    known = urlsplit(address)
    return urlunsplit((known.scheme, known.netloc, url.path or known.path, url.query, ""))
