"""Archives: good ones of each format are read, hostile ones are refused quickly and in little memory."""

from __future__ import annotations

import time
import tracemalloc
import zipfile
from contextlib import suppress
from io import BytesIO, RawIOBase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.skills_middleware.archives import read_archive
from ai_platform_engineering.skills_middleware.checks import CheckedSkill, checked_skill
from ai_platform_engineering.skills_middleware.skill import InvalidSkillError
from tests.skills_middleware.archive_files import (
    DOCUMENT,
    GOOD,
    Compression,
    pax_record,
    tar_blocks,
    tar_member,
    tar_of,
    zip_member,
    zip_of,
)
from tests.skills_middleware.hostile_archives import HOSTILE_ARCHIVES, HostileArchive

SECONDS = 2.0
MEMORY = 10 * 1024 * 1024

SCRIPT = b"echo 1\n" * 3000
FILES = {"incident-triage/SKILL.md": DOCUMENT, "incident-triage/scripts/größe.sh": SCRIPT}


def checked_archive(data: bytes) -> CheckedSkill:
    archive = read_archive(data)
    return checked_skill(archive.files, folder=archive.folder)


@pytest.mark.parametrize("hostile", HOSTILE_ARCHIVES, ids=lambda hostile: hostile.name)
def test_a_hostile_archive_is_refused_with_the_reason(hostile: HostileArchive) -> None:
    data = hostile.data
    tracemalloc.start()
    began = time.process_time()
    try:
        with pytest.raises(InvalidSkillError) as refusal:
            checked_archive(data)
        took, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert hostile.code in {problem.code for problem in refusal.value.problems}
    assert all(line.isprintable() and 20 < len(line) < 300 for line in str(refusal.value).splitlines())
    assert took < SECONDS
    assert peak < MEMORY


def test_the_corpus_names_each_archive_once() -> None:
    assert len({hostile.name for hostile in HOSTILE_ARCHIVES}) == len(HOSTILE_ARCHIVES) > 100


class Unseekable(RawIOBase):
    """A stream to which a zip archive is written with its sizes after each entry."""

    def __init__(self) -> None:
        self.buffer = BytesIO()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self.buffer.write(data)


def streamed_zip() -> bytes:
    stream = Unseekable()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in FILES.items():
            archive.writestr(path, data)
    return stream.buffer.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        zip_of(FILES, document=False),
        zip_of({"incident-triage/": b"", **FILES}, document=False, comment=b"0123456789abcdef" * 3),
        streamed_zip(),
        *(
            tar_of(FILES, document=False, format_=format_, compression=compression)
            for format_ in (0, 1, 2)
            for compression in ("", "gz", "bz2", "xz")
        ),
    ],
)
def test_an_archive_is_read_without_the_folder_around_it(data: bytes) -> None:
    archive = read_archive(data)
    assert archive.folder == "incident-triage"
    assert archive.files == {"SKILL.md": DOCUMENT, "scripts/größe.sh": SCRIPT}


@pytest.mark.parametrize("compression", ["", "gz"])
def test_an_archive_may_have_its_files_at_the_root(compression: Compression) -> None:
    data = tar_of({}, tar_member("./", b"5"), tar_member("./docs/", b"5"), compression=compression)
    assert read_archive(data) == read_archive(zip_of({}))
    assert read_archive(data).folder is None


def test_an_archive_keeps_two_top_level_folders() -> None:
    archive = read_archive(zip_of({"a/b.md": b"1", "c/d.md": b"2"}, document=False))
    assert archive.folder is None
    assert sorted(archive.files) == ["a/b.md", "c/d.md"]


def test_entries_that_macos_adds_are_ignored() -> None:
    added = {"__MACOSX/triage/._SKILL.md": b"\0\5", "triage/.DS_Store": b"\0", "triage/._SKILL.md": b"\0\5"}
    assert read_archive(zip_of({"triage/SKILL.md": DOCUMENT, **added}, document=False)).files == GOOD


def test_names_beyond_the_header_of_a_tar_archive_are_read() -> None:
    path = f"{'a' * 120}/{'b' * 60}.md"
    assert read_archive(tar_of({path: b"x"}, format_=1)).files == {**GOOD, path: b"x"}
    assert read_archive(tar_of({path: b"x"}, format_=2)).files == {**GOOD, path: b"x"}


def test_the_commit_that_git_writes_into_a_tar_archive_is_accepted() -> None:
    commit = ("pax_global_header", b"g", pax_record("comment", "0" * 40), None)
    assert read_archive(tar_blocks(commit, ("SKILL.md", b"0", DOCUMENT, None))).files == GOOD


def test_every_refused_entry_is_reported() -> None:
    data = zip_of({"../a": b"", "/b": b""}, (zip_member("c", 0o120777), b"/"))
    with pytest.raises(InvalidSkillError) as refusal:
        read_archive(data)
    assert [problem.code for problem in refusal.value.problems] == ["path_traversal", "absolute_path", "link"]


def damaged(data: bytes) -> st.SearchStrategy[bytes]:
    """`data` with some bytes changed, and cut off somewhere."""
    changes = st.lists(st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)), max_size=4)

    def apply(changed: list[tuple[int, int]], end: int) -> bytes:
        result = bytearray(data)
        for position, value in changed:
            result[position] = value
        return bytes(result[:end])

    return st.builds(apply, changes, st.just(len(data)) | st.integers(0, len(data)))


@given(
    st.binary(max_size=2000)
    | st.one_of(
        *(damaged(zip_of({"a/b.md": b"text"})), damaged(streamed_zip())),
        *(damaged(tar_of({"a/b.md": b"text"}, compression=each)) for each in ("", "gz", "bz2", "xz")),
        *(damaged(tar_of({"ä" * 120: b"text"}, format_=each)) for each in (1, 2)),
    )
)
def test_no_bytes_make_an_archive_fail_in_another_way(data: bytes) -> None:
    with suppress(InvalidSkillError):
        checked_archive(data)
