"""Response bodies: read in pieces, decompressed, and rejected if they become too large."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

import httpx

ACCEPT_ENCODING = "gzip, deflate"
_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


class TooLargeError(Exception):
    """The body is larger than the limit."""


class DecompressionError(Exception):
    """The body cannot be decompressed."""


async def read_body(response: httpx.Response, max_bytes: int) -> bytes:
    """The decompressed body. Raises if more than `max_bytes` are received, or result from decompression."""
    if (length := response.headers.get("content-length", "")).isdecimal() and int(length) > max_bytes:
        raise TooLargeError
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return b"".join([piece async for piece in _at_most(response.aiter_raw(), max_bytes)])
    if encoding not in _WINDOWS:
        raise DecompressionError(encoding)
    return await _decompressed(_at_most(response.aiter_raw(), max_bytes), max_bytes, _WINDOWS[encoding])


def decompress(content: bytes, max_bytes: int) -> bytes:
    """The content of a gzip file."""
    decompressor = _Decompressor(_WINDOWS["gzip"], max_bytes)
    decompressor.add(content)
    return decompressor.whole()


async def _decompressed(pieces: AsyncIterator[bytes], max_bytes: int, window: int) -> bytes:
    decompressor = _Decompressor(window, max_bytes)
    async for piece in pieces:
        decompressor.add(piece)
    return decompressor.whole()


async def _at_most(pieces: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[bytes]:
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > max_bytes:
            raise TooLargeError
        yield piece


class _Decompressor:
    def __init__(self, window: int, max_bytes: int) -> None:
        self._inflater = zlib.decompressobj(window)
        self._window = window
        self._content = bytearray()
        self._max_bytes = max_bytes

    def add(self, piece: bytes) -> None:
        try:
            # One byte above the limit, to distinguish a larger body from one that just fits.
            self._content += self._inflater.decompress(piece, self._max_bytes + 1 - len(self._content))
        except zlib.error as error:
            if self._content or self._window < 0 or self._window > zlib.MAX_WBITS:
                raise DecompressionError(str(error)) from None
            # Some servers send "deflate" without the zlib header.
            self._window = -zlib.MAX_WBITS
            self._inflater = zlib.decompressobj(self._window)
            self.add(piece)
        if len(self._content) > self._max_bytes:
            raise TooLargeError

    def whole(self) -> bytes:
        if not self._inflater.eof:
            raise DecompressionError("it ends too early")
        return bytes(self._content)
