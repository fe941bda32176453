"""From the bytes of a file or a page to a title and Markdown, whatever kind it is."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import PurePosixPath
from typing import Final, Literal, Protocol, cast, get_args
from urllib.parse import unquote, urlsplit

from ai_platform_engineering.utils.errors import ReadableError

MediaType = Literal["text/markdown", "text/html", "text/x-rst", "text/plain", "application/pdf"]

READER_VERSION: Final = "2"
"""Changes when the same bytes are read differently: then everything is read again."""

SUFFIXES: Final[Mapping[str, MediaType]] = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".mdown": "text/markdown",
    ".mkd": "text/markdown",
    ".mdx": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "text/html",
    ".rst": "text/x-rst",
    ".rest": "text/x-rst",
    ".txt": "text/plain",
    ".text": "text/plain",
    ".pdf": "application/pdf",
}

_SYNONYMS: Final[Mapping[str, MediaType]] = {
    **{kind: kind for kind in get_args(MediaType)},
    "text/x-markdown": "text/markdown",
    "application/xhtml+xml": "text/html",
    "text/prs.fallenstein.rst": "text/x-rst",
    "text/rst": "text/x-rst",
    "application/x-pdf": "application/pdf",
}
# What servers say when they do not know, or do not care, what they send: the name knows more.
_VAGUE: Final = frozenset(
    {"", "text/plain", "application/octet-stream", "binary/octet-stream", "application/x-download"}
)
_MODULES: Final[Mapping[MediaType, str]] = {
    "text/markdown": "markdown",
    "text/html": "html",
    "text/x-rst": "rst",
    "text/plain": "plain",
    "application/pdf": "pdf",
}
_KINDS: Final = "Markdown, HTML, reStructuredText, plain text and PDF"
_EMBEDDED_DATA: Final = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,[A-Za-z0-9+/=%]{64,}")
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


class UnreadableError(ReadableError):
    """What could not be read, and why."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: `text` is Markdown. It may be empty, as an empty file is."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Raw:
    """What is to be read. `name` is its path or address, `base_url` what its relative links start from."""

    content: bytes
    charset: str | None
    name: str
    base_url: str | None


class _Reader(Protocol):
    def __call__(self, raw: Raw) -> Reading: ...


def media_type_of(name: str, declared: str | None = None) -> str | None:
    """The kind of a file or page, by its Content-Type header or its suffix; None for a kind that is not read.

    A charset that the header names stays in it, for `read`.
    """
    said, charset = _content_type(declared or "")
    kind = SUFFIXES.get(_suffix(name)) if said in _VAGUE else None
    kind = kind or _SYNONYMS.get(said)
    if kind is None or charset is None:
        return kind
    return f"{kind}; charset={charset}"


def read(content: bytes, media_type: str, name: str, base_url: str | None = None) -> Reading:
    """Raises UnreadableError, and nothing else, for what cannot be read."""
    said, charset = _content_type(media_type)
    kind = _SYNONYMS.get(said)
    if kind is None:
        raise UnreadableError(f"{name} is {said or 'of an unknown kind'}, which is not read: {_KINDS} are.")
    reader = cast("_Reader", importlib.import_module(f"{__package__}.{_MODULES[kind]}").read)
    reading = reader(Raw(content, charset, name, base_url))
    return Reading(_storable(reading.title), _tidy(reading.text))


def _content_type(header: str) -> tuple[str, str | None]:
    message = Message()
    message["Content-Type"] = " ".join(header.split())
    charset = message.get_content_charset()
    return header.partition(";")[0].strip().lower(), charset or None


def _suffix(name: str) -> str:
    path = unquote(urlsplit(name).path) if "://" in name else name
    return PurePosixPath(path).suffix.lower()


def _storable(text: str) -> str:
    """No database takes these, and no text needs them."""
    return _UNSTORABLE.sub("\ufffd", text) if _UNSTORABLE.search(text) else text


def _tidy(text: str) -> str:
    text = _storable(text)
    if "base64," in text:
        text = _EMBEDDED_DATA.sub("data:", text)
    return text.strip("\n") + "\n" if text.strip() else ""
