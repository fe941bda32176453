"""From the files of folders to skills: the part that directories and repositories have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ai_platform_engineering.skills_middleware.checks import (
    MAX_FILE_SIZE,
    MAX_FILES,
    MAX_SKILL_SIZE,
    CheckedSkill,
    build_skill,
    checked_skill,
)
from ai_platform_engineering.skills_middleware.document import declared_access
from ai_platform_engineering.skills_middleware.problems import InvalidSkillError, Problem
from ai_platform_engineering.skills_middleware.skill import Access, Provenance, Skill
from ai_platform_engineering.skills_middleware.sources.source import Loaded

Reading = Skill | tuple[Problem, ...]
"""A usable skill, or everything that is wrong with it."""


def size_problems(sizes: Mapping[str, int]) -> tuple[Problem, ...]:
    """Why the files of a skill, given by path with their sizes, are not even read."""
    if len(sizes) > MAX_FILES:
        return (Problem("too_many_files", f"the skill has more than {MAX_FILES} files"),)
    if problems := tuple(
        Problem("file_too_large", f"the file has {size} bytes; {MAX_FILE_SIZE} are allowed", path)
        for path, size in sizes.items()
        if size > MAX_FILE_SIZE
    ):
        return problems
    if (size := sum(sizes.values())) > MAX_SKILL_SIZE:
        return (Problem("skill_too_large", f"the skill has {size} bytes; {MAX_SKILL_SIZE} are allowed"),)
    return ()


def read_skill(files: Mapping[str, bytes], folder: str | None, provenance: Provenance) -> tuple[Skill, CheckedSkill]:
    """The skill that the files of one folder are; raises `InvalidSkillError`."""
    checked = checked_skill(files, folder=folder)
    return build_skill(checked, declared_access(checked.document), provenance), checked


def reading(files: Mapping[str, bytes], folder: str | None, provenance: Provenance) -> Reading:
    try:
        return read_skill(files, folder, provenance)[0]
    except InvalidSkillError as error:
        return error.problems


def collected(readings: Iterable[tuple[str, Reading]], commit: str | None = None) -> Loaded:
    """What a source loads, from readings with the paths of their folders. The first of two equal names is used."""
    skills: dict[tuple[str, Access], tuple[str, Skill]] = {}
    problems: list[Problem] = []
    for path, result in sorted(readings, key=lambda each: each[0]):
        if not isinstance(result, Skill):
            problems += (replace(each, path=f"{path}/{each.path}" if each.path else path) for each in result)
            continue
        key = result.name, result.access
        if key in skills:
            message = f"another folder has a skill of the same name, {skills[key][0]}, which is used instead"
            problems.append(Problem("duplicate", message, path))
        else:
            skills[key] = path, result
    return Loaded(tuple(skill for _, skill in skills.values()), tuple(problems), commit)
