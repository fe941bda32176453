"""Skills of a Git repository: a copy on this machine, which stays at its commit until it is refreshed."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Final

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.problems import Problem
from ai_platform_engineering.skills_middleware.skill import Skill, SkillContent, SourceKind
from ai_platform_engineering.skills_middleware.sources.git_address import (
    GitAddress,
    GitAddressError,
    parse_git_address,
    shown,
)
from ai_platform_engineering.skills_middleware.sources.git_commands import Git, GitError
from ai_platform_engineering.skills_middleware.sources.reading import collected
from ai_platform_engineering.skills_middleware.sources.repository import Repository
from ai_platform_engineering.skills_middleware.sources.source import (
    Loaded,
    SkillGoneError,
    Source,
    SourceUnavailableError,
)
from ai_platform_engineering.utils.private_files import make_private_directory

FETCH_SECONDS: Final = 120.0
MAX_REPOSITORY_SIZE: Final = 200 * 2**20
FIRST_RETRY_SECONDS: Final = 10.0
MAX_RETRY_SECONDS: Final = 600.0

_CURRENT: Final = "current.json"


class GitSource(Source):
    kind: SourceKind = "git"

    def __init__(self, address: GitAddress, copies: Path, token: str | None = None) -> None:
        """`copies` is the directory for the copies of all repositories."""
        self.name = f"git:{address}"
        self._address = address
        self._copy = copies / address.digest
        self._git = Git.for_address(address, token)
        self._loaded: Loaded | None = None
        self._problem: Problem | None = None
        """Why the repository could not be fetched last."""
        self._is_damaged = False
        self._fetching = asyncio.Lock()

    async def load(self) -> Loaded:
        commit = await asyncio.to_thread(self._commit)
        if commit is None:
            waiting = Problem(
                "fetching",
                f"{self._address} has no copy on this machine yet. A supervisor fetches it in the background; "
                "`platform-engineer skills refresh` fetches it at once.",
            )
            return Loaded(problems=(self._problem or waiting,))
        if self._loaded is None or self._loaded.commit != commit:
            try:
                readings = await self._repository(commit).readings(
                    commit, self._address.folder, f"{self._address.address}@{commit}"
                )
            except GitError as error:
                self._is_damaged = True
                raise SourceUnavailableError(f"The copy of {self._address} cannot be read: {error}") from error
            self._loaded = collected(readings, commit)
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
        """Fetches a repository that has no copy yet, in the background, until that succeeds."""
        seconds = FIRST_RETRY_SECONDS
        while await asyncio.to_thread(self._commit) is None:
            await self.refresh()
            yield
            if self._problem is not None:
                await asyncio.sleep(seconds)
                seconds = min(seconds * 2, MAX_RETRY_SECONDS)

    async def refresh(self) -> None:
        async with self._fetching:
            is_complete = self._address.is_pinned and await asyncio.to_thread(self._commit) == self._address.ref
            if is_complete and not self._is_damaged:
                return
            try:
                await self._fetch()
            except GitError as error:
                self._problem = Problem("fetch_failed", f"{self._address} cannot be fetched: {error}")
            except OSError as error:
                self._problem = Problem(
                    "fetch_failed",
                    f"The copy of {self._address} cannot be written to {self._copy}: {error.strerror}. Check that the "
                    "directory can be written and has room, or choose another one with DATA_DIR.",
                )
            else:
                self._problem, self._is_damaged = None, False

    async def _fetch(self) -> None:
        """Fetch into a new directory, which then takes its place: an interrupted fetch leaves the last copy."""
        await asyncio.to_thread(self._make_directory)
        directory = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=self._copy, prefix=".fetching-"))
        try:
            commit = await Repository(self._git, directory).fetch(self._address, FETCH_SECONDS, MAX_REPOSITORY_SIZE)
            await asyncio.to_thread(self._install, directory, commit)
        finally:
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)

    def _make_directory(self) -> None:
        # One by one, as missing parents would get the default mode.
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
                if not target.exists():  # another process has fetched it at the same time
                    raise
        before = self._commit()
        current = self._copy / f"{_CURRENT}.{os.getpid()}"
        current.write_text(json.dumps({"address": str(self._address.address), "commit": commit}), encoding="utf-8")
        current.replace(self._copy / _CURRENT)
        # Requests may still be reading the last copy; older ones are of no use.
        for old in self._copy.glob("*.git"):
            if old.name not in {f"{commit}.git", f"{before}.git"}:
                shutil.rmtree(old, ignore_errors=True)

    def _commit(self) -> str | None:
        """The commit of the copy; None while there is no usable copy."""
        try:
            commit = json.loads((self._copy / _CURRENT).read_text(encoding="utf-8"))["commit"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return commit if isinstance(commit, str) and (self._copy / f"{commit}.git").is_dir() else None

    def _repository(self, commit: str) -> Repository:
        return Repository(self._git, self._copy / f"{commit}.git")


class UnusableGitSource(Source):
    """An entry of SKILLS_GIT that cannot be used. It has no skills, and a problem that says why."""

    kind: SourceKind = "git"

    def __init__(self, entry: str, reason: str) -> None:
        self.name = f"git:{shown(entry)}"
        self._problem = Problem("settings", f"{reason} Correct SKILLS_GIT and restart.")

    async def load(self) -> Loaded:
        return Loaded(problems=(self._problem,))

    async def content(self, skill: Skill) -> SkillContent:
        raise SkillGoneError(skill.name)


def git_sources(settings: Settings) -> list[Source]:
    """A source for each entry of SKILLS_GIT."""
    token = settings.skills_git_token.get_secret_value() if settings.skills_git_token is not None else None
    copies = settings.data_dir / "skills" / "git"
    sources: dict[str, Source] = {}
    for entry in filter(None, map(str.strip, settings.skills_git.split(","))):
        try:
            source: Source = GitSource(parse_git_address(entry), copies, token)
        except GitAddressError as error:
            source = UnusableGitSource(entry, str(error))
        if source.name in sources:
            source = UnusableGitSource(f"{entry} (again)", f"{shown(entry)} names a repository that another entry has.")
        sources[source.name] = source
    return list(sources.values())
