"""Skills of a Git repository, read from a local copy that stays at its commit until it is refreshed."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Final

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.skill import Skill, SkillContent, SkillProblem, SourceKind
from ai_platform_engineering.skills_middleware.sources.git_address import (
    GitAddress,
    GitAddressError,
    parse_git_address,
    redacted_entry,
)
from ai_platform_engineering.skills_middleware.sources.git_commands import Git, GitError
from ai_platform_engineering.skills_middleware.sources.reading import collect
from ai_platform_engineering.skills_middleware.sources.repository import BareRepository
from ai_platform_engineering.skills_middleware.sources.source import (
    LoadedSkills,
    SkillGoneError,
    SkillSource,
    SourceUnavailableError,
)
from ai_platform_engineering.utils.private_files import make_private_directory

FETCH_SECONDS: Final = 120.0
MAX_REPOSITORY_SIZE: Final = 200 * 2**20
FIRST_RETRY_SECONDS: Final = 10.0
MAX_RETRY_SECONDS: Final = 600.0

FORMAT: Final = 1
"""The version of the format of a local copy. A copy of another format is not used, and is fetched again."""
_CURRENT: Final = "current.json"


class GitSource(SkillSource):
    kind: SourceKind = "git"

    def __init__(self, address: GitAddress, copies: Path, token: str | None = None) -> None:
        """`copies` is the directory for the local copies of all repositories."""
        self.name = f"git:{address}"
        self._address = address
        self._copy = copies / address.digest
        self._git = Git.for_address(address, token)
        self._loaded: LoadedSkills | None = None
        self._problem: SkillProblem | None = None
        """The reason why the last fetch failed; None if it succeeded."""
        self._is_damaged = False
        self._fetching = asyncio.Lock()

    async def load(self) -> LoadedSkills:
        commit = await asyncio.to_thread(self._commit)
        if commit is None:
            waiting = SkillProblem(
                "fetching",
                f"{self._address} has no copy on this machine yet. A supervisor fetches it in the background; "
                "`platform-engineer skills refresh` fetches it at once.",
            )
            return LoadedSkills(problems=(self._problem or waiting,))
        if self._loaded is None or self._loaded.commit != commit:
            try:
                readings = await self._repository(commit).readings(
                    commit, self._address.folder, f"{self._address.address}@{commit}"
                )
            except GitError as error:
                self._is_damaged = True
                raise SourceUnavailableError(f"The copy of {self._address} cannot be read: {error}") from error
            self._loaded = collect(readings, commit)
        if self._problem is None:
            return self._loaded
        return replace(self._loaded, problems=(self._problem, *self._loaded.problems))

    async def content(self, skill: Skill) -> SkillContent:
        if self._loaded is None or self._loaded.commit is None:
            raise SkillGoneError(skill.name)
        commit = self._loaded.commit
        try:
            return await self._repository(commit).content(commit, self._address.folder, skill)
        except GitError as error:
            raise SourceUnavailableError(f"The copy of {self._address} cannot be read: {error}") from error

    async def changed(self) -> bool:
        loaded = self._loaded.commit if self._loaded is not None else None
        return await asyncio.to_thread(self._commit) != loaded

    async def changes(self) -> AsyncGenerator[None]:
        """Fetch a repository that has no local copy yet, and retry with back-off until that succeeds."""
        seconds = FIRST_RETRY_SECONDS
        while await asyncio.to_thread(self._commit) is None:
            await self.refresh()
            yield
            if self._problem is not None:
                await asyncio.sleep(seconds)
                seconds = min(seconds * 2, MAX_RETRY_SECONDS)
        if await self.changed():
            yield  # another process has fetched it since this one looked for a copy

    async def refresh(self) -> None:
        async with self._fetching:
            is_complete = self._address.is_pinned and await asyncio.to_thread(self._commit) == self._address.ref
            if is_complete and not self._is_damaged:
                return
            try:
                await self._fetch()
            except GitError as error:
                self._problem = SkillProblem("fetch_failed", f"{self._address} cannot be fetched: {error}")
            except OSError as error:
                self._problem = SkillProblem(
                    "fetch_failed",
                    f"The copy of {self._address} cannot be written to {self._copy}: {error.strerror}. Check that the "
                    "directory can be written and has room, or choose another one with DATA_DIR.",
                )
            else:
                self._problem, self._is_damaged = None, False

    async def _fetch(self) -> None:
        """Fetch into a new directory and then switch to it, so that an interrupted fetch keeps the last copy."""
        await asyncio.to_thread(self._make_directory)
        directory = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=self._copy, prefix=".fetching-"))
        try:
            commit = await BareRepository(self._git, directory).fetch(self._address, FETCH_SECONDS, MAX_REPOSITORY_SIZE)
            await asyncio.to_thread(self._install, directory, commit)
        finally:
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)

    def _make_directory(self) -> None:
        # One by one, because `mkdir(parents=True)` would create parents with the default mode.
        for directory in (*reversed(self._copy.parents), self._copy):
            make_private_directory(directory)

    def _install(self, directory: Path, commit: str) -> None:
        target = self._copy / f"{commit}.git"
        if self._is_damaged:
            shutil.rmtree(target, ignore_errors=True)
        if not target.exists():
            try:
                directory.rename(target)
            except OSError:
                if not target.exists():  # otherwise another process has fetched it at the same time
                    raise
        before = self._commit()
        current = self._copy / f"{_CURRENT}{directory.name}"
        content = {"format": FORMAT, "address": self._address.address, "commit": commit}
        current.write_text(json.dumps(content), encoding="utf-8")
        current.replace(self._copy / _CURRENT)
        # Requests may still be reading the previous copy; older ones are unused.
        for old in self._copy.glob("*.git"):
            if old.name not in {f"{commit}.git", f"{before}.git"}:
                shutil.rmtree(old, ignore_errors=True)

    def _commit(self) -> str | None:
        """The commit of the local copy; None if there is no usable copy."""
        try:
            current = json.loads((self._copy / _CURRENT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        match current:
            # Files without a format number have format 1.
            case {"commit": str(commit)} if current.get("format", 1) == FORMAT:
                return commit if (self._copy / f"{commit}.git").is_dir() else None
            case _:
                return None

    def _repository(self, commit: str) -> BareRepository:
        return BareRepository(self._git, self._copy / f"{commit}.git")


class UnusableGitSource(SkillSource):
    """An entry of SKILLS_GIT that cannot be used. It has no skills and one problem with the reason."""

    kind: SourceKind = "git"

    def __init__(self, entry: str, reason: str) -> None:
        self.name = f"git:{redacted_entry(entry)}"
        self._problem = SkillProblem("settings", f"{reason} Correct SKILLS_GIT and restart.")

    async def load(self) -> LoadedSkills:
        return LoadedSkills(problems=(self._problem,))

    async def content(self, skill: Skill) -> SkillContent:
        raise SkillGoneError(skill.name)


def git_sources(settings: Settings) -> list[SkillSource]:
    """A source for each entry of SKILLS_GIT."""
    token = settings.skills_git_token.get_secret_value() if settings.skills_git_token is not None else None
    copies = settings.data_dir / "skills" / "git"
    sources: dict[str, SkillSource] = {}
    for entry in filter(None, map(str.strip, settings.skills_git.split(","))):
        try:
            source: SkillSource = GitSource(parse_git_address(entry), copies, token)
        except GitAddressError as error:
            source = UnusableGitSource(entry, str(error))
        if source.name in sources:
            source = UnusableGitSource(
                f"{entry} (again)", f"{redacted_entry(entry)} names a repository that another entry has."
            )
        sources[source.name] = source
    return list(sources.values())
