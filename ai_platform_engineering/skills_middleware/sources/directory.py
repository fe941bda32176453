"""Skills in a directory of this machine: one folder each, which may stand in folders that group them."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ai_platform_engineering.skills_middleware.checks import MAX_FILE_SIZE, MAX_FILES
from ai_platform_engineering.skills_middleware.problems import InvalidSkillError, Problem
from ai_platform_engineering.skills_middleware.skill import DOCUMENT, Provenance, Skill, SkillContent, SourceKind
from ai_platform_engineering.skills_middleware.sources.reading import (
    Reading,
    collected,
    read_skill,
    reading,
    size_problems,
)
from ai_platform_engineering.skills_middleware.sources.source import (
    Loaded,
    SkillGoneError,
    Source,
    SourceUnavailableError,
)
from ai_platform_engineering.skills_middleware.sources.watching import directory_changes

MAX_DEPTH: Final = 3
"""Of a skill's folder below the directory."""
_MAX_DEPTH_OF_FILES: Final = 8
"""Deeper files are not looked for; the checks refuse fewer levels already."""
_RACE_SECONDS: Final = 2.0
"""A file may change once more without a new time stamp; a skill this fresh is read again."""

_Stamp = tuple[str, int, int, int]


def library_directory() -> Path:
    """Where the skills that come with the product are."""
    return Path(__file__).parent.parent / "library"


@dataclass(frozen=True, slots=True)
class _File:
    """A file of a skill. `problem` is set for one that is not to be opened."""

    path: str
    status: os.stat_result
    problem: Problem | None = None

    @property
    def stamp(self) -> _Stamp:
        return self.path, self.status.st_ino, self.status.st_size, self.status.st_ctime_ns


class DirectorySource(Source):
    """`watched` is on for a directory that changes while the process runs."""

    def __init__(
        self, path: Path, name: str = "directory", kind: SourceKind = "directory", *, watched: bool = False
    ) -> None:
        self.path, self.name, self.kind = path, name, kind
        self._watched = watched
        self._readings: dict[Path, tuple[list[_Stamp], Reading]] = {}

    async def load(self) -> Loaded:
        return await asyncio.to_thread(self._load)

    async def content(self, skill: Skill) -> SkillContent:
        return await asyncio.to_thread(self._content, skill)

    def changes(self) -> AsyncGenerator[None]:
        return directory_changes(self.path) if self._watched else super().changes()

    def _load(self) -> Loaded:
        folders = list(self._folders())
        before, self._readings = self._readings, {}
        for folder in folders:
            self._readings[folder] = self._reading(folder, before.get(folder))
        return collected((str(folder), result) for folder, (_, result) in self._readings.items())

    def _folders(self) -> Iterator[Path]:
        try:
            root = self.path.resolve(strict=True)
            pending = [(self.path, 0)]
            while pending:
                folder, depth = pending.pop()
                names = {entry.name: entry for entry in os.scandir(folder) if not entry.name.startswith(".")}
                if DOCUMENT in names and depth > 0:
                    yield folder
                elif depth < MAX_DEPTH:
                    pending += ((folder / name, depth + 1) for name, entry in names.items() if _is_folder(entry, root))
        except OSError as error:
            raise SourceUnavailableError(
                f"{error.filename or self.path} cannot be read: {error.strerror}. Check the directory; the skills that "
                "were loaded from it last stay in effect."
            ) from error

    def _reading(self, folder: Path, before: tuple[list[_Stamp], Reading] | None) -> tuple[list[_Stamp], Reading]:
        """What the folder holds; a folder whose files have not changed is not read again."""
        try:
            files = self._files(folder)
            stamps = [file.stamp for file in files]
            settled = time.time() - _RACE_SECONDS
            if before is not None and before[0] == stamps and all(each[3] < settled * 1e9 for each in stamps):
                return before
            if problems := _problems(files):
                return stamps, problems
            return stamps, reading(_contents(folder, files), folder.name, Provenance(self.kind, str(folder)))
        except OSError as error:
            return [], (Problem("unreadable", f"{error.filename} cannot be read: {error.strerror}"),)

    def _content(self, skill: Skill) -> SkillContent:
        folder = Path(skill.provenance.origin)
        try:
            files = self._files(folder)
            if _problems(files):
                raise SkillGoneError(skill.name)
            found, checked = read_skill(_contents(folder, files), folder.name, skill.provenance)
        except (OSError, InvalidSkillError) as error:
            raise SkillGoneError(skill.name) from error
        if found.digest != skill.digest:
            raise SkillGoneError(skill.name)
        return checked.content

    def _files(self, folder: Path) -> list[_File]:
        """The files of a skill; of too many, enough to know that."""
        files: list[_File] = []
        root = self.path.resolve(strict=True)
        pending = [("", 0)]
        while pending and len(files) <= MAX_FILES:
            place, depth = pending.pop()
            for entry in sorted(os.scandir(folder / place), key=lambda each: each.name):
                path = f"{place}{entry.name}"
                if entry.name.startswith("."):
                    continue
                if entry.is_symlink() and not _resolves_inside(entry.path, root):
                    problem = Problem("symlink", "the link leads out of the directory of skills", path)
                    files.append(_File(path, entry.stat(follow_symlinks=False), problem))
                elif entry.is_dir():
                    if depth < _MAX_DEPTH_OF_FILES:
                        pending.append((f"{path}/", depth + 1))
                elif stat.S_ISREG((status := entry.stat()).st_mode):
                    files.append(_File(path, status))
                else:
                    files.append(_File(path, status, Problem("not_a_file", "it is not a regular file", path)))
        return files


def _problems(files: list[_File]) -> tuple[Problem, ...]:
    """Why the files are not to be opened."""
    unusable = tuple(file.problem for file in files if file.problem is not None)
    return unusable or size_problems({file.path: file.status.st_size for file in files})


def _contents(folder: Path, files: list[_File]) -> dict[str, bytes]:
    """The files by path. One that has grown meanwhile is read as far as the checks need to refuse it."""
    contents = {}
    for file in files:
        with (folder / file.path).open("rb") as opened:
            contents[file.path] = opened.read(MAX_FILE_SIZE + 1)
    return contents


def _is_folder(entry: os.DirEntry[str], root: Path) -> bool:
    return entry.is_dir() and (not entry.is_symlink() or _resolves_inside(entry.path, root))


def _resolves_inside(path: str, root: Path) -> bool:
    try:
        return Path(path).resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):
        return False
