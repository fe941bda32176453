"""Reading tar archives that come from anyone.

The reader knows POSIX ustar, pax and GNU long names, and nothing that a skill does not need: links, devices, sparse
files and several volumes are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from ai_platform_engineering.skills_middleware.archive_entry import Entry, corrupt, decoded_path, refused
from ai_platform_engineering.skills_middleware.characters import quoted
from ai_platform_engineering.skills_middleware.checks import MAX_FILE_SIZE
from ai_platform_engineering.skills_middleware.problems import Problem

_BLOCK: Final = 512
_MAX_EXTENSION_SIZE: Final = 16 * 1024
_SETUID_SETGID: Final = 0o6000
_OCTAL: Final = re.compile(rb"[0-7]*")

_REFUSED_TYPES: Final = {
    b"1": ("link", "is a hard link; send the file itself"),
    b"2": ("link", "is a symbolic link; send the file itself"),
    b"3": ("special_file", "is a device; a skill has files and folders only"),
    b"4": ("special_file", "is a device; a skill has files and folders only"),
    b"6": ("special_file", "is a pipe; a skill has files and folders only"),
    b"S": ("sparse_file", "is a sparse file; send it in full"),
}


def is_tar(data: bytes) -> bool:
    return data[257:262] == b"ustar"


def tar_entries(data: bytes) -> Iterator[Entry]:
    """The entries of a tar archive without compression."""
    position = 0
    extensions: dict[bytes, bytes] = {}
    while (header := data[position : position + _BLOCK]).strip(b"\0"):
        _check_header(header)
        size = _number(header[124:136])
        start = position + _BLOCK
        position = start + -(-size // _BLOCK) * _BLOCK
        match header[156:157]:
            case b"x" | b"g" | b"L" | b"K" as kind:
                _extend(extensions, kind, _extension(data, start, size))
            case kind:
                yield _entry(header, kind, data[start : start + size], size, extensions)
                extensions = {}
        if position > len(data):
            raise corrupt("the tar archive ends inside an entry")
    if extensions or len(data) - position < 2 * _BLOCK:
        raise corrupt("the end of the tar archive is missing")
    if data[position:].strip(b"\0"):
        raise refused("trailing_data", "the tar archive has data after its end")


def _check_header(header: bytes) -> None:
    if len(header) < _BLOCK or not is_tar(header):
        raise corrupt("an entry of the tar archive has no header")
    if _number(header[148:156]) != sum(header) - sum(header[148:156]) + 8 * ord(" "):
        raise corrupt("the checksum of a tar header is wrong")


def _number(digits: bytes) -> int:
    """An octal number, or a binary one with the highest bit set in front."""
    if digits[0] & 0x80:
        if digits[0] & 0x40:
            raise corrupt("a number in a tar header is negative")
        return int.from_bytes(bytes([digits[0] & 0x3F]) + digits[1:], "big")
    octal = digits.strip(b" \0")
    if not _OCTAL.fullmatch(octal):
        raise corrupt("a number in a tar header is not octal")
    return int(octal or b"0", 8)


def _extension(data: bytes, start: int, size: int) -> bytes:
    if size > _MAX_EXTENSION_SIZE:
        raise refused(
            "header_too_large",
            f"the tar archive has a name or pax header of {size} bytes; {_MAX_EXTENSION_SIZE} are allowed",
        )
    return data[start : start + size]


def _extend(extensions: dict[bytes, bytes], kind: bytes, content: bytes) -> None:
    """Add what an extension header says of the entry after it."""
    match kind:
        case b"L":
            extensions[b"path"] = content.rstrip(b"\0")
        case b"x":
            extensions.update(_records(content))
        case b"g":
            if any(key in (b"path", b"linkpath", b"size") or _is_sparse(key) for key in _records(content)):
                raise refused("pax_header", "a global pax header sets the path or size of all entries")


def _records(content: bytes) -> dict[bytes, bytes]:
    """The records of a pax header: `length key=value` and a line break."""
    records = {}
    position = 0
    while position < len(content):
        length, space, _ = content[position : position + 8].partition(b" ")
        if not space or not length.isdigit():
            raise corrupt("a pax header has no length")
        end = position + int(length)
        key, equals, value = content[position + len(length) + 1 : end].partition(b"=")
        if end > len(content) or not equals or not value.endswith(b"\n"):
            raise corrupt("a pax header is cut off")
        records[key] = value[:-1]
        position = end
    return records


def _is_sparse(key: bytes) -> bool:
    return key.startswith(b"GNU.sparse")


def _entry(header: bytes, kind: bytes, content: bytes, size: int, extensions: Mapping[bytes, bytes]) -> Entry:
    path = decoded_path(extensions.get(b"path", _name(header)))
    if extensions.get(b"hdrcharset", b"ISO-IR 10646 2000 UTF-8") != b"ISO-IR 10646 2000 UTF-8":
        raise refused("name_encoding", f"the name {quoted(path)} in the archive is not UTF-8; rename the file")
    if problem := _problem(path, header, kind, extensions):
        return Entry(path, problem=problem)
    if extensions.get(b"size", b"%d" % size) != b"%d" % size:
        raise refused("size_mismatch", f"the tar archive states two sizes for {quoted(path)}")
    if size > MAX_FILE_SIZE:
        raise refused("file_too_large", f"{quoted(path)} has {size} bytes; {MAX_FILE_SIZE} are allowed")
    if kind == b"5" or path.endswith("/"):
        if size:
            raise corrupt(f"the folder {quoted(path)} has contents")
        return Entry(path.removesuffix("/"), is_folder=True)
    return Entry(path, data=content)


def _name(header: bytes) -> bytes:
    name = header[:100].partition(b"\0")[0]
    # GNU tar keeps other fields in the place of the prefix.
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _problem(path: str, header: bytes, kind: bytes, extensions: Mapping[bytes, bytes]) -> Problem | None:
    if any(map(_is_sparse, extensions)):
        kind = b"S"
    if kind in _REFUSED_TYPES:
        code, reason = _REFUSED_TYPES[kind]
        return Problem(code, f"{quoted(path)} {reason}")
    if kind not in (b"0", b"\0", b"5"):
        return Problem(
            "special_file", f"{quoted(path)} has the type {quoted(kind.decode('latin-1'))}, which is refused"
        )
    if kind != b"5" and _number(header[100:108]) & _SETUID_SETGID:
        return Problem("special_permissions", f"{quoted(path)} has the setuid or setgid bit")
    return None
