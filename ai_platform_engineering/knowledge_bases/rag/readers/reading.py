"""Converts the bytes of a file or page to a title and Markdown, with the reader for its kind."""

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
"""Change it when the text of the same bytes changes: the next ingest then reads all documents again."""

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
# Servers also send these types when they do not know the type. The suffix of the name is then more reliable.
_UNSPECIFIC: Final = frozenset(
    {"", "text/plain", "application/octet-stream", "binary/octet-stream", "application/x-download"}
)
_MODULES: Final[Mapping[MediaType, str]] = {
    "text/markdown": "markdown",
    "text/html": "html",
    "text/x-rst": "rst",
    "text/plain": "plain_text",
    "application/pdf": "pdf",
}
_KINDS: Final = "Markdown, HTML, reStructuredText, plain text and PDF"
_EMBEDDED_DATA: Final = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,[A-Za-z0-9+/=%]{64,}")
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


class UnreadableDocumentError(ReadableError):
    """A document cannot be read: which one, and why."""


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """`text` is Markdown. It is empty for an empty file."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class RawDocument:
    """The input of a reader. `name` is the path or URL. Relative links are resolved against `base_url`."""

    content: bytes
    charset: str | None
    name: str
    base_url: str | None


class ReadFunction(Protocol):
    def __call__(self, raw: RawDocument) -> ExtractedText: ...


def media_type_of(name: str, declared: str | None = None) -> str | None:
    """The kind of a file or page, by its Content-Type header or its suffix. None if it is not supported.

    The charset of the header is kept, for `read`.
    """
    declared_type, charset = _content_type(declared or "")
    kind = SUFFIXES.get(_suffix(name)) if declared_type in _UNSPECIFIC else None
    kind = kind or _SYNONYMS.get(declared_type)
    if kind is None or charset is None:
        return kind
    return f"{kind}; charset={charset}"


def read(content: bytes, media_type: str, name: str, base_url: str | None = None) -> ExtractedText:
    """Raises only an `UnreadableDocumentError` for content that cannot be read."""
    declared_type, charset = _content_type(media_type)
    reader = load_reader(declared_type)
    if reader is None:
        raise UnreadableDocumentError(
            f"{name} is {declared_type or 'of an unknown kind'}, which is not read: {_KINDS} are."
        )
    extracted = reader(RawDocument(content, charset, name, base_url))
    return ExtractedText(_storable(extracted.title), _tidy(extracted.text))


def load_reader(media_type: str) -> ReadFunction | None:
    """The reader for a kind of content, after the import of its libraries; None if it is not supported."""
    declared_type, _ = _content_type(media_type)
    if (kind := _SYNONYMS.get(declared_type)) is None:
        return None
    return cast("ReadFunction", importlib.import_module(f"{__package__}.{_MODULES[kind]}").read)


def _content_type(header: str) -> tuple[str, str | None]:
    message = Message()
    message["Content-Type"] = " ".join(header.split())
    charset = message.get_content_charset()
    return header.partition(";")[0].strip().lower(), charset or None


def _suffix(name: str) -> str:
    path = unquote(urlsplit(name).path) if "://" in name else name
    return PurePosixPath(path).suffix.lower()


def _storable(text: str) -> str:
    """Replace characters that no database accepts."""
    return _UNSTORABLE.sub("\ufffd", text) if _UNSTORABLE.search(text) else text


def _tidy(text: str) -> str:
    text = _storable(text)
    if "base64," in text:
        text = _EMBEDDED_DATA.sub("data:", text)
    return text.strip("\n") + "\n" if text.strip() else ""
