"""The interface of embedders, which turn text into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ai_platform_engineering.knowledge_bases.rag.stores.store import Vector
from ai_platform_engineering.utils.errors import ReadableError


class EmbeddingsError(ReadableError):
    """Text cannot be turned into vectors: by what, why, and the way out."""


class Embedder(Protocol):
    """Safe to use from several threads. Blocks: call it through a thread.

    Vectors are of unit length and of single precision (`array.array("f")`), so that their dot product is the cosine.
    """

    @property
    def name(self) -> str:
        """The model and what makes its vectors incomparable with others; part of every fingerprint."""

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector for each text, in their order; the same for a text whatever stands beside it."""

    def embed_query(self, text: str) -> Vector: ...
