"""Which skills a run may read: those of the catalog that its caller sees, or those that the supervisor handed over.

An agent has the skills that its manifest names. They are chosen in one place for both placements; a remote agent gets
them, with their contents, in the metadata that the supervisor signs.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.skills_middleware.skill import (
    Access,
    Provenance,
    Skill,
    SkillContent,
    SourceKind,
    Visibility,
)
from ai_platform_engineering.skills_middleware.sources.source import SkillGoneError, SourceUnavailableError
from ai_platform_engineering.skills_middleware.view import SkillView
from ai_platform_engineering.utils.a2a_common.caller import ANONYMOUS
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext

logger = logging.getLogger(__name__)

MAX_HANDED_OVER: Final = 256 * 1024
"""Bytes of skills that one agent gets."""

# JSON may take two bytes for one, and the request has more in it than skills.
_SHARE_OF_REQUEST: Final = 4


@dataclass(frozen=True, slots=True)
class Offer:
    """The skills of a run. `content` reads one of them, and raises what the catalog's `content` does."""

    view: SkillView
    content: Callable[[Skill], Awaitable[SkillContent]]


class HandedOver(BaseModel):
    """A skill in the metadata of a delegation."""

    name: str
    description: str
    instructions: str
    files: dict[str, str] = {}
    source: SourceKind
    visibility: Visibility

    @property
    def skill(self) -> Skill:
        # The holder is not sent: the supervisor has decided who may see the skill.
        access = Access(self.visibility)
        return Skill(self.name, self.description, Provenance(self.source), access, files=tuple(sorted(self.files)))


class SkillOffers:
    """The skills of one agent, or with `names` None every skill, for the supervisor."""

    def __init__(
        self, catalog: SkillCatalog, settings: Settings, agent: str, names: Sequence[str] | None = None
    ) -> None:
        self._catalog = catalog
        self._agent = agent
        self._names = None if names is None else tuple(dict.fromkeys(names))
        self._max_size = min(MAX_HANDED_OVER, settings.max_request_bytes // _SHARE_OF_REQUEST)
        self._reported: set[str] = set()

    async def settle(self) -> None:
        """Take over what other processes have changed in the catalog; awaited where a turn begins."""
        await self._catalog.settle()

    def offer(self, context: RequestContext | None) -> Offer:
        """The skills as they are now."""
        if context is not None and context.skills is not None:
            return received(context.skills)
        view = self._catalog.view(ANONYMOUS if context is None else context.caller)
        return Offer(view if self._names is None else self._chosen(view, self._names), self._catalog.content)

    async def handed_over(self, context: RequestContext) -> tuple[Mapping[str, Any], ...]:
        """The skills for the metadata of a delegation to the agent."""
        await self.settle()
        offer = self.offer(context)
        skills = []
        for skill in offer.view.skills.values():
            try:
                content = await offer.content(skill)
            except SkillGoneError:
                continue
            except SourceUnavailableError as error:
                logger.warning("%s works without the skill %s: %s", self._agent, skill.name, error)
                continue
            skills.append(
                HandedOver(
                    name=skill.name,
                    description=skill.description,
                    instructions=content.instructions,
                    files=dict(content.files),
                    source=skill.provenance.kind,
                    visibility=skill.access.visibility,
                ).model_dump()
            )
        return tuple(skills)

    def _chosen(self, view: SkillView, names: Sequence[str]) -> SkillView:
        chosen: dict[str, Skill] = {}
        size = 0
        for skill in (view.skills[name] for name in names if name in view.skills):
            if size + skill.size <= self._max_size:
                size += skill.size
                chosen[skill.name] = skill
            elif skill.name not in self._reported:
                self._reported.add(skill.name)
                logger.warning(
                    "%s: the skill %s is left out, as the skills of an agent may have %d bytes together",
                    self._agent,
                    skill.name,
                    self._max_size,
                )
        return SkillView(dict(sorted(chosen.items())), {})


def received(entries: Sequence[Mapping[str, Any]]) -> Offer:
    """The skills that a supervisor has handed over. An entry that cannot be read is left out."""
    by_name: dict[str, HandedOver] = {}
    for entry in entries:
        try:
            skill = HandedOver.model_validate(entry)
        except ValidationError:
            logger.warning("A skill in a delegation could not be read, so the agent works without it")
            continue
        by_name[skill.name] = skill

    async def content(skill: Skill) -> SkillContent:
        handed = by_name[skill.name]
        return SkillContent(handed.instructions, handed.instructions, handed.files)

    return Offer(SkillView({name: by_name[name].skill for name in sorted(by_name)}, {}), content)
