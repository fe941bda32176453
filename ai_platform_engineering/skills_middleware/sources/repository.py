"""A local bare repository: fetched with depth 1, read in memory, never checked out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ai_platform_engineering.skills_middleware.skill import (
    DOCUMENT,
    InvalidSkillError,
    Provenance,
    Skill,
    SkillContent,
    SkillProblem,
)
from ai_platform_engineering.skills_middleware.sources.git_address import GitAddress
from ai_platform_engineering.skills_middleware.sources.git_commands import Git, GitError
from ai_platform_engineering.skills_middleware.sources.reading import (
    ReadResult,
    read_skill,
    size_problems,
    try_read_skill,
)
from ai_platform_engineering.skills_middleware.sources.source import SkillGoneError

MAX_DEPTH: Final = 3
"""Levels of a skill's folder below the folder that is searched."""
MAX_ENTRIES: Final = 200_000
_READ_SECONDS: Final = 60.0
_BATCH_SIZE: Final = 8 * 2**20
_CURRENT: Final = "refs/skills/current"
_KINDS: Final = {"120000": "a symbolic link", "160000": "a submodule"}


@dataclass(frozen=True, slots=True)
class _Blob:
    mode: str
    object_id: str
    size: int


@dataclass(frozen=True, slots=True)
class _Folder:
    """The folder of a skill, with its files by path."""

    path: str
    blobs: dict[str, _Blob] = field(default_factory=dict)

    @property
    def problems(self) -> tuple[SkillProblem, ...]:
        """The reasons why the files must not be read."""
        unusable = tuple(
            SkillProblem("symlink" if blob.mode == "120000" else "submodule", f"it is {_KINDS[blob.mode]}", path)
            for path, blob in self.blobs.items()
            if blob.mode in _KINDS
        )
        return unusable or size_problems({path: blob.size for path, blob in self.blobs.items()})


@dataclass(frozen=True, slots=True)
class BareRepository:
    git: Git
    directory: Path

    async def fetch(self, address: GitAddress, seconds: float, max_size: int) -> str:
        """Fetch the commit of `address` into this repository's new directory; raises `GitError`."""
        await self._run("init", "--quiet", "--bare", "--template=", ".")
        await self.git.run(
            *("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"),
            *("--", address.address, f"+{address.ref}:{_CURRENT}"),
            directory=self.directory,
            seconds=seconds,
            max_size=max_size,
        )
        return (await self._run("rev-parse", "--verify", f"{_CURRENT}^{{commit}}")).decode().strip()

    async def readings(self, commit: str, below: str, origin: str) -> list[tuple[str, ReadResult]]:
        """The skills below a folder of a commit, with the paths of their folders."""
        return [each async for each in self._readings(commit, below, Provenance("git", origin))]

    async def content(self, commit: str, below: str, skill: Skill) -> SkillContent:
        """The contents of a skill that was loaded from this commit."""
        for folder in await self._folders(commit, below):
            if (_name(folder.path) or skill.name) == skill.name and not folder.problems:
                files = await self._files([folder])
                try:
                    found, checked = await asyncio.to_thread(
                        read_skill, files[folder.path], _name(folder.path), skill.provenance
                    )
                except InvalidSkillError:
                    continue
                if found.digest == skill.digest:
                    return checked.content
        raise SkillGoneError(skill.name)

    async def _readings(self, commit: str, below: str, provenance: Provenance) -> AsyncIterator[tuple[str, ReadResult]]:
        batch: list[_Folder] = []
        size = 0
        for folder in await self._folders(commit, below):
            if problems := folder.problems:
                yield folder.path, problems
                continue
            batch.append(folder)
            size += sum(blob.size for blob in folder.blobs.values())
            if size > _BATCH_SIZE:
                for each in await self._read(batch, provenance):
                    yield each
                batch, size = [], 0
        for each in await self._read(batch, provenance):
            yield each

    async def _read(self, folders: list[_Folder], provenance: Provenance) -> list[tuple[str, ReadResult]]:
        files = await self._files(folders)
        return await asyncio.to_thread(
            lambda: [(path, try_read_skill(contents, _name(path), provenance)) for path, contents in files.items()]
        )

    async def _folders(self, commit: str, below: str) -> list[_Folder]:
        arguments = ["ls-tree", "-r", "-z", "-l", "--full-tree", commit]
        listed = await self._run(*arguments, *(["--", f"{below}/"] if below else []))
        return await asyncio.to_thread(_folders, listed, below)

    async def _files(self, folders: Iterable[_Folder]) -> dict[str, dict[str, bytes]]:
        """The contents of the files of several folders, read by one `git` process."""
        folders = list(folders)
        blobs = [blob for folder in folders for blob in folder.blobs.values()]
        wanted = "".join(f"{blob.object_id}\n" for blob in blobs).encode()
        output = await self._run("cat-file", "--batch", stdin=wanted) if blobs else b""
        contents: dict[str, dict[str, bytes]] = {}
        position = 0
        for folder in folders:
            files = contents[folder.path] = {}
            for path, blob in folder.blobs.items():
                header, _, _ = output[position : position + 200].partition(b"\n")
                if header.split() != [blob.object_id.encode(), b"blob", str(blob.size).encode()]:
                    raise GitError("The copy of the repository is damaged. Remove it, then refresh the skills.")
                start = position + len(header) + 1
                files[path] = output[start : start + blob.size]
                position = start + blob.size + 1
        return contents

    async def _run(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        return await self.git.run(*arguments, directory=self.directory, seconds=_READ_SECONDS, stdin=stdin)


def _folders(listed: bytes, below: str) -> list[_Folder]:
    """The folders of skills in the output of `git ls-tree -r -z -l`."""
    entries: dict[str, _Blob] = {}
    lines = listed.split(b"\0")
    if len(lines) > MAX_ENTRIES:
        raise GitError(f"The repository has more than {MAX_ENTRIES} files. Use one with skills only.")
    for line in filter(None, lines):
        head, _, path = line.decode("utf-8", "backslashreplace").partition("\t")
        mode, _, object_id, size = head.split()
        entries[path] = _Blob(mode, object_id, 0 if size == "-" else int(size))
    folders = _skill_folders(entries, below)
    for path, blob in entries.items():
        parts = path.split("/")
        inside = next(("/".join(parts[:end]) for end in range(len(parts)) if "/".join(parts[:end]) in folders), None)
        if inside is not None:
            file = path.removeprefix(f"{inside}/") if inside else path
            if not any(part.startswith(".") for part in file.split("/")):
                folders[inside].blobs[file] = blob
    return list(folders.values())


def _skill_folders(entries: Mapping[str, _Blob], below: str) -> dict[str, _Folder]:
    folders: dict[str, _Folder] = {}
    for path in entries:
        folder, _, name = path.rpartition("/")
        parts = folder.removeprefix(below).strip("/").split("/") if folder != below else []
        if name == DOCUMENT and len(parts) <= MAX_DEPTH and not any(part.startswith(".") for part in parts):
            folders[folder] = _Folder(folder)
    return folders


def _name(folder: str) -> str | None:
    """The name of a skill's folder; the root of a repository has none."""
    return folder.rpartition("/")[2] or None
