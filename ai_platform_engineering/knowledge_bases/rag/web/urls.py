"""Validates and normalizes the URLs of pages, so that one page has one URL."""

from __future__ import annotations

import re

import httpx

from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.outbound.addresses import host_of
from ai_platform_engineering.utils.redact import redact

_MAX_LENGTH = 4096
_MAX_SHOWN_LENGTH = 200
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


class AddressError(ReadableError):
    """The text is not the URL of a page that can be read."""


def page_url(text: str, base: str | None = None) -> httpx.URL:
    """The normalized URL: absolute, with an ASCII host, without default port and fragment."""
    if len(text) > _MAX_LENGTH:
        raise AddressError(f"{shown(text)} is too long for a web address: more than {_MAX_LENGTH} characters.")
    try:
        url = httpx.URL(text.strip()) if base is None else httpx.URL(base).join(text.strip())
        port = url.port
    except (httpx.InvalidURL, ValueError, TypeError):
        raise AddressError(
            f"{shown(text)!r} is not a web address. Give one such as https://www.example.com/."
        ) from None
    if url.scheme not in ("http", "https") or not url.host:
        raise AddressError(f"{shown(text)!r} cannot be read: only addresses with http:// or https:// can.")
    if url.userinfo:
        raise AddressError("A web address with a user name or a password in it is not used. Leave them out.")
    if port is not None and not 1 <= port <= 65535:
        raise AddressError(f"{port} is not a port. Ports go from 1 to 65535.")
    if (host := host_of(url.host)) is None:
        raise AddressError(f"{shown(url.host)!r} is not a host name. Give an address such as https://www.example.com/.")
    return url.copy_with(host=host, port=port, fragment=None, raw_path=_normalized_path(url.raw_path))


def shown(url: httpx.URL | str) -> str:
    """For messages: without credentials, and shortened."""
    text = redact(str(url))
    return text if len(text) <= _MAX_SHOWN_LENGTH else f"{text[:_MAX_SHOWN_LENGTH]}..."


def _normalized_path(raw_path: bytes) -> bytes:
    """`/%7Eme/a%2fb?` is the same as `/~me/a%2Fb`."""
    path = _ESCAPED.sub(lambda escaped: _unescaped(escaped[0]), raw_path.decode("ascii"))
    return path.removesuffix("?").encode("ascii") or b"/"


def _unescaped(escaped: str) -> str:
    character = chr(int(escaped[1:], 16))
    return character if _UNRESERVED.fullmatch(character) else escaped.upper()
