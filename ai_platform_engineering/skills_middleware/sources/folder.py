"""The files of one skill in a local folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ai_platform_engineering.skills_middleware.checks import MAX_FILE_SIZE, MAX_FILES
from ai_platform_engineering.skills_middleware.skill import InvalidSkillError, SkillProblem
from ai_platform_engineering.skills_middleware.sources.reading import size_problems

_MAX_DEPTH: Final = 8
"""Deeper folders are not searched. The checks refuse paths with fewer levels than this."""

Stamp = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A file of a skill. A file with a `problem` must not be opened."""

    path: str
    status: os.stat_result
    problem: SkillProblem | None = None

    @property
    def stamp(self) -> Stamp:
        return self.path, self.status.st_ino, self.status.st_size, self.status.st_ctime_ns


def read_folder(folder: Path) -> dict[str, bytes]:
    """The files of a skill by path. Raises `InvalidSkillError` for files that must not be opened, or `OSError`."""
    files = folder_files(folder, folder)
    if problems := file_problems(files):
        raise InvalidSkillError(problems)
    return file_contents(folder, files)


def folder_files(folder: Path, directory: Path) -> list[SkillFile]:
    """List the files of a skill except hidden ones, and stop when there are too many.

    A symbolic link is followed if its target is inside `directory`.
    """
    files: list[SkillFile] = []
    root = directory.resolve(strict=True)
    pending = [("", 0)]
    while pending and len(files) <= MAX_FILES:
        place, depth = pending.pop()
        for entry in sorted(os.scandir(folder / place), key=lambda each: each.name):
            path = f"{place}{entry.name}"
            if entry.name.startswith("."):
                continue
            if entry.is_symlink() and not resolves_inside(entry.path, root):
                problem = SkillProblem("symlink", "the link leads out of the directory of skills", path)
                files.append(SkillFile(path, entry.stat(follow_symlinks=False), problem))
            elif entry.is_dir():
                if depth < _MAX_DEPTH:
                    pending.append((f"{path}/", depth + 1))
            elif stat.S_ISREG((status := entry.stat()).st_mode):
                files.append(SkillFile(path, status))
            else:
                files.append(SkillFile(path, status, SkillProblem("not_a_file", "it is not a regular file", path)))
    return files


def file_problems(files: Sequence[SkillFile]) -> tuple[SkillProblem, ...]:
    """The reasons why the files must not be opened."""
    unusable = tuple(file.problem for file in files if file.problem is not None)
    return unusable or size_problems({file.path: file.status.st_size for file in files})


def file_contents(folder: Path, files: Sequence[SkillFile]) -> dict[str, bytes]:
    """Read the files, by path. Of a file that has grown meanwhile, only enough is read for the checks to refuse it."""
    contents = {}
    for file in files:
        with (folder / file.path).open("rb") as opened:
            contents[file.path] = opened.read(MAX_FILE_SIZE + 1)
    return contents


def resolves_inside(path: str, root: Path) -> bool:
    try:
        return Path(path).resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):
        return False
