"""Archives with one skill: zip or tar, the latter with or without compression. They are read in memory only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.skills_middleware.archive_entry import MAX_ARCHIVE_SIZE, MAX_ENTRIES, ArchiveEntry, refused
from ai_platform_engineering.skills_middleware.checks import MAX_SKILL_SIZE
from ai_platform_engineering.skills_middleware.compression import decompress
from ai_platform_engineering.skills_middleware.paths import normalised, path_problem
from ai_platform_engineering.skills_middleware.skill import DOCUMENT, InvalidSkillError, SkillProblem
from ai_platform_engineering.skills_middleware.tar_archive import is_tar, tar_entries
from ai_platform_engineering.skills_middleware.zip_archive import is_zip, zip_entries
from ai_platform_engineering.utils.characters import quoted

_MACOS_FOLDER: Final = "__MACOSX"
_MACOS_FILE: Final = ".DS_Store"
_MACOS_PREFIX: Final = "._"


@dataclass(frozen=True, slots=True)
class Archive:
    """The files of an archive by path. `folder` is a common top-level folder, which is removed from the paths."""

    files: Mapping[str, bytes]
    folder: str | None = None


def read_archive(data: bytes) -> Archive:
    """The files in an archive. Raises `InvalidSkillError` with every reason why the archive is not safe to use."""
    if len(data) > MAX_ARCHIVE_SIZE:
        raise refused("archive_too_large", f"the archive has {len(data)} bytes; {MAX_ARCHIVE_SIZE} are allowed")
    contents = _Contents()
    try:
        for count, entry in enumerate(_entries(data), 1):
            if count > MAX_ENTRIES:
                raise refused("too_many_entries", f"the archive has more than {MAX_ENTRIES} entries")
            contents.add(entry)
    except InvalidSkillError as error:
        contents.problems += error.problems
    if contents.problems:
        raise InvalidSkillError(contents.problems)
    if not contents.files:
        raise refused("empty_archive", "the archive has no files")
    return _without_folder(contents.files)


def _entries(data: bytes) -> Iterator[ArchiveEntry]:
    if is_zip(data):
        return zip_entries(data)
    if is_tar(unpacked := decompress(data)):
        return tar_entries(unpacked)
    raise refused("unknown_format", "the data are not a zip archive or a tar archive (plain, gzip, bzip2 or xz)")


class _Contents:
    """The files of the entries read so far, and their problems."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.problems: list[SkillProblem] = []
        self._folders: set[str] = set()
        self._size = 0

    def add(self, entry: ArchiveEntry) -> None:
        self._size += len(entry.data)
        if self._size > MAX_SKILL_SIZE:
            raise refused("skill_too_large", f"the files have more than {MAX_SKILL_SIZE} bytes")
        path = normalised(entry.path)
        if entry.is_folder and not path:
            return
        if problem := path_problem(path):
            self.problems.append(problem)
        elif _is_added_by_macos(path):
            return
        elif entry.problem is not None:
            self.problems.append(entry.problem)
        elif path in self.files or (path in self._folders and not entry.is_folder):
            self.problems.append(SkillProblem("duplicate_entry", f"the archive has {quoted(path)} more than once"))
        elif entry.is_folder:
            self._folders.add(path)
        else:
            self.files[path] = entry.data


def _is_added_by_macos(path: str) -> bool:
    first, _, _ = path.partition("/")
    name = path.rpartition("/")[2]
    return first == _MACOS_FOLDER or name == _MACOS_FILE or name.startswith(_MACOS_PREFIX)


def _without_folder(files: Mapping[str, bytes]) -> Archive:
    folder, separator, _ = next(iter(files)).partition("/")
    prefix = folder + separator
    if DOCUMENT in files or not separator or not all(path.startswith(prefix) for path in files):
        return Archive(files)
    return Archive({path.removeprefix(prefix): data for path, data in files.items()}, folder)
