"""Names of datasources and documents: valid ones, default ones, and suggestions for unknown ones."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ai_platform_engineering.utils.errors import ReadableError

_MAX_LENGTH: Final = 100
DATASOURCE_NAME: Final = rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,{_MAX_LENGTH - 1}}}$"
"""Without a colon, which separates the datasource from the path in the id of a document."""

_UNNAMED: Final = "documents"
_MAX_SUGGESTIONS: Final = 3
_MAX_COMPARED: Final = 5000


class DatasourceNameError(ReadableError):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name!r} cannot be the name of a datasource: use up to {_MAX_LENGTH} letters, digits, dots, dashes and "
            "underscores, a letter or a digit first."
        )


class UnknownDatasourceError(ReadableError):
    def __init__(self, name: str, known: Sequence[str]) -> None:
        there_are = f"known are {', '.join(known)}" if known else "there are none yet"
        super().__init__(f"There is no datasource {name!r}; {there_are}.")


class UnknownDocumentError(ReadableError):
    def __init__(self, document_id: str, near: Sequence[str]) -> None:
        hint = f"the nearest are {', '.join(near)}" if near else "search gives the ids of documents"
        super().__init__(f"There is no document {document_id!r}; {hint}.")


def check_datasource_name(name: str) -> str:
    if not re.fullmatch(DATASOURCE_NAME, name):
        raise DatasourceNameError(name)
    return name


def name_of_folder(path: Path) -> str:
    """The default name of a datasource for a folder."""
    return _valid_name(path.resolve().name)


def name_of_host(url: str) -> str:
    """The default name of a datasource for a website."""
    return _valid_name(urlsplit(url).hostname or "")


def _valid_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("._-")[:_MAX_LENGTH] or _UNNAMED


def without_chunk(document_id: str) -> str:
    """The id of the document, given its id or the id of one of its chunks."""
    return re.sub(r"#\d+$", "", document_id)


def nearest_ids(document_id: str, known: Sequence[str]) -> list[str]:
    """Known ids that may have been meant by an unknown one, the likeliest first."""
    wanted = _path_of(document_id)
    same_end = [candidate for candidate in known if wanted and _path_of(candidate).endswith(wanted)]
    if same_end:
        return sorted(same_end, key=lambda candidate: (len(candidate), candidate))[:_MAX_SUGGESTIONS]
    # Comparing character by character is slow, so only a part of a large knowledge base is compared.
    paths = {_path_of(candidate): candidate for candidate in known[:_MAX_COMPARED]}
    return [paths[path] for path in difflib.get_close_matches(wanted, paths, n=_MAX_SUGGESTIONS)]


def _path_of(document_id: str) -> str:
    """The path in lower case, or the whole id if it has no datasource."""
    return without_chunk(document_id).partition(":")[2].lower() or without_chunk(document_id).lower()
