"""SKILL.md: YAML front matter and instructions, in the open Agent Skills format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from ai_platform_engineering.skills_middleware.problems import InvalidSkillError, Problem
from ai_platform_engineering.skills_middleware.skill import DOCUMENT
from ai_platform_engineering.utils.yaml_files import parse

MAX_NAME_LENGTH: Final = 64
MAX_DESCRIPTION_LENGTH: Final = 1024
MAX_COMPATIBILITY_LENGTH: Final = 500
NAME_PATTERN: Final = r"^[a-z0-9]+(?:-[a-z0-9]+)*$"

_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed SKILL.md."""

    name: str
    description: str
    instructions: str
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()


def parse_document(text: str) -> Document:
    """The skill that a SKILL.md describes; raises `InvalidSkillError` with everything that is wrong."""
    found = _FRONT_MATTER.match(text)
    if found is None:
        raise InvalidSkillError(
            [Problem("front_matter", "must begin with front matter between two --- lines", DOCUMENT)]
        )
    try:
        keys: Any = parse(found[1])
    except yaml.YAMLError:
        raise InvalidSkillError([Problem("yaml", "the front matter is not valid YAML", DOCUMENT)]) from None
    if not isinstance(keys, dict):
        raise InvalidSkillError([Problem("front_matter", "the front matter must hold keys and values", DOCUMENT)])
    name, description = keys.get("name"), keys.get("description")
    problems = []
    if not isinstance(name, str) or len(name) > MAX_NAME_LENGTH or not re.fullmatch(NAME_PATTERN, name):
        problems.append(Problem("name", "name must be lower-case letters, digits and single hyphens", DOCUMENT))
    if not isinstance(description, str) or not 0 < len(description.strip()) <= MAX_DESCRIPTION_LENGTH:
        problems.append(
            Problem("description", f"description must have 1 to {MAX_DESCRIPTION_LENGTH} characters", DOCUMENT)
        )
    if problems:
        raise InvalidSkillError(problems)
    metadata = keys.get("metadata")
    return Document(
        name=str(name),
        description=" ".join(str(description).split()),
        instructions=text[found.end() :].strip(),
        metadata={str(key): str(value) for key, value in metadata.items()} if isinstance(metadata, dict) else {},
    )
