"""The installed product: its version, and the command that installs an optional dependency (an extra).

The product is installed from its checkout. It is on no package index, so no text may name one as a source:
anyone could register the name there.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def product_version() -> str:
    try:
        return version("ai-platform-engineering")
    except PackageNotFoundError:
        return "0+not-installed"


def install_command(extra: str) -> str:
    """How to install `extra`, as the end of a sentence."""
    return f"run `make setup EXTRAS={extra}` in the checkout, or build the image with `--build-arg EXTRAS={extra}`"
