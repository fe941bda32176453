"""Embedders of model providers. Their packages are optional extras, imported only for the selected provider."""

from __future__ import annotations

import importlib
import logging
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import httpx
from langchain_core.embeddings import Embeddings
from pydantic import SecretStr

from ai_platform_engineering.installation import install_command
from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import EmbeddingsError
from ai_platform_engineering.knowledge_bases.rag.stores.store import Vector
from ai_platform_engineering.settings import EmbeddingsProvider, Settings

logger = logging.getLogger(__name__)

_AZURE_API_VERSION: Final = "2024-10-21"
# A self-hosted server often needs no key, but the client library requires one.
_NO_KEY: Final = SecretStr("not-needed")

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class _Provider:
    """`needs` lists environment variables: one of each tuple must be set. The first one is the API key."""

    module: str
    class_name: str
    extra: str
    model: str
    needs: tuple[tuple[str, ...], ...]
    options: Callable[[Settings, str], dict[str, Any]]


def _openai(settings: Settings, model: str) -> dict[str, Any]:
    return {
        "model": model,
        "api_key": settings.openai_api_key or (_NO_KEY if settings.openai_endpoint else None),
        "base_url": settings.openai_endpoint,
        "timeout": settings.llm_timeout,
        "max_retries": settings.llm_max_retries,
        # Counting tokens needs a download, and other servers accept text only. Chunks are short enough.
        "check_embedding_ctx_length": False,
    }


def _azure_openai(settings: Settings, model: str) -> dict[str, Any]:
    return {
        "model": model,
        "azure_deployment": model,
        "azure_endpoint": settings.azure_openai_endpoint,
        "api_key": settings.azure_openai_api_key,
        "api_version": settings.azure_openai_api_version or _AZURE_API_VERSION,
        "timeout": settings.llm_timeout,
        "max_retries": settings.llm_max_retries,
        "check_embedding_ctx_length": False,
    }


def _bedrock(settings: Settings, model: str) -> dict[str, Any]:
    return {"model_id": model, "region_name": settings.aws_region}


def _gemini(settings: Settings, model: str) -> dict[str, Any]:
    return {"model": model, "api_key": settings.google_api_key, "vertexai": False}


def _vertexai(settings: Settings, model: str) -> dict[str, Any]:
    return {
        "model": model,
        "vertexai": True,
        "project": settings.google_cloud_project,
        "location": settings.google_cloud_location,
    }


def _ollama(settings: Settings, model: str) -> dict[str, Any]:
    return {
        "model": model,
        "base_url": settings.ollama_base_url,
        "client_kwargs": {"timeout": settings.llm_timeout},
    }


_GOOGLE: Final = ("langchain_google_genai", "GoogleGenerativeAIEmbeddings", "google", "gemini-embedding-001")
_PROVIDERS: Final[Mapping[EmbeddingsProvider, _Provider]] = {
    "openai": _Provider(
        "langchain_openai",
        "OpenAIEmbeddings",
        "openai",
        "text-embedding-3-small",
        (("OPENAI_API_KEY", "OPENAI_ENDPOINT"),),
        _openai,
    ),
    "azure-openai": _Provider(
        "langchain_openai",
        "AzureOpenAIEmbeddings",
        "openai",
        "text-embedding-3-small",
        (("AZURE_OPENAI_API_KEY",), ("AZURE_OPENAI_ENDPOINT",)),
        _azure_openai,
    ),
    "aws-bedrock": _Provider(
        "langchain_aws", "BedrockEmbeddings", "aws", "amazon.titan-embed-text-v2:0", (("AWS_REGION",),), _bedrock
    ),
    "google-gemini": _Provider(*_GOOGLE, (("GOOGLE_API_KEY",),), _gemini),
    "gcp-vertexai": _Provider(*_GOOGLE, (("GOOGLE_CLOUD_PROJECT",),), _vertexai),
    "ollama": _Provider("langchain_ollama", "OllamaEmbeddings", "ollama", "nomic-embed-text", (), _ollama),
}


class ProviderEmbedder:
    """The LangChain class of the provider does the batching and the retries."""

    def __init__(self, settings: Settings, provider: EmbeddingsProvider) -> None:
        """Raises an `EmbeddingsError` if a setting or a package is missing."""
        self._provider = provider
        self._chosen = chosen = _PROVIDERS[provider]
        self._model = settings.embeddings_model_name or chosen.model
        missing = [
            " or ".join(names) for names in chosen.needs if not any(getattr(settings, name.lower()) for name in names)
        ]
        if missing:
            raise EmbeddingsError(
                f"EMBEDDINGS_PROVIDER={provider} needs {' and '.join(missing)}: set it, or choose another provider."
            )
        self._embeddings = _create(chosen, settings, self._model)

    @property
    def name(self) -> str:
        return f"{self._provider}:{self._model}"

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        if not texts:
            return []
        vectors = self._call(lambda: self._embeddings.embed_documents(list(texts)))
        if len(vectors) != len(texts):
            raise EmbeddingsError(f"{self._subject()} gave {len(vectors)} vectors for {len(texts)} texts.")
        return [_unit(vector) for vector in vectors]

    def embed_query(self, text: str) -> Vector:
        return _unit(self._call(lambda: self._embeddings.embed_query(text)))

    def _call(self, call: Callable[[], _Result]) -> _Result:
        try:
            return call()
        # Each provider's package has its own exceptions.
        except Exception as error:
            logger.warning("The embeddings of %s failed", self.name, exc_info=True)
            raise EmbeddingsError(f"{self._subject()} {self._reason(error)}") from error

    def _subject(self) -> str:
        return f"The embedding model {self._model} of {self._provider}"

    def _reason(self, error: Exception) -> str:
        match getattr(error, "status_code", None) or getattr(error, "code", None):
            case 401 | 403:
                return f"was refused: check {self._chosen.needs[0][0] if self._chosen.needs else 'its credentials'}."
            case 404:
                return "does not exist: set EMBEDDINGS_MODEL_NAME to one that does."
            case 429:
                return "exceeded its rate limit or quota. Try again later."
        # Libraries wrap the underlying errors.
        if _has_cause(error, TimeoutError, httpx.TimeoutException) or "Timeout" in type(error).__name__:
            return "did not answer in time. Try again, or raise LLM_TIMEOUT."
        if _has_cause(error, ConnectionError, httpx.TransportError):
            return "cannot be reached. Check its address and the network."
        return f"failed ({type(error).__name__}). The log has the details."


def _create(chosen: _Provider, settings: Settings, model: str) -> Embeddings:
    options = {key: value for key, value in chosen.options(settings, model).items() if value is not None}
    try:
        embeddings_class = getattr(importlib.import_module(chosen.module), chosen.class_name)
    except ImportError as error:
        raise EmbeddingsError(
            f"The {chosen.extra} provider's package is not installed: {install_command(chosen.extra)}. "
            "EMBEDDINGS_PROVIDER=none limits search to keywords."
        ) from error
    embeddings: Embeddings = embeddings_class(**options)
    return embeddings


def _has_cause(error: BaseException | None, *kinds: type[BaseException]) -> bool:
    """Whether the error or one of its causes is of these types."""
    while error is not None:
        if isinstance(error, kinds):
            return True
        error = error.__cause__ or error.__context__
    return False


def _unit(vector: Sequence[float]) -> Vector:
    length = math.sqrt(sum(value * value for value in vector))
    return array("f", (value / length for value in vector) if length else vector)
