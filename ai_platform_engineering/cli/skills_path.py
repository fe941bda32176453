"""A skill on the disk of this machine: a folder, a SKILL.md or an archive, checked as every skill is."""

from __future__ import annotations

from pathlib import Path

from ai_platform_engineering.skills_middleware.archive_entry import MAX_ARCHIVE_SIZE
from ai_platform_engineering.skills_middleware.archives import read_archive
from ai_platform_engineering.skills_middleware.checks import CheckedSkill, checked_skill
from ai_platform_engineering.skills_middleware.skill import DOCUMENT
from ai_platform_engineering.skills_middleware.sources.folder import read_folder
from ai_platform_engineering.utils.errors import ReadableError


class PathError(ReadableError):
    """There is nothing to read at a path; the text says why."""


def checked_path(path: Path) -> CheckedSkill:
    """The skill at `path`; raises `InvalidSkillError` with everything that is wrong with it, or `PathError`."""
    path = path.expanduser()
    try:
        if path.is_dir():
            return checked_skill(read_folder(path), folder=path.resolve().name)
        data = _read(path)
    except OSError as error:
        raise PathError(f"{path} cannot be read: {error.strerror}.") from None
    if path.suffix.lower() == ".md":
        return checked_skill({DOCUMENT: data})
    archive = read_archive(data)
    return checked_skill(archive.files, folder=archive.folder)


def _read(path: Path) -> bytes:
    """The file, as far as the checks need it to refuse one that is too large."""
    with path.open("rb") as file:
        return file.read(MAX_ARCHIVE_SIZE + 1)
