"""Requests for pages. Redirects are followed here, one by one, so that each is judged like a first address."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Final, Self

import httpx

from ai_platform_engineering.knowledge_bases.rag.web.bodies import (
    ACCEPT_ENCODING,
    PackedError,
    TooLargeError,
    read_body,
)
from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
from ai_platform_engineering.knowledge_bases.rag.web.transport import FetchError, JudgedTransport
from ai_platform_engineering.knowledge_bases.rag.web.urls import AddressError, page_url, shown
from ai_platform_engineering.utils.connections import reason_of
from ai_platform_engineering.version import product_version

PRODUCT: Final = "platform-engineer"
MAX_REDIRECTS: Final = 5
_HEADERS: Final = {
    "User-Agent": f"{PRODUCT}/{product_version()}",
    "Accept": "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,application/pdf;q=0.8,*/*;q=0.1",
    "Accept-Encoding": ACCEPT_ENCODING,
}
# What a page calls its state, as (name in a revision, header of the answer, header that asks whether it changed).
_VALIDATORS: Final = (("etag", "etag", "If-None-Match"), ("modified", "last-modified", "If-Modified-Since"))


@dataclass(frozen=True, slots=True)
class Page:
    """`url` is where it was found in the end, `media_type` the Content-Type header as it came."""

    url: str
    content: bytes
    media_type: str | None = None
    revision: str | None = None
    updated: datetime | None = None


@dataclass(frozen=True, slots=True)
class NotModified:
    """The page is as it was at the revision that was named."""


@dataclass(frozen=True, slots=True)
class Gone:
    """There is no such page."""


class WebClient:
    """One for each job: what a host was found to be is not carried from one job to the next."""

    def __init__(self, policy: WebPolicy, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.policy = policy
        self._client = httpx.AsyncClient(
            transport=transport or JudgedTransport(policy),
            headers=_HEADERS,
            timeout=policy.timeout,
            trust_env=False,
            follow_redirects=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def fetch(
        self, url: str, revision: str | None = None, *, max_bytes: int | None = None
    ) -> Page | NotModified | Gone:
        """Asks for a page; `revision` is that of a page which was read before."""
        asked = _checked(url)
        try:
            async with asyncio.timeout(self.policy.timeout):
                return await self._follow(asked, revision, max_bytes or self.policy.max_bytes)
        except (TimeoutError, httpx.TimeoutException):
            raise FetchError(
                f"{shown(asked)} was not read: it took longer than {self.policy.timeout:g} seconds, "
                "which is FETCH_URL_TIMEOUT."
            ) from None
        except httpx.HTTPError as error:
            raise FetchError(f"{shown(asked)} could not be read: {reason_of(error)}.") from error

    async def _follow(self, asked: httpx.URL, revision: str | None, most: int) -> Page | NotModified | Gone:
        url = asked
        for _ in range(MAX_REDIRECTS + 1):
            async with self._client.stream("GET", url, headers=_condition(revision)) as response:
                if not response.has_redirect_location:
                    return await _answer(url, response, revision, most)
                url = _checked(response.headers["location"], redirected_from=url)
        raise FetchError(f"{shown(asked)} was not read: it redirects more than {MAX_REDIRECTS} times.")


async def _answer(
    url: httpx.URL, response: httpx.Response, revision: str | None, most: int
) -> Page | NotModified | Gone:
    match response.status_code:
        case 200 | 203:
            return await _page(url, response, most)
        case 304 if revision is not None:
            return NotModified()
        case 404 | 410:
            return Gone()
        case 401 | 403 as status:
            sentence = f"{shown(url)} was not read: the server does not let everybody read it ({status})."
            raise FetchError(sentence, status=status)
        case 429 | 503 as status:
            sentence = f"{shown(url)} was not read: the server is busy ({status}). Try again later."
            raise FetchError(sentence, status=status, retry_after=_seconds(response.headers.get("retry-after")))
        case status:
            answered = f"{status} {response.reason_phrase}".strip()
            raise FetchError(f"{shown(url)} was not read: the server answered {answered}.", status=status)


async def _page(url: httpx.URL, response: httpx.Response, most: int) -> Page:
    try:
        content = await read_body(response, most)
    except TooLargeError:
        raise FetchError(f"{shown(url)} was not read: it is larger than {most} bytes (FETCH_URL_MAX_BYTES).") from None
    except PackedError as error:
        raise FetchError(f"{shown(url)} was not read: its content is packed and cannot be unpacked: {error}.") from None
    return Page(
        url=str(url),
        content=content,
        media_type=response.headers.get("content-type"),
        revision=_revision(response.headers),
        updated=_time(response.headers.get("last-modified")),
    )


def _checked(url: str, redirected_from: httpx.URL | None = None) -> httpx.URL:
    try:
        return page_url(url, None if redirected_from is None else str(redirected_from))
    except AddressError as error:
        origin = "" if redirected_from is None else f"{shown(redirected_from)} redirects to somewhere else: "
        raise FetchError(f"{origin}{error}") from None


def _revision(headers: Mapping[str, str]) -> str | None:
    return next((f"{name} {headers[header]}" for name, header, _ in _VALIDATORS if headers.get(header)), None)


def _condition(revision: str | None) -> dict[str, str]:
    name, _, value = (revision or "").partition(" ")
    usable = value and value.isascii() and value.isprintable()
    return {condition: value for known, _, condition in _VALIDATORS if known == name and usable}


def _time(header: str | None) -> datetime | None:
    try:
        time = parsedate_to_datetime(header or "")
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _seconds(header: str | None) -> float | None:
    """Retry-After, which is a number of seconds or a time."""
    if header and header.strip().isdecimal():
        return float(header)
    time = _time(header)
    return None if time is None else max(0.0, (time - datetime.now(UTC)).total_seconds())
