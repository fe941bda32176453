"""The connection to one remote agent: connects on first use, sends messages, yields the events of the agent's run.

An agent that cannot be reached fails the call within a few seconds, with a sentence that the model gets as the result.
If the connection to one of our agents is lost, the call reconnects for a while and continues after the last event.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
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
    SubscribeToTaskRequest,
)
from a2a.utils.constants import PROTOCOL_VERSION_1_0, TransportProtocol
from a2a.utils.errors import A2AError, TaskNotFoundError, UnsupportedOperationError

from ai_platform_engineering.budgets.usage import Usage
from ai_platform_engineering.events import Event
from ai_platform_engineering.identity.principal import ANONYMOUS
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.client.masked_events import MaskedEvents
from ai_platform_engineering.utils.a2a_common.client.reconnection import (
    Reconnection,
    StreamCutError,
    http_status_of,
    is_temporary,
    was_never_sent,
)
from ai_platform_engineering.utils.a2a_common.client.stream_reader import StreamReader
from ai_platform_engineering.utils.a2a_common.codec.values import set_fields
from ai_platform_engineering.utils.a2a_common.delegation import (
    ALLOWANCE,
    APPROVAL,
    POLICY,
    PRINCIPAL,
    SKILLS,
    TAINT,
    Delegations,
)
from ai_platform_engineering.utils.a2a_common.protocol import can_resume, is_sandbox
from ai_platform_engineering.utils.a2a_common.request_context import USER_TOKEN_HEADER, RequestContext
from ai_platform_engineering.utils.a2a_common.wire import Decoder, seq_of, usage_in
from ai_platform_engineering.utils.access_tokens import AccessTokenError, OwnBearer
from ai_platform_engineering.utils.connections import CLIENT_LIMITS, reason_of
from ai_platform_engineering.utils.errors import FailureCode, ReadableError
from ai_platform_engineering.utils.keys import opening_key
from ai_platform_engineering.utils.outbound.policy import OPERATOR
from ai_platform_engineering.utils.outbound.transport import CheckedTransport
from ai_platform_engineering.utils.redact import KnownSecrets

if TYPE_CHECKING:
    import aiohttp

    from ai_platform_engineering.utils.a2a_common.client.own_transport import OwnTransport

logger = logging.getLogger(__name__)

_LEGACY_CARD_PATH: Final = "/.well-known/agent.json"
_CANCEL_SECONDS: Final = 2.0
# A tool may take long without sending anything; after this time the agent's card is fetched to see if it is alive.
_IDLE_SECONDS: Final = 20.0
_PROBE_SECONDS: Final = 1.0
_SERVER_ERROR: Final = 500
_STATUS_REASONS: Final = {
    401: "it requires other credentials: set A2A_AGENTS_AUTH_KEY to its key",
    421: "it does not accept this host name: add it to ALLOWED_HOSTS at the agent",
}
_LOCAL_HOSTS: Final = frozenset({"0.0.0.0", "::", "localhost", "127.0.0.1", "::1", ""})


class RemoteAgentError(ReadableError):
    """A call of a remote agent failed; the text says why. `is_temporary`: the agent may be back soon."""

    def __init__(self, sentence: str, code: FailureCode = "unavailable", *, is_temporary: bool = False) -> None:
        super().__init__(sentence)
        self.code = code
        self.is_temporary = is_temporary


_CALL_ERRORS: Final = (A2AError, httpx.HTTPError, StreamCutError, RemoteAgentError)


@dataclass(slots=True)
class RemoteThread:
    """The conversation of a delegation at the agent, and its task there once the agent has created it.

    `turn` counts the messages. Message ids consist of delegation and turn, so a message that is sent again has the same
    id.
    """

    delegation: str
    task_id: str = ""
    turn: int = 1
    may_have_arrived: bool = False
    """The agent may have received the message of this turn, so only an agent that recognizes it gets it again."""
    recorded: bool = False
    """The ledger of effects has the message of this turn, because the agent would not recognize it."""
    usage: Mapping[str, Usage] | None = None
    """What the agent's run has used, by model; None if the agent did not report it."""

    @property
    def message_id(self) -> str:
        return f"{self.delegation}-{self.turn}"


class A2ARemoteAgentConnectTool:
    """The client of one remote agent. Card and HTTP client are cached until a call fails.

    With `needs_user_token`, the agent gets the access token of the user with each delegation.
    """

    def __init__(
        self,
        name: str,
        address: str,
        settings: Settings,
        bearer: OwnBearer | None = None,
        *,
        needs_user_token: bool = False,
    ) -> None:
        self.name = name
        self._needs_user_token = needs_user_token
        self._address = address
        self._connect_timeout = settings.agent_connect_timeout
        self._reconnect_seconds = settings.agent_reconnect_seconds
        self._bearer = bearer or OwnBearer(settings)
        self._secrets = KnownSecrets.of(settings)
        self._delegations = Delegations(settings, opening_key(settings, name))
        # The agent's card may name their origins. They get the supervisor's credentials.
        self._allowed = [address, *filter(None, map(str.strip, settings.agent_allowed_origins.split(",")))]
        self._http: httpx.AsyncClient | None = None
        self._session: aiohttp.ClientSession | None = None
        self._client: Client | OwnTransport | None = None
        self.is_sandbox = False
        """Whether the agent's card says that its tools are those of the sandbox."""
        # When the first call lost its connection to one of our agents, if none was opened since.
        self._gone_since: float | None = None
        self._connecting = asyncio.Lock()

    async def stream(
        self, parts: Sequence[Part], context: RequestContext, thread: RemoteThread
    ) -> AsyncGenerator[Event]:
        """Send a message; yield the events of the agent's run, the ending last. Cancelling cancels its task, too.

        The message goes to the conversation and task of `thread`; `thread.task_id` is set from the responses.
        """
        message = Message(
            message_id=thread.message_id,
            context_id=thread.delegation,
            task_id=thread.task_id,
            role=Role.ROLE_USER,
            parts=parts,
        )
        set_fields(message.metadata, _message_metadata(self.name, context))
        decoder, masked = Decoder(self.name, thread.turn), MaskedEvents(self._secrets)
        reconnection = Reconnection(self._reconnect_seconds)
        # Only our agents can be asked again. If an earlier process sent the message, the card will say which one it is.
        reconnects = self._gone_since is not None or thread.may_have_arrived or _is_ours(self._client)
        while True:
            reader: StreamReader | None = None
            try:
                await reconnection.pause()
                client, call = await self._ready(context)
                reconnects = _is_ours(client)
                if (last_seq := reconnection.last_seq) is None:
                    await self._check_may_send(client, message, thread, context)
                reader = StreamReader(self._opened(client, call, message, thread.task_id, last_seq))
                async for response in self._responses(reader):
                    thread.task_id, thread.may_have_arrived = reader.known_task_id, True
                    self._gone_since = None
                    reconnection.received(_seq_in(response))
                    thread.usage = usage_in(response.status_update, thread.usage)
                    for event in masked.feed(decoder.feed(response)):
                        yield event
                if reconnects and not decoder.is_complete:
                    raise StreamCutError
                for event in masked.feed(decoder.finish()):
                    yield event
                return
            except asyncio.CancelledError:
                if not context.is_handed_over():
                    with suppress(Exception):
                        await asyncio.shield(self._cancel(thread, reader, context))
                raise
            except _CALL_ERRORS as error:
                self._client = None
                was_sent = reader is not None and (isinstance(error, RemoteAgentError) or not was_never_sent(error))
                thread.may_have_arrived = thread.may_have_arrived or was_sent
                if not (reconnects and self._reconnects_after(error, reconnection)):
                    started = reconnection.last_seq is not None
                    raise self._call_error(error, thread, started=started) from error
            finally:
                if reader is not None:
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
        """The client, and the credentials for a call."""
        headers = await self._headers(context)
        return await self._connected(), ClientCallContext(service_parameters=headers)

    async def _connected(self) -> Client | OwnTransport:
        if self._client is not None:
            return self._client
        async with self._connecting:
            if self._client is None:
                card = await self._fetch_card(self._connect_timeout)
                self.is_sandbox = is_sandbox(card)
                self._client = self._client_for(card)
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
            raise self._unreachable(f"no answer within {timeout:g} s", is_temporary=True) from error
        except AgentCardResolutionError as error:
            status = error.status_code
            reason = _status_reason(status) if status else reason_of(error)
            raise self._unreachable(reason, is_temporary=not status or status >= _SERVER_ERROR) from error
        except (A2AClientError, httpx.HTTPError) as error:
            raise self._unreachable(reason_of(error), is_temporary=True) from error
        except httpx.InvalidURL as error:
            raise self._unreachable(reason_of(error)) from error

    def _client_for(self, card: AgentCard) -> Client | OwnTransport:
        try:
            for interface in card.supported_interfaces:
                interface.url = _reachable_url(interface.url, self._address)
            origins = set(map(_origin, self._allowed))
            allowed = [each for each in card.supported_interfaces if _origin(each.url) in origins]
        except ValueError as error:
            raise self._unreachable("its card names an address that cannot be used") from error
        if card.supported_interfaces and not allowed:
            raise self._at_another_origin(card.supported_interfaces[0].url)
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(allowed)
        if url := _own_transport_url(card):
            return self._own_transport(card, url)
        try:
            return ClientFactory(ClientConfig(streaming=True, httpx_client=self._http_client())).create(card)
        except ValueError as error:
            raise self._unreachable("its card names no protocol that the supervisor knows") from error

    def _own_transport(self, card: AgentCard, url: str) -> OwnTransport:
        # Imported on first use: it takes a fifth of a second, which supervisors without remote agents save.
        from ai_platform_engineering.utils.a2a_common.client.own_transport import OwnTransport, new_session  # noqa: PLC0415

        OPERATOR.check_url(httpx.URL(url))  # the session resolves names, and does not check addresses in URLs
        if self._session is None:
            self._session = new_session(url, self._connect_timeout)
        return OwnTransport(self._session, self._http_client(), card, url)

    def _http_client(self) -> httpx.AsyncClient:
        if self._http is None:
            # A stream sends nothing while a tool works, so there is no read timeout.
            self._http = httpx.AsyncClient(
                timeout=httpx.Timeout(self._connect_timeout, read=None),
                transport=CheckedTransport(OPERATOR, limits=CLIENT_LIMITS),
            )
        return self._http

    async def _responses(self, reader: StreamReader) -> AsyncIterator[StreamResponse]:
        """Yield the agent's responses. While none come, fetch its card to see if it is alive."""
        timeout = self._connect_timeout
        while True:
            try:
                response = await reader.next(timeout)
            except TimeoutError:
                await self._check_alive(started=bool(reader.known_task_id))
            else:
                if response is None:
                    return
                yield response
            timeout = _IDLE_SECONDS

    async def _check_alive(self, *, started: bool) -> None:
        try:
            await self._fetch_card(_PROBE_SECONDS)
        except RemoteAgentError as error:
            if started:
                silent = f"The {self.name} agent stopped answering while it worked."
                raise RemoteAgentError(silent, is_temporary=error.is_temporary) from error
            raise

    async def _cancel(self, thread: RemoteThread, reader: StreamReader | None, context: RequestContext) -> None:
        async with asyncio.timeout(_CANCEL_SECONDS):
            task_id = thread.task_id or (await reader.task_id() if reader is not None else "")
            if task_id:
                client, call = await self._ready(context)
                await client.cancel_task(CancelTaskRequest(id=task_id), context=call)

    async def _check_may_send(
        self, client: Client | OwnTransport, message: Message, thread: RemoteThread, context: RequestContext
    ) -> None:
        """Raise if the agent may have received the message and would not recognize it."""
        if not isinstance(client, Client) and client.accepts_once:
            return
        if context.effects is not None and not thread.recorded:
            # The ledger knows whether an earlier process has sent it.
            thread.may_have_arrived = await context.effects.begin(message.message_id) is not None
            thread.recorded = True
        if thread.may_have_arrived:
            raise RemoteAgentError(
                f"The connection to the {self.name} agent was lost. The agent may have received the request, so it was "
                "not sent again."
            )

    def _opened(
        self,
        client: Client | OwnTransport,
        call: ClientCallContext,
        message: Message,
        task_id: str,
        last_seq: int | None,
    ) -> AsyncIterator[StreamResponse]:
        """The stream of the message, or its rest after event `last_seq`."""
        if last_seq is not None:
            request = SubscribeToTaskRequest(id=task_id)
            headers = {**(call.service_parameters or {}), "Last-Event-ID": str(last_seq)}
            return client.subscribe(request, context=ClientCallContext(service_parameters=headers))
        self._delegations.sign(message)  # again for every attempt: a signature expires
        if isinstance(client, Client):
            return client.send_message(SendMessageRequest(message=message), context=call)
        return client.send_message_streaming(SendMessageRequest(message=message), context=call)

    def _reconnects_after(self, error: Exception, reconnection: Reconnection) -> bool:
        """Whether to try again after an error. The next attempt pauses first."""
        started = reconnection.last_seq is not None
        temporary = error.is_temporary if isinstance(error, RemoteAgentError) else is_temporary(error, started=started)
        if not (temporary and self._reconnect_seconds):
            return False
        is_first = reconnection.lost(self._gone_since)
        self._gone_since = self._gone_since or time.monotonic()
        if reconnection.is_over:
            return False
        if is_first:
            logger.warning(
                "%s: the connection was lost (%s); reconnecting for %g s",
                self.name,
                reason_of(error),
                self._reconnect_seconds,
            )
        return True

    async def _headers(self, context: RequestContext | None) -> dict[str, str]:
        try:
            token = await self._bearer.token(self.name, context.auth_token if context else None)
        except AccessTokenError as error:
            raise RemoteAgentError(f"The {self.name} agent cannot be asked: {error}") from error
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if self._needs_user_token and context and context.callers_token:
            headers[USER_TOKEN_HEADER] = context.callers_token
        return headers

    def _unreachable(self, reason: str, *, is_temporary: bool = False) -> RemoteAgentError:
        return RemoteAgentError(
            f"The {self.name} agent cannot be reached ({reason}). Other agents are not affected.",
            is_temporary=is_temporary,
        )

    def _at_another_origin(self, url: str) -> RemoteAgentError:
        """Requests and credentials are sent to no other server than the operator has chosen."""
        variable = f"{self.name.upper().replace('-', '_')}_AGENT_URL"
        return RemoteAgentError(
            f"The {self.name} agent cannot be asked: its card names {_shown_origin(url)}, which is not the configured "
            f"address. Set {variable} to that address, correct the card (A2A_PUBLIC_URL at the agent), or add the "
            "address to AGENT_ALLOWED_ORIGINS."
        )

    def _call_error(self, error: Exception, thread: RemoteThread, *, started: bool) -> RemoteAgentError:
        if isinstance(error, RemoteAgentError) and not (started and error.is_temporary):
            return error
        reason = f"{type(error).__name__}: {error}" if isinstance(error, A2AError) else reason_of(error)
        logger.warning("%s: the call failed: %s", self.name, reason)
        if started and isinstance(error, TaskNotFoundError):
            return RemoteAgentError(f"The {self.name} agent was restarted and no longer has this work.")
        if started and not isinstance(error, A2AError):
            return RemoteAgentError(f"The connection to the {self.name} agent was lost while it worked.")
        if thread.turn > 1 and isinstance(error, TaskNotFoundError | UnsupportedOperationError):
            return RemoteAgentError(
                f"The {self.name} agent no longer waits for this answer. Start the work again with a new request.",
                "agent",
            )
        if isinstance(error, A2AError):
            status = http_status_of(error)
            reason = f" ({_status_reason(status)})" if status in _STATUS_REASONS else ""
            return RemoteAgentError(f"The {self.name} agent rejected the request{reason}.", "agent")
        return self._unreachable(reason_of(error))


def _message_metadata(agent: str, context: RequestContext) -> dict[str, Any]:
    """The metadata of a message to the agent. It sends text only if the supervisor's caller gets it."""
    metadata: dict[str, Any] = {
        "trace_id": context.trace_id,
        "stream_text": context.stream_sub_agent_text,
        "delegated": True,
    }
    principal = context.caller.facts() if context.caller != ANONYMOUS else None
    optional = {
        "user": context.user,
        PRINCIPAL: principal,
        POLICY: context.policy.for_agent(agent) if context.policy is not None else None,
        ALLOWANCE: context.usage.allowance() if context.usage is not None else None,
        "approvals": [*map(dict, context.approvals)],
        APPROVAL: context.approval,
        "step": context.step,
        TAINT: context.taint,
    }
    metadata |= {name: value for name, value in optional.items() if value}
    # An empty list means that the agent must use no skills, also none of its own catalog.
    return metadata if context.skills is None else {**metadata, SKILLS: context.skills}


def _own_transport_url(card: AgentCard) -> str | None:
    """The URL for `OwnTransport`; None if the agent is not one of ours or does not offer JSON-RPC of protocol 1.0."""
    interfaces = {(each.protocol_binding, each.protocol_version): each.url for each in card.supported_interfaces}
    return interfaces.get((TransportProtocol.JSONRPC, PROTOCOL_VERSION_1_0)) if can_resume(card) else None


def _is_ours(client: Client | OwnTransport | None) -> bool:
    return client is not None and not isinstance(client, Client)


def _seq_in(response: StreamResponse) -> int | None:
    """The number of an update, or of the last one that a task contains; None if it has none."""
    match response.WhichOneof("payload"):
        case "status_update":
            return seq_of(response.status_update)
        case "artifact_update":
            return seq_of(response.artifact_update)
        case _:
            value = response.task.metadata.fields.get("seq")
            return None if value is None else int(value.number_value)


def _status_reason(status: int) -> str:
    return f"HTTP {status}" + (f", {_STATUS_REASONS[status]}" if status in _STATUS_REASONS else "")


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
