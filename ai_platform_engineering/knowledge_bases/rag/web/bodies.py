"""Bodies of answers: read piece by piece, unpacked, and given up when they become too large."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

import httpx

ACCEPT_ENCODING = "gzip, deflate"
_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


class TooLargeError(Exception):
    """More bytes than are read."""


class PackedError(Exception):
    """Packed in a way that cannot be undone."""


async def read_body(response: httpx.Response, most: int) -> bytes:
    """The whole body. Neither what comes over the wire nor what is unpacked from it exceeds `most` bytes."""
    if (length := response.headers.get("content-length", "")).isdecimal() and int(length) > most:
        raise TooLargeError
    packing = response.headers.get("content-encoding", "").strip().lower()
    if packing in ("", "identity"):
        return b"".join([piece async for piece in _at_most(response.aiter_raw(), most)])
    if packing not in _WINDOWS:
        raise PackedError(packing)
    return await _unpacked(_at_most(response.aiter_raw(), most), most, _WINDOWS[packing])


def unpack(content: bytes, most: int) -> bytes:
    """What a gzip file contains."""
    unpacking = _Unpacking(_WINDOWS["gzip"], most)
    unpacking.add(content)
    return unpacking.whole()


async def _unpacked(pieces: AsyncIterator[bytes], most: int, window: int) -> bytes:
    unpacking = _Unpacking(window, most)
    async for piece in pieces:
        unpacking.add(piece)
    return unpacking.whole()


async def _at_most(pieces: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > most:
            raise TooLargeError
        yield piece


class _Unpacking:
    def __init__(self, window: int, most: int) -> None:
        self._inflater = zlib.decompressobj(window)
        self._window = window
        self._content = bytearray()
        self._most = most

    def add(self, piece: bytes) -> None:
        try:
            # One byte more than may be, so that a bomb is told from a body that just fits.
            self._content += self._inflater.decompress(piece, self._most + 1 - len(self._content))
        except zlib.error as error:
            if self._content or self._window < 0 or self._window > zlib.MAX_WBITS:
                raise PackedError(str(error)) from None
            # Some servers leave the wrapping of "deflate" out.
            self._window = -zlib.MAX_WBITS
            self._inflater = zlib.decompressobj(self._window)
            self.add(piece)
        if len(self._content) > self._most:
            raise TooLargeError

    def whole(self) -> bytes:
        if not self._inflater.eof:
            raise PackedError("it ends too early")
        return bytes(self._content)
