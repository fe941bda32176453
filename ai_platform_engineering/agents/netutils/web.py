"""The check of a web address: one request, up to three redirects, and the beginning of the response.

Every redirect resolves its host and checks its addresses again, so that a redirect cannot lead to an address that may
not be requested directly.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import dataclass
from typing import Any

import httpx

from ai_platform_engineering.agents.netutils.targets import Limits
from ai_platform_engineering.mcp.tool_server import ToolError
from ai_platform_engineering.utils.outbound.policy import RefusedError
from ai_platform_engineering.utils.outbound.transport import CheckedTransport

MAX_REDIRECTS = 3
SNIPPET_BYTES = 2048
SNIPPET_CHARACTERS = 300
_HEADERS = {"User-Agent": "platform-engineer", "Accept-Encoding": "identity"}
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/problem+json")


@dataclass(frozen=True)
class ResponseSummary:
    status: int
    reason: str
    location: str | None
    content_type: str | None
    length: str | None
    server: str | None
    snippet: str | None


async def check(url: str, limits: Limits) -> dict[str, Any]:
    """Request a web address, follow redirects, and describe the response."""
    current = _parse(url)
    redirects: list[str] = []
    began = time.monotonic()
    transport = CheckedTransport(limits.policy, limits.resolve, tls=ssl.create_default_context)
    async with httpx.AsyncClient(
        transport=transport, headers=_HEADERS, timeout=limits.timeout, follow_redirects=False
    ) as client:
        while (answer := await _request(current, client, limits.timeout)).location is not None:
            if len(redirects) == MAX_REDIRECTS:
                raise ToolError(
                    f"{url} redirects more than {MAX_REDIRECTS} times, the last time to {answer.location[:200]}."
                )
            current = _parse(str(current.join(answer.location)))
            redirects.append(str(current))
    details = {
        "url": str(current),
        "status": answer.status,
        "reason": answer.reason or None,
        "milliseconds": round((time.monotonic() - began) * 1000),
        "redirects": redirects or None,
        "content_type": answer.content_type,
        "length": answer.length,
        "server": answer.server,
        "snippet": answer.snippet,
    }
    return {key: value for key, value in details.items() if value is not None}


async def _request(url: httpx.URL, client: httpx.AsyncClient, timeout: float) -> ResponseSummary:
    try:
        async with asyncio.timeout(timeout), client.stream("GET", url) as response:
            return await _read(response)
    except RefusedError as error:
        raise ToolError(str(error)) from None
    except httpx.ConnectError as error:
        raise ToolError(f"{url} could not be reached: {error}.") from error
    except (TimeoutError, httpx.TimeoutException):
        raise ToolError(f"{url} did not answer within {timeout:g} seconds.") from None
    except httpx.HTTPError as error:
        raise ToolError(f"{url} could not be fetched: {str(error) or type(error).__name__}.") from error


async def _read(response: httpx.Response) -> ResponseSummary:
    headers = response.headers
    location = headers["location"] if response.has_redirect_location else None
    is_text = headers.get("content-type", "").startswith(_TEXT_TYPES) and "content-encoding" not in headers
    return ResponseSummary(
        status=response.status_code,
        reason=response.reason_phrase,
        location=location,
        content_type=headers.get("content-type"),
        length=headers.get("content-length"),
        server=headers.get("server"),
        snippet=await _snippet(response) if is_text and location is None else None,
    )


async def _snippet(response: httpx.Response) -> str | None:
    """The beginning of a text, on one line."""
    body = b""
    async for chunk in response.aiter_raw(SNIPPET_BYTES):
        body += chunk
        if len(body) >= SNIPPET_BYTES:
            break
    try:
        text = body[:SNIPPET_BYTES].decode(response.charset_encoding or "utf-8", errors="ignore")
    except LookupError:
        text = body[:SNIPPET_BYTES].decode("utf-8", errors="ignore")
    return " ".join(text.split())[:SNIPPET_CHARACTERS] or None


def _parse(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, ValueError):
        raise ToolError(f"{text!r} is not a web address. Give one such as https://www.example.com/.") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ToolError(f"{text!r} cannot be checked: only addresses with http:// or https:// can.")
    if url.userinfo:
        raise ToolError("A web address with a user name or a password is not allowed. Leave them out.")
    if url.port is not None and not 1 <= url.port <= 65535:
        raise ToolError(f"{url.port} is not a port. Ports go from 1 to 65535.")
    return url
