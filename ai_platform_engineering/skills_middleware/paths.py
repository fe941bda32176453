"""The paths of a skill's files: relative, portable to every file system, without ambiguous characters."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from ai_platform_engineering.skills_middleware.skill import SkillProblem
from ai_platform_engineering.utils.characters import quoted, unseen_character

MAX_PATH_LENGTH: Final = 200
MAX_DEPTH: Final = 4
"""Levels of a path, the file included."""

_DRIVE: Final = re.compile(r"[A-Za-z]:")
_NOT_PORTABLE: Final = re.compile(r'[\\<>:"|?*\t\n\r\f]')
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE)


def path_problem(path: str) -> SkillProblem | None:
    """The problem of `path`; None if it is allowed. `size_problem` checks its length and depth."""
    parts = re.split(r"[/\\]", path)
    code, reason = "", ""
    if path.startswith(("/", "\\")) or _DRIVE.match(path):
        code, reason = "absolute_path", "is absolute; paths are relative to the folder of the skill"
    elif ".." in parts:
        code, reason = "path_traversal", "leaves the folder of the skill with .."
    elif character := unseen_character(path):
        code, reason = "path_characters", f"has the character {character}, which cannot be seen"
    elif found := _NOT_PORTABLE.search(path):
        code, reason = "path_characters", f"has the character {quoted(found[0])}; folders are separated with /"
    elif not all(parts):
        code, reason = "path", "has an empty part"
    elif part := next((part for part in parts if part != part.strip(" ") or part.endswith(".")), None):
        code, reason = (
            "reserved_name",
            f"has the part {quoted(part)}, with a space or dot at an end",
        )
    elif part := next((part for part in parts if _RESERVED.fullmatch(part)), None):
        code, reason = "reserved_name", f"has the part {quoted(part)}, which Windows reserves for a device"
    return SkillProblem(code, f"the path {quoted(path)} {reason}") if code else None


def size_problem(path: str) -> SkillProblem | None:
    """The problem of a path that is too long or too deep; None otherwise."""
    if len(path) > MAX_PATH_LENGTH:
        return SkillProblem(
            "path_too_long", f"the path {quoted(path)} has {len(path)} characters; {MAX_PATH_LENGTH} are allowed"
        )
    if (depth := path.count("/") + 1) > MAX_DEPTH:
        return SkillProblem("path_too_deep", f"the path {quoted(path)} has {depth} levels; {MAX_DEPTH} are allowed")
    return None


def normalised(path: str) -> str:
    """`path` without `.` parts, in Unicode form NFC, because macOS writes names decomposed."""
    return unicodedata.normalize("NFC", "/".join(part for part in path.split("/") if part != "."))


def file_system_key(path: str) -> str:
    """A key that is equal for paths that some file system treats as the same file."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())
