"""A pytest plugin: mutmut 3.8 reads `Item._nodeid`, which pytest 9.2 no longer has."""

from __future__ import annotations

import pytest


def pytest_configure() -> None:
    if not hasattr(pytest.Item, "_nodeid"):
        pytest.Item._nodeid = property(lambda item: item.nodeid)  # type: ignore[attr-defined]
