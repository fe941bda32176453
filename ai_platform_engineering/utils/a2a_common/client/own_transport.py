"""The transport for streams of our own agents: aiohttp and a direct parser take a third of the SDK's CPU time.

All other requests use the SDK's transport.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import aiohttp
import httpx
from a2a.client import ClientCallContext
from a2a.client.errors import A2AClientError
from a2a.client.transports.jsonrpc import JsonRpcTransport
from a2a.types.a2a_pb2 import AgentCard, SendMessageRequest, StreamResponse, SubscribeToTaskRequest
from a2a.utils.constants import PROTOCOL_VERSION_1_0, VERSION_HEADER
from aiohttp.abc import AbstractResolver, ResolveResult
from google.protobuf.json_format import ParseError
from pydantic_core import from_json, to_json

from ai_platform_engineering.compat.a2a_client import raise_error_in
from ai_platform_engineering.utils.a2a_common.codec.event_json import message_1_0
from ai_platform_engineering.utils.a2a_common.codec.stream_json import read_item
from ai_platform_engineering.utils.a2a_common.protocol import accepts_once
from ai_platform_engineering.utils.outbound.addresses import Resolve, resolve
from ai_platform_engineering.utils.outbound.policy import OPERATOR
from ai_platform_engineering.utils.outbound.transport import proxy_for

_EVENT_STREAM: Final = "text/event-stream"
_HEADERS: Final = {"Content-Type": "application/json", "Accept": _EVENT_STREAM, VERSION_HEADER: PROTOCOL_VERSION_1_0}
_DATA: Final = b"data:"
# Shorter than the agents' keep-alive (`serving.KEEP_ALIVE_SECONDS`), or a request races with the close.
_KEEP_ALIVE_SECONDS: Final = 60.0


def new_session(url: str, connect_timeout: float) -> aiohttp.ClientSession:
    """A session without a connection limit or read timeout: streams are many, and may be idle for long."""
    # The certificates that httpx trusts.
    trusted = httpx.create_ssl_context() if url.startswith("https:") else True
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS, ssl=trusted, resolver=CheckedResolver()
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(sock_connect=connect_timeout),
    )


class CheckedResolver(AbstractResolver):
    """Finds the addresses of a name that the policy for configured addresses allows; aiohttp connects to one."""

    def __init__(self, resolve: Resolve = resolve) -> None:
        self._resolve = resolve

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET if address.version == 4 else socket.AF_INET6,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in OPERATOR.checked(host, await self._resolve(host))
        ]

    async def close(self) -> None:
        """Nothing is open."""


class HttpStatusError(A2AClientError):
    """The agent's server responded with an HTTP error status."""

    def __init__(self, status_code: int) -> None:
        super().__init__(f"HTTP {status_code}")
        self.status_code = status_code


class OwnTransport(JsonRpcTransport):
    """JSON-RPC of protocol 1.0, with streams read by aiohttp."""

    def __init__(self, session: aiohttp.ClientSession, http: httpx.AsyncClient, card: AgentCard, url: str) -> None:
        super().__init__(http, card, url, is_shared_httpx=True)
        self._session = session
        self._proxy = proxy_for(url)

    @property
    def accepts_once(self) -> bool:
        """Whether a message can be sent again without starting its work twice."""
        return accepts_once(self.agent_card)

    def send_message_streaming(
        self, request: SendMessageRequest, *, context: ClientCallContext | None = None
    ) -> AsyncGenerator[StreamResponse]:
        return self._streamed("SendStreamingMessage", {"message": message_1_0(request.message)}, context)

    def subscribe(
        self, request: SubscribeToTaskRequest, *, context: ClientCallContext | None = None
    ) -> AsyncGenerator[StreamResponse]:
        return self._streamed("SubscribeToTask", {"id": request.id}, context)

    async def _streamed(
        self, method: str, params: Mapping[str, Any], context: ClientCallContext | None
    ) -> AsyncGenerator[StreamResponse]:
        call = {"jsonrpc": "2.0", "id": uuid.uuid4().hex, "method": method, "params": params}
        headers = _HEADERS | ((context.service_parameters if context else None) or {})
        with _errors_of_httpx():
            async with self._session.post(
                self.url, data=to_json(call), headers=headers, proxy=self._proxy, allow_redirects=False
            ) as response:
                if response.status != httpx.codes.OK:
                    raise HttpStatusError(response.status)
                if response.content_type != _EVENT_STREAM:
                    self._item(await response.read())
                    raise A2AClientError("The answer is not a stream")
                async for data in _frames(response.content):
                    yield self._item(data)

    def _item(self, data: bytes) -> StreamResponse:
        try:
            match from_json(data):
                case {"result": dict(item)}:
                    return read_item(item)
                case other:
                    raise_error_in(other, self)
                    raise A2AClientError("An answer without a result")
        except (ValueError, TypeError, AttributeError, ParseError) as error:
            raise A2AClientError(f"An answer that cannot be read: {error}") from error


async def _frames(content: aiohttp.StreamReader) -> AsyncGenerator[bytes]:
    """The data of each SSE frame. A blank line ends a frame."""
    rest, data = b"", b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(_DATA):
                data += line.removeprefix(_DATA)
            elif data and not line.strip():
                yield data
                data = b""


@contextmanager
def _errors_of_httpx() -> Iterator[None]:
    """Raise the errors of aiohttp as those of httpx, which the rest of the product handles."""
    try:
        yield
    except aiohttp.ConnectionTimeoutError as error:
        raise httpx.ConnectTimeout(str(error)) from error
    except aiohttp.ClientConnectorError as error:
        raise httpx.ConnectError(str(error)) from error
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
        raise httpx.ReadError(str(error)) from error
    except aiohttp.ClientError as error:
        raise httpx.RemoteProtocolError(str(error)) from error
