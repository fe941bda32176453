"""The catalog: the current skills of all sources.

Requests read immutable snapshots. A source that changes is loaded again, and a new snapshot replaces the old one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.installation import install_command
from ai_platform_engineering.policy.decisions import Policy
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.skills_middleware.skill import Skill, SkillContent, SkillProblem, SourceKind
from ai_platform_engineering.skills_middleware.snapshot import CatalogSnapshot, ContentKey, SourceState, content_key
from ai_platform_engineering.skills_middleware.sources.api import ApiSource
from ai_platform_engineering.skills_middleware.sources.directory import DirectorySource, library_directory
from ai_platform_engineering.skills_middleware.sources.git_source import git_sources
from ai_platform_engineering.skills_middleware.sources.source import SkillGoneError, SkillSource, SourceUnavailableError
from ai_platform_engineering.skills_middleware.store.sqlite import SqliteSkillStore
from ai_platform_engineering.skills_middleware.store.store import SkillStore
from ai_platform_engineering.skills_middleware.view import Overridden, SkillView

logger = logging.getLogger(__name__)

_MAX_CONTENTS: Final = 32
_CHECK_TIMEOUT_SECONDS: Final = 1.0
"""How long a turn waits for a store that does not answer. After that it uses the skills loaded last."""
_RETRY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source: the `count` skills were loaded at `loaded_at`, when the source was last readable."""

    name: str
    kind: SourceKind
    count: int
    loaded_at: datetime | None
    commit: str | None
    problems: tuple[SkillProblem, ...]


@dataclass(frozen=True, slots=True)
class CatalogStatus:
    """`total` counts the skills of all sources. `overridden` are skills hidden by another one of the same name."""

    generation: int
    loaded_at: datetime | None
    total: int
    sources: tuple[SourceStatus, ...]
    overridden: tuple[Overridden, ...]


class SkillCatalog:
    """Call `start` before use and `aclose` after. `store` has the skills of the API; None if skills are disabled."""

    def __init__(
        self, settings: Settings, sources: Sequence[SkillSource] | None = None, policy: Policy | None = None
    ) -> None:
        self._policy = policy or Policy()
        self.store: SkillStore | None = skill_store(settings) if settings.enable_skills else None
        if self.store is None:
            sources = []
        elif sources is None:
            sources = [*_sources(settings), ApiSource(self.store)]
        self._sources: Mapping[str, SkillSource] = {source.name: source for source in sources}
        self._states: dict[str, SourceState] = {name: SourceState() for name in self._sources}
        self._snapshot = CatalogSnapshot({})
        self.generation = 0
        """Incremented with every change of the skills in the catalog."""
        self._contents: OrderedDict[ContentKey, SkillContent] = OrderedDict()
        self._loading = asyncio.Lock()
        self._reload_lock = asyncio.Lock()
        self._checks_started = 0
        self._check_after: dict[str, float] = {}
        self._watchers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Load all sources from local files and stores without fetching, and start to watch them for changes."""
        await self._load(self._sources.values())
        self._watchers = [asyncio.create_task(self._watch(source)) for source in self._sources.values()]

    async def aclose(self) -> None:
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        if self.store is not None:
            await self.store.aclose()

    async def refresh(self) -> None:
        """Fetch the remote sources and load every source again."""
        results = await asyncio.gather(*(source.refresh() for source in self._sources.values()), return_exceptions=True)
        for name, result in zip(self._sources, results, strict=True):
            if isinstance(result, Exception):
                logger.error("The source %s cannot be refreshed", name, exc_info=result)
        await self._load(self._sources.values())

    async def reload_changed(self) -> None:
        """Load the sources that other processes have changed. Called at the start of every turn, so it is cheap."""
        arrived = self._checks_started
        async with self._reload_lock:
            if self._checks_started > arrived:
                return  # another caller's check started after this call and has just finished
            self._checks_started += 1
            # One after the other, without a task for each: most answer at once.
            if changed := [source for source in self._sources.values() if await self._has_changed(source)]:
                await self._load(changed)

    async def reload_stored(self) -> None:
        """Load the skills of the store again, after a change by this process. Unlike a turn, it waits for the store."""
        await self._load([source for source in self._sources.values() if source.kind == "api"])

    def view(self, caller: Principal) -> SkillView:
        """The skills that `caller` may see."""
        view = self._snapshot.view(caller)
        hidden = self._policy.of(caller).hidden("skills", view.skills) if self._policy.rules else frozenset()
        return view.without(hidden) if hidden else view

    async def content(self, skill: Skill) -> SkillContent:
        """The instructions and files of a skill.

        Raises `SkillGoneError` if it has been removed or changed meanwhile, `SourceUnavailableError` if its source
        cannot be read.
        """
        name = self._snapshot.source_name(skill)
        if name is None:
            raise SkillGoneError(skill.name)
        key = content_key(skill)
        if (content := self._contents.get(key)) is None:
            content = self._contents[key] = await self._sources[name].content(skill)
            if len(self._contents) > _MAX_CONTENTS:
                self._contents.popitem(last=False)
        self._contents.move_to_end(key)
        return content

    def status(self, caller: Principal = ANONYMOUS) -> CatalogStatus:
        """The state of every source, and the overridden skills that `caller` may see."""
        sources = tuple(
            SourceStatus(
                name,
                self._sources[name].kind,
                len(state.loaded.skills),
                state.loaded_at,
                state.loaded.commit,
                state.problems,
            )
            for name, state in self._states.items()
        )
        return CatalogStatus(
            generation=self.generation,
            loaded_at=max((source.loaded_at for source in sources if source.loaded_at is not None), default=None),
            total=sum(source.count for source in sources),
            sources=sources,
            overridden=tuple(each for hidden in self.view(caller).overridden.values() for each in hidden),
        )

    async def _has_changed(self, source: SkillSource) -> bool:
        if asyncio.get_running_loop().time() < self._check_after.get(source.name, 0):
            return False
        try:
            async with asyncio.timeout(_CHECK_TIMEOUT_SECONDS):
                return await source.changed() or self._states[source.name].unavailable is not None
        except SourceUnavailableError as error:
            self._note_unavailable(source, str(error))
        except TimeoutError:
            self._note_unavailable(source, f"It did not answer within {_CHECK_TIMEOUT_SECONDS:g} s.")
        return False

    async def _load(self, sources: Iterable[SkillSource]) -> None:
        """Load the given sources and publish a new snapshot. A source that fails keeps the skills loaded last."""
        async with self._loading:
            before = {name: state.loaded.skills for name, state in self._states.items()}
            await asyncio.gather(*(self._load_source(source) for source in sources))
            after = {name: state.loaded.skills for name, state in self._states.items()}
            if after != before or self.generation == 0:
                self._snapshot = await asyncio.to_thread(CatalogSnapshot, after)
                self.generation += 1

    async def _load_source(self, source: SkillSource) -> None:
        try:
            loaded = await source.load()
        except SourceUnavailableError as error:
            self._note_unavailable(source, str(error))
        except Exception:
            logger.exception("The skills of the source %s cannot be loaded", source.name)
            self._note_unavailable(source, "Loading failed with an unexpected error; see the log.")
        else:
            for problem in set(loaded.problems).difference(self._states[source.name].loaded.problems):
                logger.warning("Skills of the source %s: %s", source.name, problem)
            self._states[source.name] = SourceState(loaded, datetime.now(UTC))

    def _note_unavailable(self, source: SkillSource, reason: str) -> None:
        state = self._states[source.name]
        problem = SkillProblem("unavailable", reason)
        if state.unavailable != problem:
            logger.warning("Skills of the source %s are not up to date: %s", source.name, reason)
        self._states[source.name] = replace(state, unavailable=problem)
        self._check_after[source.name] = asyncio.get_running_loop().time() + _RETRY_SECONDS

    async def _watch(self, source: SkillSource) -> None:
        try:
            async with aclosing(source.changes()) as changes:
                async for _ in changes:
                    await self._load([source])
        except Exception:
            logger.exception("Watching the source %s for changes failed", source.name)
            self._note_unavailable(source, "Changes are no longer detected. Refresh the skills to load them.")


def _sources(settings: Settings) -> list[SkillSource]:
    sources: list[SkillSource] = [DirectorySource(library_directory(), "built-in", "built-in")]
    if settings.skills_dir is not None:
        sources.append(DirectorySource(settings.skills_dir, watched=True))
    return [*sources, *git_sources(settings)]


def skills_file(settings: Settings) -> Path:
    return settings.data_dir / "skills.db"


def skill_store(settings: Settings) -> SkillStore:
    """The store that the settings select, not yet connected. Raises `SettingsError` if the driver is not installed."""
    if settings.skills_database_url is None:
        return SqliteSkillStore(skills_file(settings))
    try:
        from ai_platform_engineering.skills_middleware.store.postgres import PostgresSkillStore  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"SKILLS_DATABASE_URL needs {error.name}, which is not installed: {install_command('postgres')}. "
            "Without SKILLS_DATABASE_URL skills are stored in a file."
        ) from error
    return PostgresSkillStore(settings.skills_database_url.get_secret_value())
