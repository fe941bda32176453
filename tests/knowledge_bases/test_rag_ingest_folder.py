"""Folders as sources: which files are documents, and what cannot be read."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ai_platform_engineering.knowledge_bases.rag.ingest import folder as folder_module
from ai_platform_engineering.knowledge_bases.rag.ingest.folder import FolderSource
from ai_platform_engineering.knowledge_bases.rag.names import check_datasource_name, name_of_folder, name_of_host
from ai_platform_engineering.knowledge_bases.rag.source import Absent, Item, LoadedItem, SourceError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "handbook"
    folder.mkdir()
    return folder


def write(folder: Path, *paths: str) -> None:
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(f"# {path}\n".encode(errors="replace"))


async def listed(source: FolderSource) -> dict[str, Item]:
    return {item.path: item async for item in source.items()}


async def test_documents_are_the_files_of_a_kind_that_is_read(folder: Path) -> None:
    write(folder, "b/build/notes.MD", "a.md", "c.rst", "d.html", "e.txt", "f.pdf", "Makefile", "x.py", "y.png")
    source = FolderSource(folder)
    assert list(await listed(source)) == ["a.md", "b/build/notes.MD", "c.rst", "d.html", "e.txt", "f.pdf"]
    assert (source.datasource, source.origin, source.complete, len(source)) == ("handbook", str(folder), True, 6)


async def test_what_is_hidden_or_made_by_tools_is_left_out(folder: Path) -> None:
    write(folder, "a.md", ".hidden.md", ".git/b.md", "node_modules/x/README.md", "_build/c.html")
    write(folder, "env/pyvenv.cfg", "env/lib/d.md", "out/CACHEDIR.TAG", "out/e.md")
    assert list(await listed(FolderSource(folder))) == ["a.md"]


async def test_a_hidden_folder_that_is_named_is_read(tmp_path: Path) -> None:
    write(tmp_path, ".notes/a.md", ".notes/pyvenv.cfg")
    source = FolderSource(tmp_path / ".notes")
    assert list(await listed(source)) == ["a.md"]
    assert source.datasource == "notes"


async def test_links_lead_to_files_in_the_folder_and_nowhere_else(folder: Path, tmp_path: Path) -> None:
    write(folder, "a.md", "sub/b.md")
    write(tmp_path, "secret.md", "outside/c.md")
    (folder / "again.md").symlink_to(folder / "sub" / "b.md")
    (folder / "secret.md").symlink_to(tmp_path / "secret.md")
    (folder / "outside").symlink_to(tmp_path / "outside")
    (folder / "sub" / "up").symlink_to(folder)
    (folder / "broken.md").symlink_to(folder / "nowhere.md")
    assert list(await listed(FolderSource(folder))) == ["a.md", "again.md", "sub/b.md"]


async def test_a_file_that_becomes_a_link_out_of_the_folder_is_not_read(folder: Path, tmp_path: Path) -> None:
    write(folder, "a.md")
    write(tmp_path, "secret.md")
    items = await listed(FolderSource(folder))
    (folder / "a.md").unlink()
    (folder / "a.md").symlink_to(tmp_path / "secret.md")
    assert await items["a.md"].load(None) == Absent()


async def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    write(folder, "a.md")
    os.mkfifo(folder / "pipe.md")
    items = await listed(FolderSource(folder))
    assert list(items) == ["a.md"]
    (folder / "a.md").unlink()
    os.mkfifo(folder / "a.md")
    assert await items["a.md"].load(None) == Absent()


async def test_a_file_is_loaded_with_its_time_and_a_link_to_it(folder: Path) -> None:
    write(folder, "with space.md")
    os.utime(folder / "with space.md", (1_800_000_000, 1_800_000_000))
    (item,) = (await listed(FolderSource(folder))).values()
    assert await item.load(None) == LoadedItem(
        b"# with space.md\n",
        None,
        "with space.md",
        f"file://{folder}/with%20space.md",
        updated=datetime.fromtimestamp(1_800_000_000, UTC),
    )


async def test_a_file_that_is_gone_since_it_was_listed_is_absent(folder: Path) -> None:
    write(folder, "a.md")
    (item,) = (await listed(FolderSource(folder))).values()
    (folder / "a.md").unlink()
    assert await item.load(None) == Absent()


async def test_a_file_that_is_too_large_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "MAX_BYTES", 3)
    write(folder, "a.md")
    (item,) = (await listed(FolderSource(folder))).values()
    with pytest.raises(SourceError, match=r"a\.md has 7 bytes; files of up to 3 are read"):
        await item.load(None)


async def test_a_name_that_is_not_text_is_reported_and_removes_nothing(folder: Path) -> None:
    write(folder, os.fsdecode(b"caf\xe9.md"))
    source = FolderSource(folder)
    ((path, item),) = (await listed(source)).items()
    assert path == "caf?.md"
    assert not source.complete
    with pytest.raises(SourceError, match="not UTF-8"):
        await item.load(None)


async def test_a_folder_that_cannot_be_listed_is_reported_and_removes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "a.md", "closed/b.md")
    scandir = os.scandir

    def closed_to_us(path: Path) -> Iterator[os.DirEntry[str]]:
        # Root, as which tests may run, is refused nothing.
        if path.name == "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed_to_us)
    source = FolderSource(folder)
    items = await listed(source)
    assert set(items) == {"a.md", "closed"}
    assert not source.complete
    with pytest.raises(SourceError, match="closed cannot be listed: Permission denied"):
        await items["closed"].load(None)


async def test_one_file_is_a_source_too(folder: Path) -> None:
    write(folder, "a.md", "b.md")
    source = FolderSource(folder / "a.md")
    assert list(await listed(source)) == ["a.md"]
    assert source.datasource == "a.md"


@pytest.mark.parametrize(("name", "reason"), [("x.py", "not of a kind that is read"), ("nowhere", "no file or folder")])
async def test_what_is_no_source_is_refused(folder: Path, name: str, reason: str) -> None:
    write(folder, "x.py")
    with pytest.raises(SourceError, match=reason):
        await listed(FolderSource(folder / name))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("handbook", "handbook"), ("Our Docs (v2)", "Our-Docs-v2"), ("日本", "documents"), ("x" * 300, "x" * 100)],
)
def test_a_datasource_is_named_like_its_folder(name: str, expected: str) -> None:
    assert check_datasource_name(name_of_folder(Path("/some") / name)) == expected


def test_a_datasource_is_named_like_its_host() -> None:
    assert name_of_host("https://Docs.Example.com:8443/guide?x=1") == "docs.example.com"
    assert check_datasource_name(name_of_host("http://[::1]:80/"))
