"""Sends one push notification to its receiver. Neither the URL nor the credentials of the receiver are logged."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Final, Literal
from urllib.parse import urlsplit

import httpx
from a2a.types.a2a_pb2 import TaskPushNotificationConfig
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToDict

from ai_platform_engineering.settings import Settings, SettingsError, wrong_value
from ai_platform_engineering.storage.event_log.event_log import Entry
from ai_platform_engineering.utils.connections import CLIENT_LIMITS, reason_of
from ai_platform_engineering.utils.outbound.addresses import Resolve, literal, resolve
from ai_platform_engineering.utils.outbound.policy import OutboundPolicy, host_patterns
from ai_platform_engineering.utils.outbound.transport import CheckedTransport

logger = logging.getLogger(__name__)

DELIVERY_SECONDS: Final = 10
_MAX_BODY: Final = 64 * 1024
_TRY_AGAIN_CODES: Final = frozenset({408, 425, 429})

Result = Literal["delivered", "rejected", "unavailable"]
"""A rejected notification would be rejected again. One whose receiver was unavailable may be sent again."""


class PushSender:
    """Connects to addresses that `policy` allows only. Redirects are not followed."""

    def __init__(self, policy: OutboundPolicy, resolve: Resolve = resolve) -> None:
        self._policy = policy
        self._resolve = resolve
        self._client: httpx.AsyncClient | None = None

    async def check(self, url: str) -> None:
        """Raise `RefusedError` if notifications may not be sent to the URL. They are checked again when they are
        sent, because the addresses of a name may change."""
        try:
            receiver = httpx.URL(url)
        except (httpx.InvalidURL, ValueError):
            receiver = httpx.URL()
        self._policy.check_url(receiver)
        host = receiver.raw_host.decode("ascii")
        if literal(host) is None:
            self._policy.checked(host, await self._resolve(host), "https" if receiver.scheme == "https" else "http")

    async def send(self, config: TaskPushNotificationConfig, entry: Entry) -> Result:
        task_id, status = config.task_id, 0
        body = MessageToDict(to_stream_response(entry.event))
        try:
            host = urlsplit(config.url).hostname
            async with (
                asyncio.timeout(DELIVERY_SECONDS),
                self._http().stream("POST", config.url, json=body, headers=_headers(config)) as response,
            ):
                status = response.status_code
                await _drain(response)
        except (TimeoutError, httpx.HTTPError) as error:
            if not status:
                logger.info("A push notification for task %s did not reach %s: %s", task_id, host, _reason(error))
                return "unavailable"
        except (httpx.InvalidURL, ValueError):
            logger.info("A push notification for task %s was not sent: its URL or token is invalid", task_id)
            return "rejected"
        if httpx.codes.is_success(status):
            return "delivered"
        logger.info("%s refused a push notification for task %s: HTTP %d", host, task_id, status)
        is_temporary = httpx.codes.is_server_error(status) or status in _TRY_AGAIN_CODES
        return "unavailable" if is_temporary else "rejected"

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _http(self) -> httpx.AsyncClient:
        if self._client is None:
            transport = CheckedTransport(self._policy, self._resolve, limits=CLIENT_LIMITS)
            self._client = httpx.AsyncClient(transport=transport, timeout=DELIVERY_SECONDS, follow_redirects=False)
        return self._client


def push_policy(settings: Settings) -> OutboundPolicy:
    return OutboundPolicy(
        variables="PUSH",
        allow_private=settings.push_allow_private,
        allow_http=settings.push_allow_http,
        allowed_hosts=host_patterns(settings.push_allowed_hosts.split(","), "PUSH_ALLOWED_HOSTS"),
        allowed_ports=_ports(settings.push_allowed_ports),
    )


def _ports(text: str) -> frozenset[int]:
    given = [port.strip() for port in text.split(",") if port.strip()]
    for port in given:
        if not re.fullmatch("[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
            allowed = "port numbers from 1 to 65535, comma-separated"
            raise SettingsError(wrong_value("PUSH_ALLOWED_PORTS", port, allowed))
    return frozenset(map(int, given))


async def _drain(response: httpx.Response) -> None:
    """Read a short body, so that the connection can be used again. A long one is cut off with its connection."""
    size = 0
    async for chunk in response.aiter_raw():
        size += len(chunk)
        if size > _MAX_BODY:
            return


def _reason(error: Exception) -> str:
    return f"no answer within {DELIVERY_SECONDS} s" if isinstance(error, TimeoutError) else reason_of(error)


def _headers(config: TaskPushNotificationConfig) -> dict[str, str]:
    headers = {"X-A2A-Notification-Token": config.token} if config.token else {}
    scheme, credentials = config.authentication.scheme, config.authentication.credentials
    return {**headers, "Authorization": f"{scheme} {credentials}"} if scheme and credentials else headers
