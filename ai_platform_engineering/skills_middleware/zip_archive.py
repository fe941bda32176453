"""Reading zip archives that come from anyone.

The reader accepts one plain layout: the entries from the first byte on, one after the other, then the central
directory, then its end record. Local headers and central directory must agree. So there is one way to read the archive,
no bytes are left over, and sizes are verified while unpacking.
"""

from __future__ import annotations

import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

from ai_platform_engineering.skills_middleware.archive_entry import (
    MAX_ENTRIES,
    Entry,
    check_ratio,
    corrupt,
    decoded_path,
    refused,
)
from ai_platform_engineering.skills_middleware.characters import quoted
from ai_platform_engineering.skills_middleware.checks import MAX_FILE_SIZE
from ai_platform_engineering.skills_middleware.problems import Problem

_END: Final = struct.Struct("<4s4H2LH")
_CENTRAL: Final = struct.Struct("<4s6H3L5H2L")
_LOCAL: Final = struct.Struct("<4s5H3L2H")
_END_SIGNATURE: Final = b"PK\x05\x06"
_CENTRAL_SIGNATURE: Final = b"PK\x01\x02"
_LOCAL_SIGNATURE: Final = b"PK\x03\x04"
_DESCRIPTOR_SIGNATURE: Final = b"PK\x07\x08"

_ENCRYPTED: Final = 0x2041
_HAS_DESCRIPTOR: Final = 0x0008
_STORED: Final = 0
_DEFLATED: Final = 8
_ZIP64_EXTRA: Final = 0x0001
_UNICODE_PATH_EXTRA: Final = 0x7075
_ZIP64_16: Final = 0xFFFF
_ZIP64_32: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class _Header:
    """An entry in the central directory."""

    name: bytes
    flags: int
    method: int
    checksum: int
    packed: int
    unpacked: int
    mode: int
    offset: int

    @classmethod
    def at(cls, data: bytes, position: int, end: int) -> tuple[Self, int]:
        """The entry at `position`, and where the next one begins."""
        if position + _CENTRAL.size > end:
            raise corrupt("the central directory is cut off")
        fields = _CENTRAL.unpack_from(data, position)
        signature, _, _, flags, method, _, _, checksum, packed, unpacked = fields[:10]
        name_length, extra_length, comment_length, disk, _, attributes, offset = fields[10:]
        if signature != _CENTRAL_SIGNATURE:
            raise corrupt("an entry of the central directory has no signature")
        if _ZIP64_32 in (packed, unpacked, offset) or disk:
            raise _zip64()
        name_end = position + _CENTRAL.size + name_length
        extra_end = name_end + extra_length
        if extra_end + comment_length > end:
            raise corrupt("the central directory is cut off")
        name = data[name_end - name_length : name_end]
        _check_extra(data[name_end:extra_end], name)
        header = cls(name, flags, method, checksum, packed, unpacked, attributes >> 16, offset)
        return header, extra_end + comment_length


def is_zip(data: bytes) -> bool:
    return data.startswith((_LOCAL_SIGNATURE, _END_SIGNATURE))


def zip_entries(data: bytes) -> Iterator[Entry]:
    """The entries of a zip archive, in the order of their bytes."""
    headers, directory = _central_directory(data)
    position = 0
    for header in sorted(headers, key=lambda each: each.offset):
        if header.offset < position:
            raise refused("overlapping_entries", "entries of the zip archive overlap")
        if header.offset > position:
            raise _hidden_data()
        packed, position = _packed_data(data, header, directory)
        yield _entry(header, packed)
    if position != directory:
        raise _hidden_data()


def _central_directory(data: bytes) -> tuple[list[_Header], int]:
    """The entries of the central directory, and where it begins."""
    end = data.rfind(_END_SIGNATURE)
    if end < 0 or end + _END.size > len(data):
        raise corrupt("the end record of the zip archive is missing")
    _, disk, directory_disk, count, total, size, offset, comment_length = _END.unpack_from(data, end)
    if _ZIP64_16 in (disk, directory_disk, count, total) or _ZIP64_32 in (size, offset):
        raise _zip64()
    if end + _END.size + comment_length != len(data):
        raise refused("trailing_data", "the zip archive has data after its end")
    if disk or directory_disk or count != total:
        raise corrupt("the zip archive is one part of several")
    if count > MAX_ENTRIES:
        raise refused("too_many_entries", f"the archive has {count} entries; {MAX_ENTRIES} are allowed")
    if offset + size != end:
        raise _hidden_data() if offset + size < end else corrupt("the central directory is not where it should be")
    headers = []
    position = offset
    for _ in range(count):
        header, position = _Header.at(data, position, end)
        headers.append(header)
    if position != end:
        raise refused("size_mismatch", "the central directory has more entries than the zip archive declares")
    return headers, offset


def _packed_data(data: bytes, header: _Header, end: int) -> tuple[bytes, int]:
    """The compressed bytes of an entry, and where the next entry begins."""
    start = header.offset + _LOCAL.size
    if start > end:
        raise corrupt("an entry lies behind the central directory")
    signature, _, flags, method, _, _, checksum, packed, unpacked, name_length, extra_length = _LOCAL.unpack_from(
        data, header.offset
    )
    if signature != _LOCAL_SIGNATURE:
        raise corrupt("an entry has no local header")
    name = data[start : start + name_length]
    start += name_length
    _check_extra(data[start : start + extra_length], name)
    start += extra_length
    stop = start + header.packed
    if stop > end:
        raise corrupt("an entry is longer than the archive")
    declared = (header.checksum, header.packed, header.unpacked)
    has_descriptor = bool(flags & _HAS_DESCRIPTOR)
    local = (checksum, packed, unpacked)
    if (name, flags, method) != (header.name, header.flags, header.method) or (
        local != declared and not (has_descriptor and local == (0, 0, 0))
    ):
        raise refused(
            "size_mismatch", f"the two headers of {quoted(decoded_path(header.name))} in the zip archive differ"
        )
    return data[start:stop], _after_descriptor(data, stop, declared) if has_descriptor else stop


def _after_descriptor(data: bytes, position: int, declared: tuple[int, int, int]) -> int:
    """The end of the data descriptor, whose signature is optional."""
    descriptor = struct.pack("<3L", *declared)
    for expected in (_DESCRIPTOR_SIGNATURE + descriptor, descriptor):
        if data.startswith(expected, position):
            return position + len(expected)
    raise refused("size_mismatch", "the zip archive states other sizes after an entry than in its directory")


def _entry(header: _Header, packed: bytes) -> Entry:
    path = decoded_path(header.name)
    if header.flags & _ENCRYPTED:
        return Entry(path, problem=Problem("encrypted", f"{quoted(path)} is encrypted; send it without a password"))
    if problem := _mode_problem(path, header.mode):
        return Entry(path, problem=problem)
    if path.endswith("/"):
        if header.unpacked:
            raise corrupt(f"the folder {quoted(path)} has contents")
        return Entry(path.removesuffix("/"), is_folder=True)
    return Entry(path, data=_unpacked(path, header, packed))


def _mode_problem(path: str, mode: int) -> Problem | None:
    if stat.S_ISLNK(mode):
        return Problem("link", f"{quoted(path)} is a symbolic link; send the file itself")
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return Problem(
            "special_file", f"{quoted(path)} is a device, a pipe or a socket; a skill has files and folders only"
        )
    if mode & (stat.S_ISUID | stat.S_ISGID) and not stat.S_ISDIR(mode):
        return Problem("special_permissions", f"{quoted(path)} has the setuid or setgid bit")
    return None


def _unpacked(path: str, header: _Header, packed: bytes) -> bytes:
    if header.unpacked > MAX_FILE_SIZE:
        raise refused(
            "file_too_large", f"{quoted(path)} has {header.unpacked} bytes unpacked; {MAX_FILE_SIZE} are allowed"
        )
    if header.method == _STORED:
        unpacked = packed
    elif header.method == _DEFLATED:
        unpacked = _inflated(path, packed, header.unpacked)
    else:
        raise refused(
            "unsupported_compression",
            f"{quoted(path)} is compressed with method {header.method}; deflate and none are supported",
        )
    if len(unpacked) != header.unpacked:
        raise _wrong_size(path)
    if zlib.crc32(unpacked) != header.checksum:
        raise corrupt(f"the checksum of {quoted(path)} is wrong")
    check_ratio(len(unpacked), len(packed))
    return unpacked


def _inflated(path: str, packed: bytes, size: int) -> bytes:
    """At most one byte more than `size`, whatever the data hold."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        unpacked = inflater.decompress(packed, size + 1)
    except zlib.error:
        raise corrupt(f"{quoted(path)} cannot be unpacked") from None
    if len(unpacked) > size or inflater.unused_data:
        raise _wrong_size(path)
    if not inflater.eof:
        raise corrupt(f"{quoted(path)} is cut off")
    return unpacked


def _check_extra(extra: bytes, name: bytes) -> None:
    """Extra fields must not replace the sizes or the name."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, position)
        value = extra[position + 4 : position + 4 + length]
        position += 4 + length
        if kind == _ZIP64_EXTRA:
            raise _zip64()
        if kind == _UNICODE_PATH_EXTRA and value[5:] != name:
            raise refused("name_encoding", "an entry of the zip archive has two different names")


def _zip64() -> Exception:
    return refused("zip64", "the archive is in the zip64 format or in several parts; a skill needs neither")


def _hidden_data() -> Exception:
    return refused("hidden_data", "the zip archive has data that belong to none of its entries")


def _wrong_size(path: str) -> Exception:
    return refused("size_mismatch", f"the zip archive states a wrong size for {quoted(path)}")
