"""SKILL.md: YAML front matter and instructions, in the open Agent Skills format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from ai_platform_engineering.skills_middleware import front_matter
from ai_platform_engineering.skills_middleware.front_matter import Value
from ai_platform_engineering.skills_middleware.skill import DOCUMENT, GLOBAL, Access, InvalidSkillError, SkillProblem
from ai_platform_engineering.utils.characters import quoted, unseen_character

MAX_NAME_LENGTH: Final = 64
MAX_DESCRIPTION_LENGTH: Final = 1024
MAX_LICENSE_LENGTH: Final = 500
MAX_COMPATIBILITY_LENGTH: Final = 500
NAME_PATTERN: Final = r"^[a-z0-9]+(?:-[a-z0-9]+)*$"

_KEYS: Final = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")


@dataclass(frozen=True, slots=True)
class SkillDocument:
    """A parsed SKILL.md. `warnings` are for its author and do not prevent the use of the skill."""

    name: str
    description: str
    instructions: str
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[SkillProblem, ...] = ()


def parse_document(text: str, folder: str | None = None) -> SkillDocument:
    """Parse a SKILL.md; raises `InvalidSkillError` with every problem.

    The format requires that the name equals the name of the skill's folder, if there is one.
    """
    text = text.removeprefix("\ufeff")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidSkillError([SkillProblem("encoding", "the text has half of a surrogate pair", DOCUMENT)]) from None
    header, body = front_matter.split(text)
    keys = front_matter.parse(header)
    checked = _FrontMatterKeys(keys)
    name = checked.name(folder)
    description = checked.line("description", MAX_DESCRIPTION_LENGTH, required=True)
    document = SkillDocument(
        name=name,
        description=description,
        instructions=body.replace("\r\n", "\n").strip(),
        license=checked.line("license", MAX_LICENSE_LENGTH) or None,
        compatibility=checked.line("compatibility", MAX_COMPATIBILITY_LENGTH) or None,
        metadata=checked.metadata(),
        warnings=tuple(_warnings(keys)),
    )
    if not document.instructions:
        checked.add("instructions", "there are no instructions after the front matter")
    if checked.problems:
        raise InvalidSkillError(checked.problems)
    return document


def declared_access(document: SkillDocument) -> Access:
    """The access that a skill of a directory or repository declares in its metadata.

    `visibility` is `global`, `team` (with the key `team`) or `personal` (with the key `owner`). Without `visibility`
    the skill is global, because other tools use the keys `team` and `owner` with other meanings.
    """
    metadata = document.metadata
    holders = {"global": None, "team": "team", "personal": "owner"}
    visibility = metadata.get("visibility")
    if visibility is None:
        return GLOBAL
    if visibility not in holders:
        raise _access_problem("visibility", f"metadata.visibility is {quoted(visibility)}; {', '.join(holders)} exist")
    key = holders[visibility]
    for other in ("team", "owner"):
        if other != key and other in metadata:
            raise _access_problem(
                "visibility", f"metadata.visibility {visibility} contradicts metadata.{other}; remove one of them"
            )
    match visibility:
        case "team":
            return Access("team", _holder(metadata, "team", visibility))
        case "personal":
            return Access("personal", _holder(metadata, "owner", visibility))
        case _:
            return GLOBAL


def _holder(metadata: Mapping[str, str], key: str, visibility: str) -> str:
    if not (holder := metadata.get(key, "").strip()):
        raise _access_problem(key, f"metadata.visibility {visibility} needs metadata.{key}")
    return holder


def _access_problem(code: str, message: str) -> InvalidSkillError:
    return InvalidSkillError([SkillProblem(code, message, DOCUMENT)])


class _FrontMatterKeys:
    """Validates the keys of front matter and collects their problems."""

    def __init__(self, keys: Mapping[str, Value]) -> None:
        self._keys = keys
        self.problems: list[SkillProblem] = []

    def add(self, code: str, message: str) -> None:
        self.problems.append(SkillProblem(code, message, DOCUMENT))

    def name(self, folder: str | None) -> str:
        name = self._keys.get("name")
        allowed = f"1 to {MAX_NAME_LENGTH} lower-case letters a-z, digits and single hyphens between them"
        if name is None:
            self.add("name", f"name is missing; it has {allowed}")
        elif not isinstance(name, str):
            self.add("name", f"name is a {_kind(name)}; it has {allowed}")
        elif len(name) > MAX_NAME_LENGTH or not re.fullmatch(NAME_PATTERN, name):
            self.add("name", f"name is {quoted(name)}; it has {allowed}")
        elif folder is not None and folder != name:
            self.add("name_folder", f"name is {quoted(name)}, but the folder is {quoted(folder)}; they must be equal")
        else:
            return name
        return ""

    def line(self, key: str, limit: int, *, required: bool = False) -> str:
        """The value of `key` on one line, with at most `limit` characters."""
        value = self._keys.get(key)
        if value is None or value == "":
            if required:
                self.add(key, f"{key} is missing; it has 1 to {limit} characters")
            return ""
        if not isinstance(value, str):
            self.add(key, f"{key} is a {_kind(value)}; it must be text")
            return ""
        line = " ".join(value.split())
        if not line:
            self.add(key, f"{key} is blank; it has 1 to {limit} characters")
        elif len(line) > limit:
            self.add(key, f"{key} {quoted(line)} has {len(line)} characters; {limit} are allowed")
        elif character := unseen_character(value):
            self.add("characters", f"{key} has the character {character}, which cannot be seen; remove it")
        return line

    def metadata(self) -> dict[str, str]:
        value = self._keys.get("metadata")
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.add("metadata", f"metadata is a {_kind(value)}; it must be a mapping of keys to texts")
            return {}
        metadata = {}
        for key, item in value.items():
            if isinstance(item, list | dict):
                self.add("metadata", f"metadata.{quoted(key)} is a {_kind(item)}; its value must be one text")
            elif character := unseen_character(key) or unseen_character(item or ""):
                self.add("characters", f"metadata.{quoted(key)} has the character {character}, which cannot be seen")
            else:
                metadata[key] = item or ""
        return metadata


def _kind(value: Value) -> str:
    match value:
        case list():
            return "list"
        case dict():
            return "mapping"
        case _:
            return "text"


def _warnings(keys: Mapping[str, Value]) -> list[SkillProblem]:
    warnings = []
    for key in keys:
        if key == "allowed-tools":
            warnings.append(
                SkillProblem("allowed_tools", "allowed-tools has no effect: a skill gives no rights to tools", DOCUMENT)
            )
        elif key not in _KEYS:
            near = get_close_matches(key[:MAX_NAME_LENGTH], _KEYS, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(_KEYS)}"
            warnings.append(SkillProblem("unknown_key", f"the key {quoted(key)} is ignored{hint}", DOCUMENT))
    metadata = keys.get("metadata")
    if isinstance(metadata, dict) and "visibility" not in metadata:
        warnings += [
            SkillProblem("visibility", f"metadata.{key} limits access only with metadata.visibility", DOCUMENT)
            for key in ("team", "owner")
            if key in metadata
        ]
    return warnings
