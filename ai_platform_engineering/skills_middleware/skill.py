"""A skill: its name and description, who may see it, and where it came from. Contents are read when needed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

Visibility = Literal["global", "team", "personal"]
SourceKind = Literal["built-in", "directory", "git", "api"]

DOCUMENT: Final = "SKILL.md"


@dataclass(frozen=True, slots=True)
class Access:
    """`holder` is the team of a team skill or the subject that owns a personal one; empty for a global skill."""

    visibility: Visibility = "global"
    holder: str = ""


GLOBAL: Final = Access()


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a skill came from. `origin` is a path in the source's directory, a repository with its commit, or the
    address of an API client."""

    kind: SourceKind
    origin: str = ""
    added_by: str | None = None
    added_at: datetime | None = None
    updated_by: str | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Skill:
    """What the catalog keeps in memory. `digest` changes with the contents and with the access; it is the ETag."""

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


@dataclass(frozen=True, slots=True)
class SkillContent:
    """The text of SKILL.md, the instructions in it (without front matter), and the files beside it by path."""

    document: str
    instructions: str
    files: Mapping[str, str] = field(default_factory=dict)


def content_digest(document: str, files: Mapping[str, str], access: Access) -> str:
    """A digest of everything a client can change."""
    hashed = hashlib.sha256(f"{access.visibility}\0{access.holder}\0{document}".encode())
    for path in sorted(files):
        hashed.update(f"\0{path}\0{len(files[path])}\0{files[path]}".encode())
    return hashed.hexdigest()[:32]
