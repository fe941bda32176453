"""Documents in any number, with the words of real ones as often as these have them: their sentences, put together anew.

The words are those of the originals and no others, so in a hundred times as many chunks each is a hundred times as
often. A collection that grew by itself would have new words too: searching this one is rather more work than less.
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
_CHUNKS: Final = 10
_CHARACTERS: Final = 900
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_NOISE: Final = 0.6

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Recombined:
    document: Document
    chunks: Sequence[Chunk]
    vectors: Vectors


def recombined(originals: Sequence[Chunk], vectors: Vectors, first: int, chunks: int) -> Iterator[Recombined]:
    """As many documents as it takes for that many chunks, numbered from `first`; the same ones every time.

    Their vectors are made from those of originals, with noise: near each other in the way real ones are, but not what
    a model would say of the text.
    """
    sentences = [part for chunk in originals for part in _SENTENCE.split(chunk.text) if len(part) > 20]
    sections = [chunk.section for chunk in originals]
    chance = random.Random(first)  # noqa: S311 - not for secrets
    noises = np.random.default_rng(first)
    number = first
    while chunks > 0:
        count = min(_CHUNKS, chunks)
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
    while length < _CHARACTERS:
        chosen.append(chance.choice(sentences))
        length += len(chosen[-1])
    return "\n".join(chosen)[: _CHARACTERS * 2]


def _near(vectors: Vectors, count: int, noises: np.random.Generator) -> Vectors:
    noise = noises.standard_normal((count, vectors.shape[1]), dtype=np.float32)
    noise *= _NOISE / np.linalg.norm(noise, axis=1, keepdims=True)
    near = vectors[noises.integers(len(vectors), size=count)] + noise
    return near / np.linalg.norm(near, axis=1, keepdims=True)
