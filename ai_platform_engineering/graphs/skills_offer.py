"""The skills that a run may read: the catalog's skills that its caller may see, or those sent with a delegation.

An agent has the skills that its manifest names. The supervisor selects them for both placements; a remote agent gets
them, with their contents, in the signed metadata of the delegation.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from ai_platform_engineering.identity.principal import ANONYMOUS
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
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext

logger = logging.getLogger(__name__)

MAX_DELEGATED_BYTES: Final = 256 * 1024
"""Maximum size of the skills of one agent."""

# Skills take at most a quarter of a request: JSON may double their size, and the request has other content.
_SHARE_OF_REQUEST: Final = 4


@dataclass(frozen=True, slots=True)
class SkillOffer:
    """The skills of a run. `content` reads one of them and raises the errors of the catalog's `content`."""

    view: SkillView
    content: Callable[[Skill], Awaitable[SkillContent]]


class DelegatedSkill(BaseModel):
    """A skill in the metadata of a delegation."""

    name: str
    description: str
    instructions: str
    files: dict[str, str] = {}
    source: SourceKind
    visibility: Visibility

    @property
    def skill(self) -> Skill:
        # The owner is not sent: the supervisor has already decided that the caller may see the skill.
        access = Access(self.visibility)
        return Skill(self.name, self.description, Provenance(self.source), access, files=tuple(sorted(self.files)))


class SkillOffers:
    """The skills that one agent may use. `names` None means all skills, for the supervisor."""

    def __init__(
        self, catalog: SkillCatalog, settings: Settings, agent: str, names: Sequence[str] | None = None
    ) -> None:
        self._catalog = catalog
        self._agent = agent
        self._names = None if names is None else tuple(dict.fromkeys(names))
        self._max_size = min(MAX_DELEGATED_BYTES, settings.max_request_bytes // _SHARE_OF_REQUEST)
        self._reported: set[str] = set()

    async def refresh(self) -> None:
        """Load changes that other processes made to the catalog. Call it at the start of a turn."""
        await self._catalog.reload_changed()

    def offer(self, context: RequestContext | None) -> SkillOffer:
        """The skills for a request, as they are now."""
        if context is not None and context.skills is not None:
            return delegated_offer(context.skills)
        view = self._catalog.view(ANONYMOUS if context is None else context.caller)
        return SkillOffer(view if self._names is None else self._chosen(view, self._names), self._catalog.content)

    async def for_delegation(self, context: RequestContext) -> tuple[Mapping[str, Any], ...]:
        """The skills for the metadata of a delegation to the agent."""
        await self.refresh()
        offer = self.offer(context)
        skills = []
        for skill in offer.view.skills.values():
            try:
                content = await offer.content(skill)
            except SkillGoneError:
                continue
            except SourceUnavailableError as error:
                logger.warning("%s runs without the skill %s: %s", self._agent, skill.name, error)
                continue
            skills.append(
                DelegatedSkill(
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
                    "%s: the skill %s is left out, because the skills of an agent may have at most %d bytes in total",
                    self._agent,
                    skill.name,
                    self._max_size,
                )
        return SkillView(dict(sorted(chosen.items())), {})


def delegated_offer(entries: Sequence[Mapping[str, Any]]) -> SkillOffer:
    """The skills in a delegation's metadata. Invalid entries are left out."""
    by_name: dict[str, DelegatedSkill] = {}
    for entry in entries:
        try:
            skill = DelegatedSkill.model_validate(entry)
        except ValidationError:
            logger.warning("A skill in the delegation is invalid and is left out")
            continue
        by_name[skill.name] = skill

    async def content(skill: Skill) -> SkillContent:
        sent = by_name[skill.name]
        return SkillContent(sent.instructions, sent.instructions, sent.files)

    return SkillOffer(SkillView({name: by_name[name].skill for name in sorted(by_name)}, {}), content)
