"""Extras: optional dependencies, and how they are installed.

The product is installed from its checkout. It is on no package index, so a command that names one must not be shown:
anybody could register the name there.
"""

from __future__ import annotations


def install_command(extra: str) -> str:
    """The way to install `extra`, as the end of a sentence."""
    return f"run `make setup EXTRAS={extra}` in the checkout, or build the image with `--build-arg EXTRAS={extra}`"
