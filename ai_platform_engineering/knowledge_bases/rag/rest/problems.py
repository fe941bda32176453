"""The errors of the knowledge base and their HTTP statuses."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import EmbeddingsError
from ai_platform_engineering.knowledge_bases.rag.ingest.engine import DatasourceTakenError
from ai_platform_engineering.knowledge_bases.rag.jobs import DatasourceBusyError, TooManyJobsError, UnknownJobError
from ai_platform_engineering.knowledge_bases.rag.knowledge_base import WrongSettingError
from ai_platform_engineering.knowledge_bases.rag.names import UnknownDatasourceError, UnknownDocumentError
from ai_platform_engineering.knowledge_bases.rag.stores.store import StoreError
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.rest.problems import Statuses


class UnsupportedKindError(ReadableError):
    def __init__(self, declared: str | None, kinds: Sequence[str]) -> None:
        given = f"{declared!r} is not a kind of document" if declared else "The kind of document is not known"
        super().__init__(f"{given} that can be read; send one of {', '.join(kinds)} as Content-Type.")


STATUSES: Final[Statuses] = {
    UnknownDatasourceError: HTTPStatus.NOT_FOUND,
    UnknownDocumentError: HTTPStatus.NOT_FOUND,
    UnknownJobError: HTTPStatus.NOT_FOUND,
    DatasourceBusyError: HTTPStatus.CONFLICT,
    UnsupportedKindError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    TooManyJobsError: HTTPStatus.TOO_MANY_REQUESTS,
    DatasourceTakenError: HTTPStatus.CONFLICT,
    WrongSettingError: HTTPStatus.SERVICE_UNAVAILABLE,
    StoreError: HTTPStatus.SERVICE_UNAVAILABLE,
    EmbeddingsError: HTTPStatus.SERVICE_UNAVAILABLE,
}
