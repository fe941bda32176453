"""The timeline of a run: a picture, and the same in words."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.ui.browser import LOOKS, VIEWPORTS, Contexts, check_both_themes


def call(
    kind: str, call_id: str, agent: str, start: float, end: float | None, state: str, **more: Any
) -> dict[str, Any]:
    times = {"startedAt": start, "endedAt": end}
    return {
        "kind": kind,
        "callId": call_id,
        "agent": agent,
        "state": state,
        "reason": "",
        "stepId": None,
        **times,
        **more,
    }


def tool(call_id: str, name: str, start: float, end: float | None, state: str = "completed") -> dict[str, Any]:
    return call("tool", call_id, "jira", start, end, state, tool=name, skill=None)


def run(elapsed: float) -> dict[str, Any]:
    calls = [
        call("agent", "1", "jira", 0.5, 4.0, "completed", tools=[tool("2", "search_issues", 1, 3, "failed")]),
        call("agent", "3", "github", 0.6, None, "running", tools=[tool("4", "a_very_long_" * 9, 5, None, "waiting")]),
    ]
    empty = {"planTitle": "", "steps": [], "messages": [], "forms": [], "ending": None, "answerId": None}
    return {**empty, "calls": calls, "elapsed": elapsed}


async def show(page: Page, elapsed: float) -> None:
    await page.evaluate("(run) => parts.timeline(run)", run(elapsed))


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "viewport"), LOOKS)
async def test_the_picture_says_who_worked_when(parts: Contexts, theme: str, viewport: str) -> None:
    page = await parts.new_page(theme=theme, viewport=VIEWPORTS[viewport])
    await page.goto("")
    await show(page, 10)
    picture = page.get_by_role("img", name="Timeline of 10.0 seconds.")
    await expect(picture).to_have_attribute(
        "aria-label",
        "Timeline of 10.0 seconds. Jira: from 0.5 seconds to 4.0 seconds, completed. "
        "Github: from 0.6 seconds to 10.0 seconds, running. Jira and Github worked in parallel.",
    )
    await expect(page.get_by_role("rowheader", name="search_issues")).to_have_count(1)
    assert await page.locator("[style]").count() == 0
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    outside = {"region", "page-has-heading-one", "landmark-one-main", "heading-order"}
    await check_both_themes(page, besides=outside)


async def test_running_bars_grow(parts: Contexts) -> None:
    page = await parts.new_page()
    await page.goto("")
    bar = page.locator(".bar.running")
    for elapsed, width in ((6, "90%"), (12, "95%")):
        await show(page, elapsed)
        await expect(bar).to_have_attribute("width", width)
