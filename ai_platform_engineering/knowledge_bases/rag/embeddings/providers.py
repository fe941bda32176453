"""Embedders of providers. Their packages are optional extras and are imported only when their provider is chosen."""

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

from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import EmbeddingsError
from ai_platform_engineering.knowledge_bases.rag.stores.store import Vector
from ai_platform_engineering.settings import EmbeddingsProvider, Settings
from ai_platform_engineering.utils.extras import install_command

logger = logging.getLogger(__name__)

_AZURE_API_VERSION: Final = "2024-10-21"
# A server of one's own often asks for no key, but the client library insists on one.
_NO_KEY: Final = SecretStr("not-needed")

_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class _Provider:
    """`needs` names variables of which one of each tuple has to be set; the first of the first is its key."""

    module: str
    made_by: str
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
        # Counting tokens needs a download, and other servers than OpenAI's take words only. Chunks are short enough.
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
    """Batches and repeats as the provider's own class does."""

    def __init__(self, settings: Settings, provider: EmbeddingsProvider) -> None:
        """Raises an EmbeddingsError where a setting or a package is missing."""
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
        self._embeddings = _made(chosen, settings, self._model)

    @property
    def name(self) -> str:
        return f"{self._provider}:{self._model}"

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        if not texts:
            return []
        vectors = self._asked(lambda: self._embeddings.embed_documents(list(texts)))
        if len(vectors) != len(texts):
            raise EmbeddingsError(f"{self._who()} gave {len(vectors)} vectors for {len(texts)} texts.")
        return [_unit(vector) for vector in vectors]

    def embed_query(self, text: str) -> Vector:
        return _unit(self._asked(lambda: self._embeddings.embed_query(text)))

    def _asked(self, ask: Callable[[], _Made]) -> _Made:
        try:
            return ask()
        # Every provider's package has errors of its own.
        except Exception as error:
            logger.warning("The embeddings of %s failed", self.name, exc_info=True)
            raise EmbeddingsError(f"{self._who()} {self._what(error)}") from error

    def _who(self) -> str:
        return f"The embedding model {self._model} of {self._provider}"

    def _what(self, error: Exception) -> str:
        match getattr(error, "status_code", None) or getattr(error, "code", None):
            case 401 | 403:
                return f"was refused: check {self._chosen.needs[0][0] if self._chosen.needs else 'its credentials'}."
            case 404:
                return "is not there: set EMBEDDINGS_MODEL_NAME to one that is."
            case 429:
                return "is asked too often, or its quota is used up. Try again later."
        # Libraries wrap what went wrong below them.
        if _has(error, TimeoutError, httpx.TimeoutException) or "Timeout" in type(error).__name__:
            return "did not answer in time. Try again, or raise LLM_TIMEOUT."
        if _has(error, ConnectionError, httpx.TransportError):
            return "cannot be reached. Check its address and the network."
        return f"failed ({type(error).__name__}). The log has the details."


def _made(chosen: _Provider, settings: Settings, model: str) -> Embeddings:
    options = {key: value for key, value in chosen.options(settings, model).items() if value is not None}
    try:
        made_by = getattr(importlib.import_module(chosen.module), chosen.made_by)
    except ImportError as error:
        raise EmbeddingsError(
            f"The {chosen.extra} provider's package is not installed: {install_command(chosen.extra)}. "
            "EMBEDDINGS_PROVIDER=none does without."
        ) from error
    embeddings: Embeddings = made_by(**options)
    return embeddings


def _has(error: BaseException | None, *kinds: type[BaseException]) -> bool:
    """Whether the error is one of these, or was made from one."""
    while error is not None:
        if isinstance(error, kinds):
            return True
        error = error.__cause__ or error.__context__
    return False


def _unit(vector: Sequence[float]) -> Vector:
    length = math.sqrt(sum(value * value for value in vector))
    return array("f", (value / length for value in vector) if length else vector)
