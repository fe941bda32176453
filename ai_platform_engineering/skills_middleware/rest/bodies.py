"""Skills in the body of a request: JSON, or a zip or tar archive."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from ai_platform_engineering.skills_middleware.archives import read_archive
from ai_platform_engineering.skills_middleware.checks import CheckedSkill, checked_skill
from ai_platform_engineering.skills_middleware.problems import InvalidSkillError, Problem
from ai_platform_engineering.skills_middleware.rest.dependencies import RequestedAccess
from ai_platform_engineering.skills_middleware.rest.problems import UnsupportedBodyError
from ai_platform_engineering.skills_middleware.rest.views import SkillBody
from ai_platform_engineering.skills_middleware.skill import DOCUMENT

_JSON: Final = "application/json"
_ARCHIVES: Final = ("application/zip", "application/gzip", "application/x-tar", "application/octet-stream")

REQUEST_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            _JSON: {"schema": SkillBody.model_json_schema()},
            **{kind: {"schema": {"type": "string", "format": "binary"}} for kind in _ARCHIVES},
        },
    }
}
"""For the description of a route that reads a skill."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A skill as it was sent, not yet checked. An archive names no visibility."""

    files: Mapping[str, bytes | str]
    folder: str | None = None
    access: RequestedAccess = field(default_factory=RequestedAccess)

    async def checked(self, name: str | None = None) -> CheckedSkill:
        """Raises `InvalidSkillError` with everything that is wrong. `name` is the one that the skill has to have."""
        checked = await asyncio.to_thread(checked_skill, self.files, folder=self.folder)
        if name is not None and checked.document.name != name:
            sentence = f"the name is {checked.document.name!r}, and the address names {name!r}"
            raise InvalidSkillError([Problem("name", sentence, DOCUMENT)])
        return checked


async def read_submission(request: Request) -> Submission:
    declared = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if declared in _ARCHIVES:
        archive = await asyncio.to_thread(read_archive, await request.body())
        return Submission(archive.files, archive.folder)
    if declared != _JSON:
        raise UnsupportedBodyError(declared, (_JSON, *_ARCHIVES))
    try:
        body = SkillBody.model_validate_json(await request.body())
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False, include_input=False)) from None
    return Submission(documents(body.content, body.files), access=RequestedAccess(body.visibility, body.team))


def documents(content: str, files: Mapping[str, str]) -> dict[str, str]:
    """SKILL.md and the files beside it, by path."""
    if DOCUMENT in files:
        raise InvalidSkillError([Problem("path_conflict", f"content is {DOCUMENT}; leave it out of files", DOCUMENT)])
    return {DOCUMENT: content, **files}
