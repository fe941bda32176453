"""Slack calls the bot over HTTP: signed requests to its address."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import httpx

from tests.integrations.slack_bot.standin.deliveries import BotRequest, Reply


class HttpRoute:
    def __init__(self, url: str, signing_secret: str, client: httpx.AsyncClient) -> None:
        self._url = url
        self._secret = signing_secret
        self._client = client

    async def send(self, request: BotRequest) -> Reply:
        response = await self.post(*_body(request), headers=_retry_headers(request))
        try:
            payload = response.json() if response.content else None
        except ValueError:
            payload = {"text": response.text}
        return Reply(payload or None, response.status_code, "x-slack-no-retry" in response.headers)

    async def verify_url(self, challenge: str = "a-challenge") -> httpx.Response:
        """What Slack does once, when the address is set."""
        body = json.dumps({"token": "verification", "challenge": challenge, "type": "url_verification"})
        return await self.post(body, "application/json")

    async def post(
        self,
        body: str,
        content_type: str,
        *,
        headers: Mapping[str, str] | None = None,
        age: float = 0.0,
        secret: str | None = None,
        signature: str | None = None,
    ) -> httpx.Response:
        """A request with a good signature, unless it is to have another secret, age or signature."""
        # Bolt judges the age of a request by the time of day, whatever clock the test has.
        timestamp = str(int(time.time() - age))
        signed = {
            "content-type": content_type,
            "x-slack-request-timestamp": timestamp,
            "x-slack-signature": signature or sign(secret or self._secret, timestamp, body),
        }
        try:
            return await self._client.post(
                self._url, content=body.encode(), headers={**signed, **(headers or {})}, timeout=None
            )
        except httpx.TransportError as error:
            raise ConnectionError(str(error)) from error


def sign(secret: str, timestamp: str, body: str) -> str:
    digest = hmac.new(secret.encode(), f"v0:{timestamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return f"v0={digest}"


def _body(request: BotRequest) -> tuple[str, str]:
    """Each kind has a form of its own."""
    form = "application/x-www-form-urlencoded"
    payload: dict[str, Any] = request.payload
    match request.kind:
        case "events_api":
            return json.dumps(payload), "application/json"
        case "interactive":
            return urlencode({"payload": json.dumps(payload)}), form
        case "slash_commands":
            return urlencode(payload), form


def _retry_headers(request: BotRequest) -> dict[str, str]:
    if not request.retry_num:
        return {}
    return {"x-slack-retry-num": str(request.retry_num), "x-slack-retry-reason": request.retry_reason}
