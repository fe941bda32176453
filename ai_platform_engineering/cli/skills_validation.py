"""`platform-engineer skills validate`: checks skills of this machine as they are checked before they are stored."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ai_platform_engineering.cli.skills_path import PathError, checked_path
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.checks import CheckedSkill
from ai_platform_engineering.skills_middleware.problems import InvalidSkillError
from ai_platform_engineering.text.plain_text import clean, one_line


def validate_skills(options: argparse.Namespace, _settings: Settings) -> int:
    """Report on each skill; 1 if one of them cannot be used."""
    failed = False
    for path in options.paths:
        try:
            checked = checked_path(path)
        except (InvalidSkillError, PathError) as error:
            failed = True
            _report_invalid(path, error, as_json=options.json)
            continue
        if options.json:
            _print(json.dumps({"path": str(path), "valid": True, "name": checked.document.name, **_facts(checked)}))
            continue
        _print(f"{path}: {checked.document.name} can be used.")
        for line in remarks(checked):
            _print(f"  {line}")
    return 1 if failed else 0


def remarks(checked: CheckedSkill) -> list[str]:
    """What people should know of a skill that can be used."""
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
        _print(f"{path}: not usable\n{indented(clean(str(error)))}")
        return
    problems = error.problems if isinstance(error, InvalidSkillError) else ()
    rows = [{"code": each.code, "path": each.path, "message": each.message} for each in problems]
    rows = rows or [{"code": "path", "path": str(path), "message": str(error)}]
    _print(json.dumps({"path": str(path), "valid": False, "problems": rows}))


def _facts(checked: CheckedSkill) -> dict[str, object]:
    warnings = [{"code": each.code, "path": each.path, "message": each.message} for each in checked.document.warnings]
    findings = [
        {"severity": each.severity, "code": each.code, "path": each.path, "line": each.line, "message": each.message}
        for each in checked.findings
    ]
    return {"warnings": warnings, "findings": findings}


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
