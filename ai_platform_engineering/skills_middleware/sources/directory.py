"""Skills in a local directory: one folder per skill, optionally grouped in folders."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ai_platform_engineering.skills_middleware.skill import (
    DOCUMENT,
    InvalidSkillError,
    Provenance,
    Skill,
    SkillContent,
    SkillProblem,
    SourceKind,
)
from ai_platform_engineering.skills_middleware.sources.folder import (
    Stamp,
    file_contents,
    file_problems,
    folder_files,
    resolves_inside,
)
from ai_platform_engineering.skills_middleware.sources.reading import (
    ReadResult,
    collect,
    read_skill,
    try_read_skill,
)
from ai_platform_engineering.skills_middleware.sources.source import (
    LoadedSkills,
    SkillGoneError,
    SkillSource,
    SourceUnavailableError,
)
from ai_platform_engineering.skills_middleware.sources.watching import directory_changes

MAX_DEPTH: Final = 3
"""Levels of a skill's folder below the directory."""
_RACE_SECONDS: Final = 2.0
"""Two quick changes of a file can have the same timestamp, so a file that changed this recently is read again."""


def library_directory() -> Path:
    """The directory of the built-in skills."""
    return Path(__file__).parent.parent / "library"


@dataclass(frozen=True, slots=True)
class _FolderRead:
    """The result of reading a folder at `moment`, in seconds of the clock that also stamps files."""

    moment: float
    stamps: list[Stamp]
    result: ReadResult

    @property
    def is_cacheable(self) -> bool:
        """Whether every later change of a file will change its stamp."""
        return all(stamp[3] < (self.moment - _RACE_SECONDS) * 1e9 for stamp in self.stamps)


class DirectorySource(SkillSource):
    """`watched` is true for a directory that may change while the process runs."""

    def __init__(
        self, path: Path, name: str = "directory", kind: SourceKind = "directory", *, watched: bool = False
    ) -> None:
        self.path, self.name, self.kind = path, name, kind
        self._watched = watched
        self._read: dict[Path, _FolderRead] = {}

    async def load(self) -> LoadedSkills:
        return await asyncio.to_thread(self._load)

    async def content(self, skill: Skill) -> SkillContent:
        return await asyncio.to_thread(self._content, skill)

    def changes(self) -> AsyncGenerator[None]:
        return directory_changes(self.path) if self._watched else super().changes()

    def _load(self) -> LoadedSkills:
        folders, unreadable = self._folders()
        before, self._read = self._read, {}
        for folder in folders:
            self._read[folder] = self._reading(folder, before.get(folder))
        readings = [(str(folder), read.result) for folder, read in self._read.items()]
        return collect([*readings, *unreadable])

    def _folders(self) -> tuple[list[Path], list[tuple[str, ReadResult]]]:
        """The folders that contain a skill, and the results for folders that cannot be read."""
        folders: list[Path] = []
        unreadable: list[tuple[str, ReadResult]] = []
        root = self.path.resolve()
        pending = [(self.path, 0)]
        while pending:
            folder, depth = pending.pop()
            try:
                names = {entry.name: entry for entry in os.scandir(folder) if not entry.name.startswith(".")}
            except OSError as error:
                if depth == 0:
                    raise SourceUnavailableError(
                        f"{self.path} cannot be read: {error.strerror}. Check the directory; until then, the skills "
                        "that were loaded from it last stay in effect."
                    ) from error
                if folder.exists():
                    unreadable.append((str(folder), _unreadable(error)))
                continue
            if DOCUMENT in names and depth > 0:
                folders.append(folder)
            elif depth < MAX_DEPTH:
                pending += ((folder / name, depth + 1) for name, entry in names.items() if _is_folder(entry, root))
        return folders, unreadable

    def _reading(self, folder: Path, before: _FolderRead | None) -> _FolderRead:
        """Read the folder. If its files have not changed, the result of the last time is returned."""
        began = time.time()
        try:
            files = folder_files(folder, self.path)
            stamps = [file.stamp for file in files]
            if before is not None and before.stamps == stamps and before.is_cacheable:
                return before
            result: ReadResult = file_problems(files)
            if not result:
                provenance = Provenance(self.kind, folder.relative_to(self.path).as_posix())
                result = try_read_skill(file_contents(folder, files), folder.name, provenance)
        except OSError as error:
            stamps, result = [], _unreadable(error)
        return _FolderRead(began, stamps, result)

    def _content(self, skill: Skill) -> SkillContent:
        folder = self.path / skill.provenance.origin
        try:
            files = folder_files(folder, self.path)
            if file_problems(files):
                raise SkillGoneError(skill.name)
            found, checked = read_skill(file_contents(folder, files), folder.name, skill.provenance)
        except (OSError, InvalidSkillError) as error:
            raise SkillGoneError(skill.name) from error
        if found.digest != skill.digest:
            raise SkillGoneError(skill.name)
        return checked.content


def _is_folder(entry: os.DirEntry[str], root: Path) -> bool:
    return entry.is_dir() and (not entry.is_symlink() or resolves_inside(entry.path, root))


def _unreadable(error: OSError) -> tuple[SkillProblem, ...]:
    return (SkillProblem("unreadable", f"{error.filename} cannot be read: {error.strerror}"),)
