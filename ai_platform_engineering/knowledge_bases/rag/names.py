"""Names of datasources and documents: what they may be, and what was probably meant by one that nobody knows."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Final

from ai_platform_engineering.utils.errors import ReadableError

DATASOURCE_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""No colon: the id of a document begins with the name of its datasource and one."""

_SHOWN: Final = 3
_LOOKED_THROUGH: Final = 5000


class DatasourceNameError(ReadableError):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name!r} cannot be the name of a datasource: use up to 100 letters, digits, dots, dashes and "
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


def without_chunk(document_id: str) -> str:
    """The id of the document, also where that of a chunk was given."""
    return re.sub(r"#\d+$", "", document_id)


def nearest_ids(document_id: str, known: Sequence[str]) -> list[str]:
    """The ids that someone who wrote `document_id` may have meant, the likeliest first."""
    wanted = _place(document_id)
    same_end = [candidate for candidate in known if wanted and _place(candidate).endswith(wanted)]
    if same_end:
        return sorted(same_end, key=lambda candidate: (len(candidate), candidate))[:_SHOWN]
    # Comparing letter by letter takes its time: in a large knowledge base only a part is looked through.
    places = {_place(candidate): candidate for candidate in known[:_LOOKED_THROUGH]}
    return [places[place] for place in difflib.get_close_matches(wanted, places, n=_SHOWN)]


def _place(document_id: str) -> str:
    """What tells documents apart for people: the path, in small letters."""
    return without_chunk(document_id).partition(":")[2].lower() or without_chunk(document_id).lower()
