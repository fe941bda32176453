"""Untrusted zip archives, read with `zipfile`. Size limits are enforced while unpacking, not taken from headers."""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final

from ai_platform_engineering.skills_middleware.archive_entry import (
    MAX_ENTRIES,
    ArchiveEntry,
    check_ratio,
    corrupt,
    refused,
)
from ai_platform_engineering.skills_middleware.checks import MAX_FILE_SIZE
from ai_platform_engineering.skills_middleware.skill import SkillProblem
from ai_platform_engineering.utils.characters import quoted

_SIGNATURES: Final = (b"PK\x03\x04", b"PK\x05\x06")
_END_RECORD: Final = 22
_ENCRYPTED: Final = 0x2041
_UTF_8: Final = 0x0800
_UNREADABLE: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


def is_zip(data: bytes) -> bool:
    return data.startswith(_SIGNATURES)


def zip_entries(data: bytes) -> Iterator[ArchiveEntry]:
    """The entries of a zip archive."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except _UNREADABLE:
        raise corrupt("it has no valid directory of its entries") from None
    with archive:
        if len(data) - len(archive.comment) - _END_RECORD != data.rfind(_SIGNATURES[1]):
            raise refused("trailing_data", "the zip archive has data after its end")
        if len(entries := archive.infolist()) > MAX_ENTRIES:
            raise refused("too_many_entries", f"the archive has {len(entries)} entries; {MAX_ENTRIES} are allowed")
        for info in entries:
            yield _entry(archive, info)


def _entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> ArchiveEntry:
    path = _path(info)
    if problem := _problem(path, info):
        return ArchiveEntry(path, problem=problem)
    if path.endswith("/"):
        return ArchiveEntry(path.removesuffix("/"), is_folder=True)
    try:
        with archive.open(info) as file:
            content = file.read(MAX_FILE_SIZE + 1)
    except _UNREADABLE:
        raise corrupt(f"{quoted(path)} cannot be unpacked") from None
    if len(content) != info.file_size:
        raise corrupt(f"{quoted(path)} has another size than the archive states")
    check_ratio(len(content), info.compress_size)
    return ArchiveEntry(path, data=content)


def _path(info: zipfile.ZipInfo) -> str:
    """The name decoded as UTF-8, which many programs write without setting the flag for it."""
    if info.flag_bits & _UTF_8:
        return info.orig_filename
    try:
        return info.orig_filename.encode("cp437").decode()
    except UnicodeError:
        raise refused(
            "name_encoding", f"the name {info.orig_filename[:40]!a} in the archive is not UTF-8; rename the file"
        ) from None


def _problem(path: str, info: zipfile.ZipInfo) -> SkillProblem | None:
    code, reason = _refusal(info.external_attr >> 16, info)
    return SkillProblem(code, f"{quoted(path)} {reason}") if code else None


def _refusal(mode: int, info: zipfile.ZipInfo) -> tuple[str, str]:
    if info.flag_bits & _ENCRYPTED:
        return "encrypted", "is encrypted; send it without a password"
    if stat.S_ISLNK(mode):
        return "link", "is a symbolic link; send the file itself"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "special_file", "is a device, a pipe or a socket; a skill has files and folders only"
    if mode & (stat.S_ISUID | stat.S_ISGID) and not stat.S_ISDIR(mode):
        return "special_permissions", "has the setuid or setgid bit"
    if info.file_size > MAX_FILE_SIZE:
        return "file_too_large", f"has {info.file_size} bytes unpacked; {MAX_FILE_SIZE} are allowed"
    known = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    return ("", "") if known else ("unsupported_compression", "has a compression other than deflate and none")
