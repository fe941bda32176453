"""Skills in a directory of this machine: one folder each, which may stand in folders that group them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ai_platform_engineering.skills_middleware.problems import InvalidSkillError, Problem
from ai_platform_engineering.skills_middleware.skill import DOCUMENT, Provenance, Skill, SkillContent, SourceKind
from ai_platform_engineering.skills_middleware.sources.folder import (
    Stamp,
    file_contents,
    file_problems,
    folder_files,
    resolves_inside,
)
from ai_platform_engineering.skills_middleware.sources.reading import (
    Reading,
    collected,
    read_skill,
    reading,
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
_RACE_SECONDS: Final = 2.0
"""A file may change once more without a new time stamp; a file that was this fresh is read again."""


def library_directory() -> Path:
    """Where the skills that come with the product are."""
    return Path(__file__).parent.parent / "library"


@dataclass(frozen=True, slots=True)
class _Read:
    """What a folder held at `moment`, in seconds of the clock that also stamps files."""

    moment: float
    stamps: list[Stamp]
    result: Reading

    @property
    def is_settled(self) -> bool:
        """Whether every later change shows in the stamps."""
        return all(stamp[3] < (self.moment - _RACE_SECONDS) * 1e9 for stamp in self.stamps)


class DirectorySource(Source):
    """`watched` is on for a directory that changes while the process runs."""

    def __init__(
        self, path: Path, name: str = "directory", kind: SourceKind = "directory", *, watched: bool = False
    ) -> None:
        self.path, self.name, self.kind = path, name, kind
        self._watched = watched
        self._read: dict[Path, _Read] = {}

    async def load(self) -> Loaded:
        return await asyncio.to_thread(self._load)

    async def content(self, skill: Skill) -> SkillContent:
        return await asyncio.to_thread(self._content, skill)

    def changes(self) -> AsyncGenerator[None]:
        return directory_changes(self.path) if self._watched else super().changes()

    def _load(self) -> Loaded:
        folders, unreadable = self._folders()
        before, self._read = self._read, {}
        for folder in folders:
            self._read[folder] = self._reading(folder, before.get(folder))
        readings = [(str(folder), read.result) for folder, read in self._read.items()]
        return collected([*readings, *unreadable])

    def _folders(self) -> tuple[list[Path], list[tuple[str, Reading]]]:
        """The folders with skills, and those that cannot be read."""
        folders: list[Path] = []
        unreadable: list[tuple[str, Reading]] = []
        root = self.path.resolve()
        pending = [(self.path, 0)]
        while pending:
            folder, depth = pending.pop()
            try:
                names = {entry.name: entry for entry in os.scandir(folder) if not entry.name.startswith(".")}
            except OSError as error:
                if depth == 0:
                    raise SourceUnavailableError(
                        f"{self.path} cannot be read: {error.strerror}. Check the directory; the skills that were "
                        "loaded from it last stay in effect."
                    ) from error
                if folder.exists():
                    unreadable.append((str(folder), _unreadable(error)))
                continue
            if DOCUMENT in names and depth > 0:
                folders.append(folder)
            elif depth < MAX_DEPTH:
                pending += ((folder / name, depth + 1) for name, entry in names.items() if _is_folder(entry, root))
        return folders, unreadable

    def _reading(self, folder: Path, before: _Read | None) -> _Read:
        """What the folder holds; a folder whose files have not changed is not read again."""
        began = time.time()
        try:
            files = folder_files(folder, self.path)
            stamps = [file.stamp for file in files]
            if before is not None and before.stamps == stamps and before.is_settled:
                return before
            result: Reading = file_problems(files)
            if not result:
                provenance = Provenance(self.kind, folder.relative_to(self.path).as_posix())
                result = reading(file_contents(folder, files), folder.name, provenance)
        except OSError as error:
            stamps, result = [], _unreadable(error)
        return _Read(began, stamps, result)

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


def _unreadable(error: OSError) -> tuple[Problem, ...]:
    return (Problem("unreadable", f"{error.filename} cannot be read: {error.strerror}"),)
