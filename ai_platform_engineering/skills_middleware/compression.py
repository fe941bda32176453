"""Decompression of gzip, bzip2 and xz with bounded memory."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from ai_platform_engineering.skills_middleware.archive_entry import MAX_UNPACKED_SIZE, check_ratio, corrupt, refused

_CHUNK: Final = 64 * 1024
# Enough for the default presets of xz and Python. The highest presets need 64 MB, even for small data.
_XZ_MEMORY: Final = 16 * 1024 * 1024
_GZIP: Final = 16

_DECOMPRESSORS: Final[Mapping[bytes, tuple[str, Callable[[], Any]]]] = {
    b"\x1f\x8b": ("gzip", lambda: zlib.decompressobj(_GZIP + zlib.MAX_WBITS)),
    b"BZh": ("bzip2", bz2.BZ2Decompressor),
    b"\xfd7zXZ\x00": ("xz", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY)),
}


def decompress(data: bytes) -> bytes:
    """Decompress `data`. Data that are not compressed are returned unchanged."""
    for magic, (name, decompressor) in _DECOMPRESSORS.items():
        if data.startswith(magic):
            try:
                return _unpacked(data, name, decompressor())
            except lzma.LZMAError as error:
                if "limit" in str(error).lower():
                    raise refused(
                        "xz_memory", "the xz data need too much memory; compress with xz -6 or less"
                    ) from None
                raise corrupt("the xz data cannot be unpacked") from None
            except (zlib.error, OSError, EOFError):
                raise corrupt(f"the {name} data cannot be unpacked") from None
    return data


def _unpacked(data: bytes, name: str, decompressor: Any) -> bytes:
    unpacked = bytearray()
    pending = data
    while not decompressor.eof:
        chunk = decompressor.decompress(pending, _CHUNK)
        # bzip2 and xz buffer their unused input; zlib returns it.
        pending = getattr(decompressor, "unconsumed_tail", b"")
        if not chunk and not decompressor.eof:
            raise corrupt(f"the {name} data are cut off")
        unpacked += chunk
        check_ratio(len(unpacked), len(data) - len(pending))
        if len(unpacked) > MAX_UNPACKED_SIZE:
            raise refused("archive_too_large", f"the archive has more than {MAX_UNPACKED_SIZE} bytes unpacked")
    if decompressor.unused_data:
        raise refused("trailing_data", f"there are data after the end of the {name} data")
    return bytes(unpacked)
