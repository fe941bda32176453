"""An MCP server over streamable HTTP: every message is a POST, with JSON or an event stream as the response.

Every request gets exactly one response: the server's, or a failure that states whether the server may have received
the request. A failed request does not affect the others.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NoReturn

import anyio
import httpx
from anyio.abc import TaskGroup
from httpx_sse import EventSource, SSEError
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId
from pydantic import ValidationError

from ai_platform_engineering.mcp.connection import (
    ConnectionState,
    Inbox,
    InFlightCall,
    Outbox,
    Streams,
    deliver,
    failure_response,
)
from ai_platform_engineering.mcp.errors import (
    CredentialsRefused,
    NotSent,
    NotStartable,
    RequestRefused,
    ResultLost,
    ServerFailure,
)
from ai_platform_engineering.mcp.expansion import Endpoint
from ai_platform_engineering.utils.access_tokens import AccessTokenError
from ai_platform_engineering.utils.connections import CLIENT_LIMITS, reason_of
from ai_platform_engineering.utils.outbound.policy import OPERATOR
from ai_platform_engineering.utils.outbound.transport import CheckedTransport

logger = logging.getLogger(__name__)

# No read timeout: a tool may take long, and its caller has a timeout.
_TIMEOUT: Final = httpx.Timeout(None, connect=5.0, write=30.0)
_SESSION_ID: Final = "mcp-session-id"
_PROTOCOL_VERSION: Final = "mcp-protocol-version"
_CLOSE_TIMEOUT: Final = 2.0
_DRAIN_TIMEOUT: Final = 0.5
_RECONNECT_DELAY: Final = 1.0
_END_GRACE: Final = 1.0
"""Seconds for the requests in flight to get their own result after the session has ended."""
_RESUME_ATTEMPTS: Final = 3
_NO_ANSWER: Final = "closed the connection without an answer"
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


@dataclass(slots=True)
class _StreamPosition:
    """The position in the event stream of one request, for resuming it."""

    request_id: RequestId | None = None
    answered: bool = False
    last_event_id: str = ""
    delay: float = _RECONNECT_DELAY


class HttpChannel:
    """Sends the session's messages to the server and delivers the server's messages to the session."""

    def __init__(
        self, client: httpx.AsyncClient, tasks: TaskGroup, url: httpx.URL, inbox: Inbox, state: ConnectionState
    ) -> None:
        self._client = client
        # Tasks of anyio: httpx leaks connections when plain asyncio tasks are cancelled.
        self._tasks = tasks
        self._url = url
        self._inbox = inbox
        self._state = state
        self._session_id: str | None = None
        self._protocol_version: str | None = None
        self._unusable = False
        self._requests: dict[RequestId, anyio.CancelScope] = {}

    async def send_all(self, outbox: Outbox) -> None:
        async for item in outbox:
            match item.message.root:
                case JSONRPCRequest() as request:
                    call = item.metadata if isinstance(item.metadata, InFlightCall) else None
                    if call is not None:
                        call.sent(request.id)
                    self._tasks.start_soon(self._request, request, call)
                case JSONRPCNotification(method="notifications/initialized"):
                    # Servers refuse requests that arrive before this notification.
                    await self._notify(item.message)
                    if self._session_id is not None:
                        self._tasks.start_soon(self._listen)
                case JSONRPCNotification(method="notifications/cancelled", params=params):
                    self._tasks.start_soon(self._notify, item.message)
                    if params is not None and (cancelled := self._requests.get(params.get("requestId", ""))):
                        cancelled.cancel()
                case _:
                    self._tasks.start_soon(self._notify, item.message)

    async def end_session(self) -> None:
        """Delete the session at the server, if the server is reachable and knows it."""
        if self._session_id is not None and not self._unusable:
            with anyio.move_on_after(_CLOSE_TIMEOUT), suppress(httpx.HTTPError):
                await self._client.delete(self._url, headers=self._headers())

    async def _request(self, request: JSONRPCRequest, call: InFlightCall | None) -> None:
        try:
            with anyio.CancelScope() as self._requests[request.id]:
                await self._post_request(request, call.headers if call is not None else {})
        except (NotSent, *_NOT_SENT) as error:
            if call is not None:
                call.at_server = False
            not_sent = error if isinstance(error, NotSent) else NotSent(self._unreachable(error))
            deliver(self._inbox, failure_response(request, not_sent))
        except ServerFailure as error:
            deliver(self._inbox, failure_response(request, error))
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, SSEError) as error:
            logger.debug("A request to %s failed: %s", _host(self._url), type(error).__name__)
            deliver(self._inbox, failure_response(request, ResultLost("broke off the connection")))
        finally:
            self._requests.pop(request.id, None)

    async def _post_request(self, request: JSONRPCRequest, users_headers: Mapping[str, str]) -> None:
        async with self._post(JSONRPCMessage(request), users_headers) as response:
            await self._check(response, of_user=bool(users_headers))
            if request.method == "initialize":
                self._session_id = response.headers.get(_SESSION_ID)
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "text/event-stream":
                position = _StreamPosition(request.id)
                await self._read(response, position)
            elif kind == "application/json":
                await response.aread()
                position = _StreamPosition(request.id)
                self._receive(response.text, position)
            else:
                raise ResultLost(f"answered with {kind or 'no content type'} instead of JSON or events")
        for _ in range(_RESUME_ATTEMPTS):
            if position.answered or not position.last_event_id:
                break
            await self._resume(position, users_headers)
        if not position.answered:
            raise ResultLost(_NO_ANSWER)

    async def _resume(self, position: _StreamPosition, users_headers: Mapping[str, str]) -> None:
        """Resume the interrupted stream of a request, if the server is reachable and stores its events."""
        await anyio.sleep(position.delay)
        headers = self._headers(users_headers) | {
            "accept": "text/event-stream",
            "last-event-id": position.last_event_id,
        }
        try:
            async with self._client.stream("GET", self._url, headers=headers) as response:
                if not response.is_success:
                    raise ResultLost(_NO_ANSWER)
                await self._read(response, position)
        except _NOT_SENT as error:
            self._unreachable(error)
            raise ResultLost(_NO_ANSWER) from None

    async def _notify(self, message: JSONRPCMessage) -> None:
        try:
            async with self._post(message) as response:
                await self._check(response)
        except (ServerFailure, httpx.HTTPError, httpx.InvalidURL) as error:
            logger.debug("A notification to %s failed: %s", _host(self._url), type(error).__name__)

    async def _listen(self) -> None:
        """Read the stream of the server's own messages, as long as the server offers one."""
        position = _StreamPosition()
        while True:
            headers = self._headers() | {"accept": "text/event-stream"}
            if position.last_event_id:
                headers["last-event-id"] = position.last_event_id
            try:
                async with self._client.stream("GET", self._url, headers=headers) as response:
                    await self._check(response)
                    await self._read(response, position)
            except ServerFailure:
                return
            except _NOT_SENT as error:
                self._unreachable(error)
                return
            except SSEError:
                return
            except (httpx.HTTPError, httpx.StreamError):
                logger.debug("The event stream of %s was interrupted", _host(self._url))
            await anyio.sleep(position.delay)

    async def _read(self, response: httpx.Response, position: _StreamPosition) -> None:
        events = EventSource(response).aiter_sse()
        try:
            async for event in events:
                position.last_event_id = event.id or position.last_event_id
                if event.retry is not None:
                    position.delay = event.retry / 1000
                if event.event == "message" and event.data:
                    self._receive(event.data, position)
                if position.answered:
                    break
            # A connection is reused only if its response was read to the end.
            with anyio.move_on_after(_DRAIN_TIMEOUT):
                async for _ in events:
                    pass
        except httpx.TransportError:
            if not position.answered and not position.last_event_id:
                raise

    def _receive(self, text: str, position: _StreamPosition) -> None:
        try:
            message = JSONRPCMessage.model_validate_json(text)
        except ValidationError:
            logger.debug("%s sent data that is not an MCP message", _host(self._url))
            return
        root = message.root
        if isinstance(root, JSONRPCResponse) and self._protocol_version is None:
            self._protocol_version = root.result.get("protocolVersion")
        if isinstance(root, JSONRPCResponse | JSONRPCError) and str(root.id) == str(position.request_id):
            position.answered = True
        deliver(self._inbox, SessionMessage(message))

    @asynccontextmanager
    async def _post(
        self, message: JSONRPCMessage, users_headers: Mapping[str, str] = MappingProxyType({})
    ) -> AsyncIterator[httpx.Response]:
        content = message.model_dump_json(by_alias=True, exclude_none=True)
        headers = self._headers(users_headers) | {"accept": "application/json, text/event-stream"}
        headers["content-type"] = "application/json"
        request = self._client.build_request("POST", self._url, content=content, headers=headers)
        response = await self._client.send(request, stream=True)
        if response.status_code in {307, 308} and (target := _same_origin(response)):
            await response.aclose()
            self._url = target
            request = self._client.build_request("POST", target, content=content, headers=headers)
            response = await self._client.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()

    async def _check(self, response: httpx.Response, *, of_user: bool = False) -> None:
        """Raise an error unless the server accepted the message."""
        status = response.status_code
        if response.is_success:
            return
        if status == 404 and self._session_id is not None:
            self._session_is_unknown()
        if status == 400 and self._session_id is not None:
            # Many servers send 400 instead of 404 for an unknown session.
            await response.aread()
            if "session" in response.text.lower():
                self._session_is_unknown()
        answer = f"HTTP {status} {httpx.codes.get_reason_phrase(status)}".rstrip()
        match status:
            case 401 | 403:
                raise CredentialsRefused(answer, of_user=of_user)
            case _ if response.is_redirect:
                raise RequestRefused(f"answered with a redirect ({answer}); put the final address into the manifest")
            case _ if response.is_client_error:
                raise RequestRefused(f"answered {answer}")
            case _:
                raise ResultLost(f"answered {answer}")

    def _session_is_unknown(self) -> NoReturn:
        raise NotSent(self._end("no longer knows this session"))

    def _unreachable(self, error: Exception) -> str:
        if isinstance(error, AccessTokenError):
            return self._end(f"could not be contacted. {error}".rstrip("."))
        return self._end(f"could not be reached at {_host(self._url)} ({reason_of(error)})")

    def _end(self, reason: str) -> str:
        self._unusable = True
        self._state.end(reason, grace=_END_GRACE)
        return reason

    def _headers(self, users_headers: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
        headers = dict(users_headers)
        if self._session_id is not None:
            headers[_SESSION_ID] = self._session_id
        if self._protocol_version is not None:
            headers[_PROTOCOL_VERSION] = self._protocol_version
        return headers


@asynccontextmanager
async def http_streams(endpoint: Endpoint, state: ConnectionState) -> AsyncIterator[Streams]:
    """Streams to the server at the endpoint's address. Nothing is sent before the first message."""
    url = _address(endpoint)
    inbox, inbox_reader = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
    outbox_writer, outbox = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with _client(endpoint) as client:
            async with anyio.create_task_group() as tasks:
                channel = HttpChannel(client, tasks, url, inbox, state)
                tasks.start_soon(channel.send_all, outbox)
                try:
                    yield inbox_reader, outbox_writer
                finally:
                    tasks.cancel_scope.cancel()
            await channel.end_session()
    finally:
        for stream in (inbox, inbox_reader, outbox_writer, outbox):
            stream.close()


def _client(endpoint: Endpoint) -> httpx.AsyncClient:
    try:
        return httpx.AsyncClient(
            headers=dict(endpoint.headers or {}),
            auth=endpoint.auth,
            timeout=_TIMEOUT,
            transport=CheckedTransport(OPERATOR, limits=CLIENT_LIMITS),
        )
    except ValueError:
        raise NotStartable(
            "was not contacted because a header of its manifest has a value headers cannot have"
        ) from None


def _address(endpoint: Endpoint) -> httpx.URL:
    try:
        url = httpx.URL(endpoint.url)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in {"http", "https"} or not url.host:
        raise NotStartable("was not contacted because its 'url' is not an http or https address")
    return url


def _same_origin(response: httpx.Response) -> httpx.URL | None:
    """The target of a redirect within the same origin. Our headers must not go to another server."""
    origin = response.request.url
    target = origin.join(response.headers.get("location", ""))
    return target if (target.scheme, target.host, target.port) == (origin.scheme, origin.host, origin.port) else None


def _host(url: httpx.URL) -> str:
    """Host and port, without the parts of an address that may contain a credential."""
    return f"{url.host}:{url.port}" if url.port else url.host
