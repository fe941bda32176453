"""Untrusted tar archives, read in memory with `tarfile`. Links and special files are refused."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from typing import Final

from ai_platform_engineering.skills_middleware.archive_entry import ArchiveEntry, corrupt, refused
from ai_platform_engineering.skills_middleware.checks import MAX_FILE_SIZE
from ai_platform_engineering.skills_middleware.skill import SkillProblem
from ai_platform_engineering.utils.characters import quoted

_SETUID_SETGID: Final = 0o6000
_END_MARKER: Final = 1024
_SPARSE_HEADER: Final = "GNU.sparse"
_UNREADABLE: Final = (tarfile.TarError, ValueError, OverflowError, IndexError, EOFError, OSError)

_REFUSED_TYPES: Final[Mapping[bytes, tuple[str, str]]] = {
    tarfile.LNKTYPE: ("link", "is a hard link; send the file itself"),
    tarfile.SYMTYPE: ("link", "is a symbolic link; send the file itself"),
    tarfile.CHRTYPE: ("special_file", "is a device; a skill has files and folders only"),
    tarfile.BLKTYPE: ("special_file", "is a device; a skill has files and folders only"),
    tarfile.FIFOTYPE: ("special_file", "is a pipe; a skill has files and folders only"),
}


def is_tar(data: bytes) -> bool:
    return data[257:262] == b"ustar"


def tar_entries(data: bytes) -> Iterator[ArchiveEntry]:
    """The entries of a tar archive without compression."""
    if data[-_END_MARKER:].strip(b"\0"):
        raise corrupt("the end of the tar archive is missing")
    try:
        archive = tarfile.TarFile(fileobj=io.BytesIO(data))
    except _UNREADABLE:
        raise corrupt("the first tar header cannot be read") from None
    with archive:
        while (member := _next(archive)) is not None:
            yield _entry(archive, member)


def _next(archive: tarfile.TarFile) -> tarfile.TarInfo | None:
    try:
        return archive.next()
    except _UNREADABLE:
        raise corrupt("a tar header cannot be read") from None


def _entry(archive: tarfile.TarFile, member: tarfile.TarInfo) -> ArchiveEntry:
    path = member.name
    try:
        path.encode()
    except UnicodeEncodeError:
        raise refused("name_encoding", f"the name {path[:40]!a} in the archive is not UTF-8; rename the file") from None
    if member.size < 0:
        # Some Python versions would seek backwards and read the same entries forever.
        raise corrupt(f"{quoted(path)} has a negative size")
    if problem := _problem(path, member):
        return ArchiveEntry(path, problem=problem)
    if member.isdir():
        return ArchiveEntry(path, is_folder=True)
    try:
        file = archive.extractfile(member)
        content = file.read() if file is not None else b""
    except _UNREADABLE:
        raise corrupt(f"{quoted(path)} is cut off") from None
    return ArchiveEntry(path, data=content)


def _problem(path: str, member: tarfile.TarInfo) -> SkillProblem | None:
    code, reason = _refusal(member)
    return SkillProblem(code, f"{quoted(path)} {reason}") if code else None


def _refusal(member: tarfile.TarInfo) -> tuple[str, str]:
    if member.issparse() or any(key.startswith(_SPARSE_HEADER) for key in member.pax_headers):
        return "sparse_file", "is a sparse file; send it in full"
    if member.size > MAX_FILE_SIZE:
        return "file_too_large", f"has {member.size} bytes; {MAX_FILE_SIZE} are allowed"
    if member.mode & _SETUID_SETGID and not member.isdir():
        return "special_permissions", "has the setuid or setgid bit"
    if member.isreg() or member.isdir():
        return "", ""
    return _REFUSED_TYPES.get(member.type, ("special_file", "has a type that a skill does not need"))
