"""A skill as the catalog holds it: name, description, access and provenance, and the problems a skill can have.

Instructions and files are not part of it; they are loaded when they are needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from ai_platform_engineering.identity.principal import Principal

Visibility = Literal["global", "team", "personal"]
SourceKind = Literal["built-in", "directory", "git", "api"]

DOCUMENT: Final = "SKILL.md"


@dataclass(frozen=True, slots=True)
class Access:
    """`holder` is the team of a team skill, or the subject that owns a personal skill; empty for a global skill."""

    visibility: Visibility = "global"
    holder: str = ""


GLOBAL: Final = Access()


def holder_of(caller: Principal) -> str | None:
    """The holder of the caller's personal skills. A user that a bot speaks for is not the holder of a token with the
    same subject."""
    return caller.owner if caller.verified_by == "statement" else caller.subject


def visible_accesses(caller: Principal) -> frozenset[Access]:
    """The accesses that `caller` has: a skill with one of them is visible."""
    holder = holder_of(caller)
    personal = {Access("personal", holder)} if holder is not None else set()
    return frozenset({GLOBAL, *personal, *(Access("team", team) for team in caller.groups)})


def may_see(access: Access, caller: Principal) -> bool:
    return access in visible_accesses(caller)


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of a skill. `origin` is a path in the source's directory, a repository with its commit, or the
    address of an API client."""

    kind: SourceKind
    origin: str = ""
    added_by: str | None = None
    added_at: datetime | None = None
    updated_by: str | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Skill:
    """A catalog entry. `digest` changes with the contents and the access; it is the ETag."""

    name: str
    description: str
    provenance: Provenance
    access: Access = GLOBAL
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    """The paths of the files beside SKILL.md."""
    size: int = 0
    """Bytes of SKILL.md and the files."""
    digest: str = ""

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags in `metadata.tags` of the front matter, which are separated by commas."""
        words = (word.strip().lower() for word in self.metadata.get("tags", "").split(","))
        return tuple(dict.fromkeys(word for word in words if word))


@dataclass(frozen=True, slots=True)
class SkillContent:
    """The text of SKILL.md, its instructions (the text without front matter), and the other files by path."""

    document: str
    instructions: str
    files: Mapping[str, str] = field(default_factory=dict)


def content_digest(document: str, files: Mapping[str, str], access: Access) -> str:
    """A digest of all values that a client can change."""
    hashed = hashlib.sha256(f"{access.visibility}\0{access.holder}\0{document}".encode())
    for path in sorted(files):
        hashed.update(f"\0{path}\0{len(files[path])}\0{files[path]}".encode())
    return hashed.hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class SkillProblem:
    """A reason why a skill cannot be used, or a warning for its author.

    `code` is stable, for example `name` or `symlink`. `path` names the file; it is empty for the skill as a whole.
    """

    code: str
    message: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidSkillError(ValueError):
    """A skill cannot be used. The text has one line per problem."""

    def __init__(self, problems: Iterable[SkillProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))
