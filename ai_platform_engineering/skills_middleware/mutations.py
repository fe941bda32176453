"""Changes of skills through the API: authorization, and the writes to the store."""

from __future__ import annotations

from dataclasses import dataclass

from ai_platform_engineering.audit.log import NO_AUDIT, Audit
from ai_platform_engineering.audit.record import AuditFact
from ai_platform_engineering.identity.access import sees_everything
from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.skills_middleware.checks import CheckedSkill, build_skill
from ai_platform_engineering.skills_middleware.skill import (
    GLOBAL,
    Access,
    Provenance,
    Skill,
    Visibility,
    holder_of,
    may_see,
)
from ai_platform_engineering.skills_middleware.store.store import NewSkill, SkillKey, SkillStore
from ai_platform_engineering.utils.errors import ReadableError


class AccessError(ReadableError):
    """The visibility and the team of a request contradict each other."""


class NotAllowedError(ReadableError):
    """The caller may not change skills that have this access."""


class NotStoredError(ReadableError):
    """The skill comes from a source that the API cannot write to."""

    def __init__(self, skill: Skill) -> None:
        source = skill.provenance
        place = f"{source.kind} ({source.origin})" if source.origin and source.kind != "built-in" else source.kind
        super().__init__(
            f"{skill.name} comes from the source {place}, which the API does not change. Create a skill of the same "
            "name with POST /skills: it overrides this one."
        )


class SkillsDisabledError(ReadableError):
    def __init__(self) -> None:
        super().__init__("Skills are switched off on this server. Set ENABLE_SKILLS=true to use them.")


def requested_access(visibility: Visibility, team: str | None, caller: Principal) -> Access:
    """The access for the visibility and team of a request. Personal skills belong to the caller."""
    match visibility:
        case "team" if team:
            return Access("team", team)
        case "team":
            raise AccessError("A team skill needs the name of its team: set team.")
        case _ if team:
            raise AccessError(f"A {visibility} skill has no team: leave team out, or set visibility to team.")
        case "personal":
            return Access("personal", holder_of(caller) or "")
        case "global":
            return GLOBAL


def check_may_change(access: Access, caller: Principal, settings: Settings) -> None:
    """Raise `NotAllowedError` unless the caller may change skills with this access.

    A caller who may change a skill may also see it.
    """
    match access.visibility:
        case "global":
            if not sees_everything(caller) and caller.subject not in _admins(settings):
                raise NotAllowedError(
                    "Global skills may be changed with a key of the role admin, or with an access token whose subject "
                    "is in SKILLS_ADMINS. Set visibility to personal for a skill of your own."
                )
        case "team":
            if not may_see(access, caller):
                raise NotAllowedError(
                    f"Skills of the team {access.holder!r} may be changed by its members only, and this request does "
                    "not prove that you are a member. Set visibility to personal for a skill of your own."
                )
        case "personal":
            if not may_see(access, caller):
                raise NotAllowedError(
                    "Personal skills need an authenticated caller: send an access token with a subject, or the key of "
                    "the server. Set visibility to global for a skill that all callers see."
                )


@dataclass(frozen=True, slots=True)
class SkillChanges:
    """Changes by one caller. `origin` is the caller's network address."""

    catalog: SkillCatalog
    settings: Settings
    caller: Principal
    origin: str = ""
    audit: Audit = NO_AUDIT

    async def create(self, checked: CheckedSkill, access: Access) -> Skill:
        """Store a new skill.

        Like the other methods, it raises `NotAllowedError` and the errors of the store, here `AlreadyExistsError`.
        """
        self.check_access(access)
        stored = await self._store().create(self._new(checked, access), self.caller.subject)
        await self.catalog.reload_stored()
        return stored

    async def replace(self, skill: Skill, checked: CheckedSkill, access: Access, digest: str | None) -> Skill:
        """Store `checked` in place of `skill` if its digest is still `digest`. None replaces any version."""
        store = self._checked_store(skill)
        self.check_access(access)
        stored = await store.replace(SkillKey.of(skill), self._new(checked, access), digest, self.caller.subject)
        await self.catalog.reload_stored()
        return stored

    async def delete(self, skill: Skill, digest: str | None) -> None:
        await self._checked_store(skill).delete(SkillKey.of(skill), digest)
        target = f"{skill.access.visibility} skill {skill.name}"
        self.audit.record(AuditFact("data_deleted", self.caller, address=self.origin, target=target))
        await self.catalog.reload_stored()

    def check_access(self, access: Access) -> None:
        """Raise `NotAllowedError` unless the caller may change skills with this access."""
        check_may_change(access, self.caller, self.settings)

    def check(self, skill: Skill) -> None:
        """Raise the error that a change of `skill` by the caller would raise."""
        self._checked_store(skill)

    def _checked_store(self, skill: Skill) -> SkillStore:
        self.check_access(skill.access)
        if skill.provenance.kind != "api":
            raise NotStoredError(skill)
        return self._store()

    def _store(self) -> SkillStore:
        if self.catalog.store is None:
            raise SkillsDisabledError
        return self.catalog.store

    def _new(self, checked: CheckedSkill, access: Access) -> NewSkill:
        return NewSkill(build_skill(checked, access, Provenance("api", self.origin)), checked.content)


def _admins(settings: Settings) -> frozenset[str]:
    return frozenset(name for each in settings.skills_admins.split(",") if (name := each.strip()))
