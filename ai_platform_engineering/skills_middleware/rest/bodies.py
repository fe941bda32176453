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
from ai_platform_engineering.skills_middleware.rest.dependencies import RequestedSkillAccess
from ai_platform_engineering.skills_middleware.rest.problems import UnsupportedBodyError
from ai_platform_engineering.skills_middleware.rest.views import SkillBody
from ai_platform_engineering.skills_middleware.skill import DOCUMENT, InvalidSkillError, SkillProblem

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
"""The OpenAPI description of a request body with a skill."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A skill as received, not yet checked. An archive contains no visibility."""

    files: Mapping[str, bytes | str]
    folder: str | None = None
    access: RequestedSkillAccess = field(default_factory=RequestedSkillAccess)

    async def checked(self, name: str | None = None) -> CheckedSkill:
        """Check the skill; raises `InvalidSkillError` with every problem. `name` is the name that it must have."""
        checked = await asyncio.to_thread(checked_skill, self.files, folder=self.folder)
        if name is not None and checked.document.name != name:
            sentence = f"the name is {checked.document.name!r}, but the address has {name!r}"
            raise InvalidSkillError([SkillProblem("name", sentence, DOCUMENT)])
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
    return Submission(documents(body.content, body.files), access=RequestedSkillAccess(body.visibility, body.team))


def documents(content: str, files: Mapping[str, str]) -> dict[str, str]:
    """SKILL.md and the files beside it, by path."""
    if DOCUMENT in files:
        raise InvalidSkillError(
            [SkillProblem("path_conflict", f"content is {DOCUMENT}; leave it out of files", DOCUMENT)]
        )
    return {DOCUMENT: content, **files}
