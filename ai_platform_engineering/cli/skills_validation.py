"""`platform-engineer skills validate`: checks skills on this machine with the same checks as before storing them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ai_platform_engineering.cli.printing import print_lines
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.archive_entry import MAX_ARCHIVE_SIZE
from ai_platform_engineering.skills_middleware.archives import read_archive
from ai_platform_engineering.skills_middleware.checks import CheckedSkill, checked_skill
from ai_platform_engineering.skills_middleware.skill import DOCUMENT, InvalidSkillError
from ai_platform_engineering.skills_middleware.sources.folder import read_folder
from ai_platform_engineering.text.plain_text import one_line
from ai_platform_engineering.utils.characters import clean
from ai_platform_engineering.utils.errors import ReadableError


class PathError(ReadableError):
    """A path cannot be read. The text has the reason."""


def validate_skills(options: argparse.Namespace, _settings: Settings) -> int:
    """Report on each skill. The exit code is 1 if one of them is invalid."""
    failed = False
    for path in options.paths:
        try:
            checked = check_path(path)
        except (InvalidSkillError, PathError) as error:
            failed = True
            _report_invalid(path, error, as_json=options.json)
            continue
        if options.json:
            print_lines(
                json.dumps({"path": str(path), "valid": True, "name": checked.document.name, **_facts(checked)})
            )
            continue
        print_lines(f"{path}: {checked.document.name} can be used.")
        for line in remarks(checked):
            print_lines(f"  {line}")
    return 1 if failed else 0


def check_path(path: Path) -> CheckedSkill:
    """Read and check the skill at `path`: a folder, a SKILL.md or an archive.

    Raises `InvalidSkillError` with all problems of the skill, or `PathError`.
    """
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


def remarks(checked: CheckedSkill) -> list[str]:
    """Warnings and findings of a valid skill."""
    warnings = [f"warning: {one_line(str(warning))}" for warning in checked.document.warnings]
    findings = [
        f"{finding.severity}: {one_line(finding.path)}, line {finding.line}: {one_line(finding.message)}"
        for finding in checked.findings
    ]
    return [*warnings, *findings]


def indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _report_invalid(path: Path, error: InvalidSkillError | PathError, *, as_json: bool) -> None:
    if not as_json:
        print_lines(f"{path}: not usable\n{indented(clean(str(error)))}")
        return
    problems = error.problems if isinstance(error, InvalidSkillError) else ()
    rows = [{"code": each.code, "path": each.path, "message": each.message} for each in problems]
    rows = rows or [{"code": "path", "path": str(path), "message": str(error)}]
    print_lines(json.dumps({"path": str(path), "valid": False, "problems": rows}))


def _read(path: Path) -> bytes:
    """The file's content, limited to what the checks need to reject a file that is too large."""
    with path.open("rb") as file:
        return file.read(MAX_ARCHIVE_SIZE + 1)


def _facts(checked: CheckedSkill) -> dict[str, object]:
    warnings = [{"code": each.code, "path": each.path, "message": each.message} for each in checked.document.warnings]
    findings = [
        {"severity": each.severity, "code": each.code, "path": each.path, "line": each.line, "message": each.message}
        for each in checked.findings
    ]
    return {"warnings": warnings, "findings": findings}
