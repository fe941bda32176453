"""Archives of skills, built in memory."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from typing import Final, Literal

Compression = Literal["", "gz", "bz2", "xz"]

DOCUMENT: Final = b"---\nname: incident-triage\ndescription: Triage an incident.\n---\nList the open incidents.\n"
GOOD: Final = {"SKILL.md": DOCUMENT}


def zip_member(path: str, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(path, (2026, 1, 2, 3, 4, 6))
    member.create_system = 3
    member.external_attr = mode << 16
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


def zip_of(
    files: Mapping[str, bytes], *more: tuple[zipfile.ZipInfo, bytes], document: bool = True, comment: bytes = b""
) -> bytes:
    """A zip archive with a good SKILL.md, the `files` and members of any kind."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, data in (GOOD | files if document else files).items():
            archive.writestr(zip_member(path), data)
        for member, data in more:
            archive.writestr(member, data)
        archive.comment = comment
    return buffer.getvalue()


def tar_member(
    path: str, kind: bytes = tarfile.REGTYPE, *, mode: int = 0o644, target: str = "", pax: dict[str, str] | None = None
) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path)
    member.type = kind
    member.mode = mode
    member.linkname = target
    member.pax_headers = pax or {}
    return member


def tar_of(
    files: Mapping[str, bytes],
    *more: tarfile.TarInfo,
    document: bool = True,
    compression: Compression = "",
    format_: int = tarfile.PAX_FORMAT,
    pax: dict[str, str] | None = None,
    encoding: str = "utf-8",
) -> bytes:
    """A tar archive with a good SKILL.md, the `files` and members of any kind without data."""
    buffer = io.BytesIO()
    with tarfile.open(
        fileobj=buffer,
        mode=f"w:{compression}",  # type: ignore[call-overload]
        format=format_,
        pax_headers=pax,
        encoding=encoding,
    ) as archive:
        for path, data in (GOOD | files if document else files).items():
            member = tar_member(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for member in more:
            archive.addfile(member)
    return buffer.getvalue()


def tar_blocks(*entries: tuple[str | bytes, bytes, bytes, bytes | None]) -> bytes:
    """A tar archive of raw entries: name, type, data, and the size field where it does not state the data's size."""
    blocks = [_tar_entry(*entry) for entry in entries]
    return b"".join(blocks) + bytes(1024)


def _tar_entry(name: str | bytes, kind: bytes, data: bytes, size: bytes | None) -> bytes:
    raw = name if isinstance(name, bytes) else name.encode()
    header = bytearray(512)
    header[0 : len(raw)] = raw
    header[100:107] = b"0000644"
    header[124:136] = size if size is not None else b"%011o\0" % len(data)
    header[156:157] = kind
    header[257:265] = b"ustar\x0000"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + data + bytes(-len(data) % 512)


def pax_record(key: str, value: str) -> bytes:
    rest = len(f" {key}={value}\n".encode())
    length = rest + len(str(rest))
    length = rest + len(str(length))
    return f"{length} {key}={value}\n".encode()


def folders(count: int) -> Iterable[str]:
    return (f"folder-{number}/" for number in range(count))
