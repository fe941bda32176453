"""Generates any number of documents from the sentences of real ones, with the same word frequencies.

No new words occur, so with a hundred times as many chunks each word is a hundred times as frequent. A real collection
of this size would have more distinct words, so searching this one is more work, not less.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Document, document_id

DATASOURCE: Final = "recombined"
_CHUNKS_PER_DOCUMENT: Final = 10
_CHUNK_LENGTH: Final = 900
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_NOISE: Final = 0.6

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Recombined:
    document: Document
    chunks: Sequence[Chunk]
    vectors: Vectors


def recombined(originals: Sequence[Chunk], vectors: Vectors, first: int, chunks: int) -> Iterator[Recombined]:
    """Enough documents for this number of chunks, numbered from `first`. Deterministic.

    Their vectors are vectors of real chunks with noise. Their distances are realistic, but they do not match the text.
    """
    sentences = [part for chunk in originals for part in _SENTENCE.split(chunk.text) if len(part) > 20]
    sections = [chunk.section for chunk in originals]
    chance = random.Random(first)  # noqa: S311 - not for secrets
    noises = np.random.default_rng(first)
    number = first
    while chunks > 0:
        count = min(_CHUNKS_PER_DOCUMENT, chunks)
        chunks -= count
        path = f"{number:06}.md"
        texts = [_text(sentences, chance) for _ in range(count)]
        pieces = [
            Chunk(document_id(DATASOURCE, path), index, chance.choice(sections), text)
            for index, text in enumerate(texts)
        ]
        title = chance.choice(sections).partition(" > ")[0]
        document = Document(DATASOURCE, path, title, "\n\n".join(texts), path)
        yield Recombined(document, pieces, _near(vectors, count, noises))
        number += 1


def _text(sentences: Sequence[str], chance: random.Random) -> str:
    chosen: list[str] = []
    length = 0
    while length < _CHUNK_LENGTH:
        chosen.append(chance.choice(sentences))
        length += len(chosen[-1])
    return "\n".join(chosen)[: _CHUNK_LENGTH * 2]


def _near(vectors: Vectors, count: int, noises: np.random.Generator) -> Vectors:
    noise = noises.standard_normal((count, vectors.shape[1]), dtype=np.float32)
    noise *= _NOISE / np.linalg.norm(noise, axis=1, keepdims=True)
    near = vectors[noises.integers(len(vectors), size=count)] + noise
    return near / np.linalg.norm(near, axis=1, keepdims=True)
