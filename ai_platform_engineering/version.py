"""The version of the product, as it was installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def product_version() -> str:
    try:
        return version("ai-platform-engineering")
    except PackageNotFoundError:
        return "0+not-installed"
