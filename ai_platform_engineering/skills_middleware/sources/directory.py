"""Skills in a directory of this machine: one folder each."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ai_platform_engineering.skills_middleware.document import parse_document
from ai_platform_engineering.skills_middleware.problems import InvalidSkillError, Problem
from ai_platform_engineering.skills_middleware.skill import (
    DOCUMENT,
    GLOBAL,
    Provenance,
    Skill,
    SkillContent,
    SourceKind,
    content_digest,
)
from ai_platform_engineering.skills_middleware.sources.source import Loaded, SkillGoneError, Source


def library_directory() -> Path:
    """Where the skills that come with the product are."""
    return Path(__file__).parent.parent / "library"


class DirectorySource(Source):
    def __init__(self, path: Path, name: str = "directory", kind: SourceKind = "directory") -> None:
        self.path, self.name, self.kind = path, name, kind

    async def load(self) -> Loaded:
        return await asyncio.to_thread(self._load)

    async def content(self, skill: Skill) -> SkillContent:
        try:
            document = await asyncio.to_thread((self.path / skill.name / DOCUMENT).read_text, "utf-8")
        except OSError as error:
            raise SkillGoneError(skill.name) from error
        return SkillContent(document, parse_document(document).instructions)

    def _load(self) -> Loaded:
        skills, problems = [], []
        for file in sorted(self.path.glob(f"*/{DOCUMENT}")):
            try:
                text = file.read_text("utf-8")
                document = parse_document(text)
            except (InvalidSkillError, OSError, UnicodeDecodeError) as error:
                problems.append(Problem("unusable", str(error), str(file)))
                continue
            skills.append(
                Skill(
                    document.name,
                    document.description,
                    Provenance(self.kind, str(file.parent)),
                    size=len(text.encode()),
                    digest=content_digest(text, {}, GLOBAL),
                )
            )
        return Loaded(tuple(skills), tuple(problems))
