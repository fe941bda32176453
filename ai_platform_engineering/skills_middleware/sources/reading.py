"""Skills from the files of folders, shared by directories and repositories."""

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
from ai_platform_engineering.skills_middleware.skill import Access, InvalidSkillError, Provenance, Skill, SkillProblem
from ai_platform_engineering.skills_middleware.sources.source import LoadedSkills

ReadResult = Skill | tuple[SkillProblem, ...]
"""A usable skill, or the problems of an unusable one."""


def size_problems(sizes: Mapping[str, int]) -> tuple[SkillProblem, ...]:
    """The size limits that the files of a skill exceed, checked before reading them. `sizes` are by path."""
    if len(sizes) > MAX_FILES:
        return (SkillProblem("too_many_files", f"the skill has more than {MAX_FILES} files"),)
    if problems := tuple(
        SkillProblem("file_too_large", f"the file has {size} bytes; {MAX_FILE_SIZE} are allowed", path)
        for path, size in sizes.items()
        if size > MAX_FILE_SIZE
    ):
        return problems
    if (size := sum(sizes.values())) > MAX_SKILL_SIZE:
        return (SkillProblem("skill_too_large", f"the skill has {size} bytes; {MAX_SKILL_SIZE} are allowed"),)
    return ()


def read_skill(files: Mapping[str, bytes], folder: str | None, provenance: Provenance) -> tuple[Skill, CheckedSkill]:
    """The skill in the files of one folder; raises `InvalidSkillError`."""
    checked = checked_skill(files, folder=folder)
    return build_skill(checked, declared_access(checked.document), provenance), checked


def try_read_skill(files: Mapping[str, bytes], folder: str | None, provenance: Provenance) -> ReadResult:
    try:
        return read_skill(files, folder, provenance)[0]
    except InvalidSkillError as error:
        return error.problems


def collect(readings: Iterable[tuple[str, ReadResult]], commit: str | None = None) -> LoadedSkills:
    """The loaded skills of a source, from read results with folder paths. Of two equal names the first is used."""
    skills: dict[tuple[str, Access], tuple[str, Skill]] = {}
    problems: list[SkillProblem] = []
    for path, result in sorted(readings, key=lambda each: each[0]):
        if not isinstance(result, Skill):
            problems += (replace(each, path=f"{path}/{each.path}" if each.path else path) for each in result)
            continue
        key = result.name, result.access
        if key in skills:
            message = f"another folder has a skill of the same name, {skills[key][0]}, which is used instead"
            problems.append(SkillProblem("duplicate", message, path))
        else:
            skills[key] = path, result
    return LoadedSkills(tuple(skill for _, skill in skills.values()), tuple(problems), commit)
