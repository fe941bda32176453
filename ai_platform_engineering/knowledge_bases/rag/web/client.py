"""The HTTP client for web pages. It follows redirects itself, so that each address is checked like the first one."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Final, Self

import httpx

from ai_platform_engineering.installation import product_version
from ai_platform_engineering.knowledge_bases.rag.readers.reading import media_type_of
from ai_platform_engineering.knowledge_bases.rag.web.bodies import (
    ACCEPT_ENCODING,
    DecompressionError,
    TooLargeError,
    read_body,
)
from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
from ai_platform_engineering.knowledge_bases.rag.web.reader_pool import ReaderPool
from ai_platform_engineering.knowledge_bases.rag.web.urls import AddressError, page_url, shown
from ai_platform_engineering.utils.connections import reason_of
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.outbound.policy import RefusedError
from ai_platform_engineering.utils.outbound.transport import CheckedTransport

PRODUCT: Final = "platform-engineer"
MAX_REDIRECTS: Final = 5
_HEADERS: Final = {
    "User-Agent": f"{PRODUCT}/{product_version()}",
    "Accept": "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,application/pdf;q=0.8,*/*;q=0.1",
    "Accept-Encoding": ACCEPT_ENCODING,
}
# Validators of HTTP caching: (name in a revision, response header, conditional request header).
_VALIDATORS: Final = (("etag", "etag", "If-None-Match"), ("modified", "last-modified", "If-Modified-Since"))


class FetchError(ReadableError):
    """A page was not read: which one, why, and the way out.

    `status` is the HTTP status, if there is a response, and `retry_after` the seconds in its Retry-After header.
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class WebPage:
    """`url` is the address after redirects, `media_type` the Content-Type header."""

    url: str
    content: bytes
    media_type: str | None = None
    revision: str | None = None
    updated: datetime | None = None


@dataclass(frozen=True, slots=True)
class NotModified:
    """The page has not changed since the given revision."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The page does not exist."""


@dataclass(frozen=True, slots=True)
class PageText:
    """A page as Markdown. `url` is the address after redirects."""

    url: str
    title: str
    text: str
    updated: datetime | None = None


class WebClient:
    """Use one for each job: connections to resolved addresses are not reused by the next job."""

    def __init__(self, policy: WebPolicy, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.policy = policy
        self._client = httpx.AsyncClient(
            transport=transport or CheckedTransport(policy, tls=ssl.create_default_context),
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
    ) -> WebPage | NotModified | Gone:
        """`revision` is the one of the stored page. If it is still current, the result is `NotModified`."""
        requested = _checked(url)
        try:
            async with asyncio.timeout(self.policy.timeout):
                return await self._follow(requested, revision, max_bytes or self.policy.max_bytes)
        except (TimeoutError, httpx.TimeoutException):
            raise FetchError(
                f"{shown(requested)} was not read: it takes longer than {self.policy.timeout:g} seconds, "
                "which is FETCH_URL_TIMEOUT."
            ) from None
        except RefusedError as error:
            raise FetchError(str(error)) from None
        except httpx.HTTPError as error:
            raise FetchError(f"{shown(requested)} could not be read: {reason_of(error)}.") from error

    async def _follow(self, requested: httpx.URL, revision: str | None, max_bytes: int) -> WebPage | NotModified | Gone:
        url = requested
        for _ in range(MAX_REDIRECTS + 1):
            async with self._client.stream("GET", url, headers=_condition(revision)) as response:
                if not response.has_redirect_location:
                    return await _result(url, response, revision, max_bytes)
                url = _checked(response.headers["location"], redirected_from=url)
        raise FetchError(f"{shown(requested)} was not read: it redirects more than {MAX_REDIRECTS} times.")


async def read_page(client: WebClient, readers: ReaderPool, url: str) -> PageText:
    """Raises a `FetchError` if there is no page, an `UnreadableDocumentError` if it has no text."""
    page = await client.fetch(url)
    if not isinstance(page, WebPage):
        raise FetchError(f"There is no page at {shown(url)}. Check the address.")
    media_type = media_type_of(page.url, page.media_type) or page.media_type or "text/html"
    extracted = await readers.read(page.content, media_type, page.url, page.url)
    return PageText(page.url, extracted.title, extracted.text, page.updated)


async def _result(
    url: httpx.URL, response: httpx.Response, revision: str | None, max_bytes: int
) -> WebPage | NotModified | Gone:
    match response.status_code:
        case 200 | 203:
            return await _page(url, response, max_bytes)
        case 304 if revision is not None:
            return NotModified()
        case 404 | 410:
            return Gone()
        case 401 | 403 as status:
            message = f"{shown(url)} was not read: the server denies access without credentials ({status})."
            raise FetchError(message, status=status)
        case 429 | 503 as status:
            message = f"{shown(url)} was not read: the server is busy ({status}). Try again later."
            raise FetchError(message, status=status, retry_after=_seconds(response.headers.get("retry-after")))
        case status:
            answered = f"{status} {response.reason_phrase}".strip()
            raise FetchError(f"{shown(url)} was not read: the server answered {answered}.", status=status)


async def _page(url: httpx.URL, response: httpx.Response, max_bytes: int) -> WebPage:
    try:
        content = await read_body(response, max_bytes)
    except TooLargeError:
        raise FetchError(
            f"{shown(url)} was not read: it is larger than {max_bytes} bytes (FETCH_URL_MAX_BYTES)."
        ) from None
    except DecompressionError as error:
        raise FetchError(f"{shown(url)} was not read: its content cannot be decompressed: {error}.") from None
    return WebPage(
        url=str(url),
        content=content,
        media_type=response.headers.get("content-type"),
        revision=_revision(response.headers),
        updated=_http_date(response.headers.get("last-modified")),
    )


def _checked(url: str, redirected_from: httpx.URL | None = None) -> httpx.URL:
    try:
        return page_url(url, None if redirected_from is None else str(redirected_from))
    except AddressError as error:
        origin = "" if redirected_from is None else f"{shown(redirected_from)} redirects elsewhere: "
        raise FetchError(f"{origin}{error}") from None


def _revision(headers: Mapping[str, str]) -> str | None:
    return next((f"{name} {headers[header]}" for name, header, _ in _VALIDATORS if headers.get(header)), None)


def _condition(revision: str | None) -> dict[str, str]:
    name, _, value = (revision or "").partition(" ")
    usable = value and value.isascii() and value.isprintable()
    return {condition: value for known, _, condition in _VALIDATORS if known == name and usable}


def _http_date(header: str | None) -> datetime | None:
    try:
        time = parsedate_to_datetime(header or "")
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _seconds(header: str | None) -> float | None:
    """The value of Retry-After: a number of seconds or a time."""
    if header and header.strip().isdecimal():
        return float(header)
    time = _http_date(header)
    return None if time is None else max(0.0, (time - datetime.now(UTC)).total_seconds())
