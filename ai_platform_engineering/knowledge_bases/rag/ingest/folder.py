"""A folder or a single file as a source. Files of supported types below the folder are read."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ai_platform_engineering.knowledge_bases.rag.names import name_of_folder
from ai_platform_engineering.knowledge_bases.rag.readers.reading import SUFFIXES, media_type_of
from ai_platform_engineering.knowledge_bases.rag.source import Absent, Item, LoadedItem, SourceError
from ai_platform_engineering.knowledge_bases.rag.stores.store import DocumentVersion

MAX_BYTES: Final = 50_000_000

# Folders that tools create. A name such as `build` can also be a chapter of a manual, so only unambiguous names are
# skipped, and folders that contain a marker file of a tool.
_TOOL_FOLDERS: Final = frozenset({"__pycache__", "_build", "bower_components", "node_modules", "site-packages"})
_MARKER_FILES: Final = ("CACHEDIR.TAG", "pyvenv.cfg")


@dataclass(frozen=True, slots=True)
class _Listing:
    """The files by their path in the datasource, and the reasons for paths that cannot be read."""

    files: dict[str, Path]
    problems: dict[str, str]


class FolderSource:
    """Skips hidden files and folders, and folders that tools create. Follows symbolic links to files in the folder.

    `link_base` is the URL below which people read the files. Without it, links point to the files on disk.
    """

    def __init__(self, root: Path, datasource: str | None = None, link_base: str | None = None) -> None:
        self._root = root.expanduser().resolve()
        self._datasource = datasource or name_of_folder(self._root)
        self._link_base = link_base
        self._listing = _Listing({}, {})

    @property
    def datasource(self) -> str:
        return self._datasource

    @property
    def origin(self) -> str:
        return str(self._root)

    @property
    def complete(self) -> bool:
        return not self._listing.problems

    def __len__(self) -> int:
        return len(self._listing.files) + len(self._listing.problems)

    async def items(self) -> AsyncIterator[Item]:
        self._listing = await asyncio.to_thread(_listing, self._root)
        for path, reason in self._listing.problems.items():
            yield Item(path, partial(_refuse, reason))
        for path, file in self._listing.files.items():
            yield Item(path, partial(self._load, file, self._link(path, file)))

    def _link(self, path: str, file: Path) -> str:
        return file.as_uri() if self._link_base is None else f"{self._link_base.rstrip('/')}/{quote(path)}"

    async def _load(self, file: Path, link: str, _stored: DocumentVersion | None) -> LoadedItem | Absent:
        return await asyncio.to_thread(_loaded, file, self._root, link)


async def _refuse(reason: str, _stored: DocumentVersion | None) -> Absent:
    raise SourceError(reason)


def _listing(root: Path) -> _Listing:
    if root.is_file():
        if media_type_of(root.name) is None:
            raise SourceError(f"{root} is not of a kind that is read; these are: {', '.join(SUFFIXES)}.")
        return _Listing({root.name: root}, {})
    if not root.is_dir():
        raise SourceError(f"There is no file or folder {root}.")
    files: dict[str, Path] = {}
    problems: dict[str, str] = {}
    for path, found in _walk(root, root):
        try:
            path.encode()
        except UnicodeEncodeError:
            shown = path.encode(errors="replace").decode()
            problems[shown] = f"The name of {shown} is not UTF-8; give it another."
            continue
        match found:
            case OSError():
                problems[path] = f"{path} cannot be listed: {found.strerror}."
            case Path():
                files[path] = found
    return _Listing(files, problems)


def _walk(folder: Path, root: Path) -> Iterator[tuple[str, Path | OSError]]:
    """Sorted paths with slashes, each with its file, or with the error of a folder that cannot be listed."""
    try:
        with os.scandir(folder) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except OSError as error:
        yield folder.relative_to(root).as_posix(), error
        return
    if folder != root and any(entry.name in _MARKER_FILES for entry in entries):
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name in _TOOL_FOLDERS:
            continue
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(path, root)
        elif media_type_of(entry.name) is not None and _is_file_below(path, root):
            yield path.relative_to(root).as_posix(), path


def _is_file_below(path: Path, root: Path) -> bool:
    return path.is_file() and (not path.is_symlink() or path.resolve().is_relative_to(root))


def _loaded(file: Path, root: Path, link: str) -> LoadedItem | Absent:
    try:
        # Non-blocking: the listed file may have been replaced by a pipe.
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as opened:  # noqa: PTH123 - it is open already
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or not _is_file_below(file, root):
                return Absent()
            if status.st_size > MAX_BYTES:
                raise SourceError(
                    f"{file.name} has {status.st_size:,} bytes; files of up to {MAX_BYTES:,} are read. Split it."
                )
            content = opened.read()
    except FileNotFoundError:
        return Absent()
    except OSError as error:
        raise SourceError(f"{file.name} cannot be read: {error.strerror}.") from error
    updated = datetime.fromtimestamp(status.st_mtime, UTC)
    return LoadedItem(content, None, file.name, link, updated=updated)
