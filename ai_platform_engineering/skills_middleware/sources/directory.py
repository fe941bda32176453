"""Skills in a directory of this machine: one folder each, which may stand in folders that group them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Iterator
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
"""A file may change once more without a new time stamp; a skill this fresh is read again."""


def library_directory() -> Path:
    """Where the skills that come with the product are."""
    return Path(__file__).parent.parent / "library"


class DirectorySource(Source):
    """`watched` is on for a directory that changes while the process runs."""

    def __init__(
        self, path: Path, name: str = "directory", kind: SourceKind = "directory", *, watched: bool = False
    ) -> None:
        self.path, self.name, self.kind = path, name, kind
        self._watched = watched
        self._readings: dict[Path, tuple[list[Stamp], Reading]] = {}

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

    def _reading(self, folder: Path, before: tuple[list[Stamp], Reading] | None) -> tuple[list[Stamp], Reading]:
        """What the folder holds; a folder whose files have not changed is not read again."""
        try:
            files = folder_files(folder, self.path)
            stamps = [file.stamp for file in files]
            settled = time.time() - _RACE_SECONDS
            if before is not None and before[0] == stamps and all(each[3] < settled * 1e9 for each in stamps):
                return before
            if problems := file_problems(files):
                return stamps, problems
            return stamps, reading(
                file_contents(folder, files),
                folder.name,
                Provenance(self.kind, folder.relative_to(self.path).as_posix()),
            )
        except OSError as error:
            return [], (Problem("unreadable", f"{error.filename} cannot be read: {error.strerror}"),)

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
