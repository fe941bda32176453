"""Reranking: an external model that reads query and text together orders the results of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Annotated, Final
from urllib.parse import urlsplit

import httpx
from pydantic import AllowInfNan, BaseModel, Field, ValidationError

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.connections import reason_of
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.outbound.policy import OPERATOR
from ai_platform_engineering.utils.outbound.transport import blocking_transport

TIMEOUT: Final = 5.0
"""Seconds. A search waits for the reranker, but works without it."""
MAX_BYTES: Final = 1_000_000


class RerankError(ReadableError):
    """The service did not rate the texts, and why."""


class _RatedText(BaseModel):
    index: Annotated[int, Field(ge=0)]
    relevance_score: Annotated[float, AllowInfNan(False)]


class _RerankResponse(BaseModel):
    results: list[_RatedText]


class Reranker:
    """Client of the rerank API that Cohere, Jina, vLLM and others serve. Blocks: call it in a thread."""

    def __init__(self, url: str, model: str | None = None, key: str | None = None, timeout: float = TIMEOUT) -> None:
        self._url = url
        self._model = model
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._timeout = timeout

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        """The rating of each text. A text that the service leaves out gets 0."""
        request: dict[str, object] = {"query": query, "documents": list(texts), "top_n": len(texts)}
        if self._model is not None:
            request["model"] = self._model
        try:
            reply = _RerankResponse.model_validate_json(self._post(request))
        except httpx.TimeoutException as error:
            raise self._error(f"did not answer within {self._timeout:g} seconds") from error
        except httpx.HTTPStatusError as error:
            raise self._error(f"answered with status {error.response.status_code}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._error(f"cannot be reached ({reason_of(error)})") from error
        except ValidationError as error:
            raise self._error("sent a response that is not one of a rerank API") from error
        scores = dict.fromkeys(range(len(texts)), 0.0)
        scores |= {rated.index: rated.relevance_score for rated in reply.results if rated.index < len(texts)}
        return list(scores.values())

    def _post(self, request: Mapping[str, object]) -> bytes:
        end = monotonic() + self._timeout
        with (
            httpx.Client(transport=blocking_transport(OPERATOR, self._url), timeout=self._timeout) as http,
            http.stream("POST", self._url, json=request, headers=self._headers) as response,
        ):
            response.raise_for_status()
            content = b""
            for piece in response.iter_bytes():
                content += piece
                if len(content) > MAX_BYTES:
                    raise self._error("sent a response that is too long")
                # The client's own timeout applies to each piece.
                if monotonic() > end:
                    raise httpx.ReadTimeout("the response took too long")
        return content

    def _error(self, problem: str) -> RerankError:
        parts = urlsplit(self._url)
        return RerankError(f"The reranker at {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path} {problem}.")


def reranker_of(settings: Settings) -> Reranker | None:
    if settings.rerank_url is None:
        return None
    key = settings.rerank_api_key
    return Reranker(settings.rerank_url, settings.rerank_model_name, key.get_secret_value() if key else None)
