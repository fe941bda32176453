from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.ui.browser import NewPage

MAX_BYTES = 150_000
MAX_SECONDS = 1.0
# The first load on a busy machine says more about the machine than about the page.
LOADS = 3
TIMING = """
() => {
  const [navigation] = performance.getEntriesByType("navigation");
  const resources = performance.getEntriesByType("resource");
  return {
    seconds: navigation.loadEventEnd / 1000,
    bytes: [navigation, ...resources].reduce((sum, entry) => sum + entry.encodedBodySize, 0),
    unknown: resources.filter((entry) => entry.encodedBodySize === 0 && entry.responseStatus === 200)
      .map((entry) => entry.name),
  };
}
"""


@pytest.fixture(scope="module")
def profile() -> None:
    """None: each page loads all files."""


async def test_the_page_opens(page: Page) -> None:
    response = await page.goto("")
    assert response is not None
    assert response.status == 200
    await expect(page).to_have_title(re.compile("Platform Engineer"))
    await expect(page.get_by_role("main")).to_be_visible()


async def test_the_first_load_is_small_and_quick(new_page: NewPage) -> None:
    loads = []
    for _ in range(LOADS):
        page = await new_page()
        await page.goto("", wait_until="load")
        await expect(page.get_by_role("main")).to_be_visible()
        loads.append(await page.evaluate(TIMING))
    assert not loads[0]["unknown"]
    assert max(load["bytes"] for load in loads) < MAX_BYTES
    assert min(load["seconds"] for load in loads) < MAX_SECONDS
