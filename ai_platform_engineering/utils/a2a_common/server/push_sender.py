"""Sends one push notification to its receiver. Neither the URL nor the credentials of the receiver are logged."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, Literal
from urllib.parse import urlsplit

import httpx
from a2a.types.a2a_pb2 import TaskPushNotificationConfig
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToDict

from ai_platform_engineering.storage.event_log.event_log import Entry
from ai_platform_engineering.utils.connections import reason_of

logger = logging.getLogger(__name__)

DELIVERY_SECONDS: Final = 10
_TRY_AGAIN_CODES: Final = frozenset({408, 425, 429})

Result = Literal["delivered", "rejected", "unavailable"]
"""A rejected notification would be rejected again. One whose receiver was unavailable may be sent again."""


class PushSender:
    """`is_allowed` decides about the URL before every request, because the address of its host may change."""

    def __init__(self, is_allowed: Callable[[str], Awaitable[bool]] | None) -> None:
        self._is_allowed = is_allowed
        self._client: httpx.AsyncClient | None = None

    async def send(self, config: TaskPushNotificationConfig, entry: Entry) -> Result:
        task_id = config.task_id
        if self._is_allowed is not None and not await self._is_allowed(config.url):
            logger.info("A push notification for task %s was not sent: its host is not public, or unknown", task_id)
            return "unavailable"
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=DELIVERY_SECONDS)
        body = MessageToDict(to_stream_response(entry.event))
        try:
            host = urlsplit(config.url).hostname
            response = await self._client.post(config.url, json=body, headers=_headers(config))
        except httpx.HTTPError as error:
            logger.info("A push notification for task %s did not reach %s: %s", task_id, host, reason_of(error))
            return "unavailable"
        except (httpx.InvalidURL, ValueError):
            logger.info("A push notification for task %s was not sent: its URL or token is invalid", task_id)
            return "rejected"
        if response.is_success:
            return "delivered"
        logger.info("%s refused a push notification for task %s: HTTP %d", host, task_id, response.status_code)
        is_temporary = response.is_server_error or response.status_code in _TRY_AGAIN_CODES
        return "unavailable" if is_temporary else "rejected"

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None


def _headers(config: TaskPushNotificationConfig) -> dict[str, str]:
    headers = {"X-A2A-Notification-Token": config.token} if config.token else {}
    scheme, credentials = config.authentication.scheme, config.authentication.credentials
    return {**headers, "Authorization": f"{scheme} {credentials}"} if scheme and credentials else headers
