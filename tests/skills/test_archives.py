"""Archives: the good ones are read."""

from __future__ import annotations

import io
import tarfile
import zipfile
from typing import Literal

import pytest

from ai_platform_engineering.skills_middleware.archives import read_archive

DOCUMENT = b"---\nname: incident-triage\ndescription: Triage an incident.\n---\nList the incidents.\n"
FILES = {"incident-triage/SKILL.md": DOCUMENT, "incident-triage/scripts/größe.sh": b"echo 1\n" * 2000}


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return buffer.getvalue()


def tarred(files: dict[str, bytes], mode: Literal["w", "w:gz", "w:bz2", "w:xz"], format_: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode, format=format_) as archive:
        for path, data in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def test_a_zip_archive_is_read_without_its_folder() -> None:
    archive = read_archive(zipped(FILES))
    assert archive.folder == "incident-triage"
    assert archive.files == {"SKILL.md": DOCUMENT, "scripts/größe.sh": b"echo 1\n" * 2000}


@pytest.mark.parametrize("format_", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_archive_is_read_without_its_folder(mode: Literal["w", "w:gz", "w:bz2", "w:xz"], format_: int) -> None:
    archive = read_archive(tarred(FILES, mode, format_))
    assert archive.folder == "incident-triage"
    assert archive.files == {"SKILL.md": DOCUMENT, "scripts/größe.sh": b"echo 1\n" * 2000}
