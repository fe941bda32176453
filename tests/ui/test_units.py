"""The unit tests of the page, which run in Node.js."""

from __future__ import annotations

from tests.ui.node import run_page


def test_the_units_of_the_page() -> None:
    run_page("test")
