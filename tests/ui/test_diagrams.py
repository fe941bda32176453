"""Mermaid diagrams in the page: drawn in a frame that can reach nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Error, Frame, Page, expect

from tests.ui.browser import NARROW, THEMES, Contexts, accessibility_violations

pytestmark = pytest.mark.slow

FLOW = "flowchart LR\n  A[User asks] --> B{Supervisor}\n  B -->|Jira| C[Jira agent]"
HOSTILE = {
    "labels": 'flowchart LR\n  A["<img src=x onerror=alert(1)>"] --> B["<script>alert(1)</script>"]',
    "links": 'flowchart LR\n  A --> B\n  click A "javascript:alert(1)"\n  click B href "ELSEWHERE" _top',
    "callbacks": "flowchart LR\n  A --> B\n  click A call alert(1)",
    "settings": '%%{init: {"securityLevel": "loose", "htmlLabels": true, "themeCSS": "@import url(ELSEWHERE)"}}%%\n'
    'flowchart LR\n  A["<img src=ELSEWHERE/x onerror=alert(1)>"] --> B',
    "pictures": 'flowchart LR\n  A@{ img: "ELSEWHERE/x.png", label: "x", w: 60, h: 60 }',
    "styles": "flowchart LR\n  A --> B\n  style A fill:url(ELSEWHERE/x)",
}


def fenced(source: str) -> str:
    return f"Before\n\n```mermaid\n{source}\n```\n\nAfter\n"


async def opened(parts: Contexts, text: str, *, streaming: bool = False, **options: Any) -> Page:
    page = await parts.new_page(**options)
    await page.goto("")
    await page.evaluate("([text, streaming]) => parts.markdown(text, streaming)", [text, streaming])
    return page


async def drawn(page: Page) -> Frame:
    """The frame of the page's first diagram, once it is drawn."""
    await expect(page.get_by_role("button", name="Show the source").first).to_be_visible()
    frame = await (await page.locator("iframe").first.element_handle()).content_frame()
    assert frame is not None
    return frame


@pytest.mark.parametrize("theme", THEMES)
async def test_a_diagram_is_drawn_in_the_colors_of_the_page(parts: Contexts, theme: str) -> None:
    page = await opened(parts, fenced(FLOW), theme=theme, viewport=NARROW)
    frame = await drawn(page)
    await expect(frame.locator("svg .node")).to_have_count(3)
    await expect(frame.locator("svg")).to_contain_text("Supervisor")
    assert await frame.evaluate("() => getComputedStyle(document.documentElement).colorScheme") == theme
    await expect(page.locator("iframe")).to_have_attribute("title", "Diagram (flowchart)")
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    outside = {"region", "page-has-heading-one", "landmark-one-main"}
    assert [one for one in await accessibility_violations(page) if one.rule not in outside] == []


async def test_colors_change_with_the_page(parts: Contexts) -> None:
    page = await opened(parts, fenced(FLOW))
    frame = await drawn(page)
    await page.evaluate("() => parts.setTheme('dark')")
    await expect(frame.locator("html")).to_have_css("color-scheme", "dark")


async def test_the_source_is_one_button_away(parts: Contexts) -> None:
    page = await opened(parts, fenced(FLOW))
    await drawn(page)
    await expect(page.locator("pre")).to_have_count(0)
    await page.get_by_role("button", name="Show the source").click()
    await expect(page.locator("pre")).to_have_text(FLOW)
    await expect(page.locator("iframe")).to_be_hidden()
    await page.get_by_role("button", name="Show the diagram").click()
    await expect(page.locator("iframe")).to_be_visible()


async def test_the_source_is_shown_until_the_block_is_complete(parts: Contexts) -> None:
    page = await opened(parts, f"```mermaid\n{FLOW}\n", streaming=True)
    await expect(page.locator("pre")).to_have_text(FLOW)
    await expect(page.locator("iframe")).to_have_count(0)
    await page.evaluate("(text) => parts.markdown(text)", f"```mermaid\n{FLOW}\n```")
    await drawn(page)


async def test_a_diagram_with_an_error_stays_source_with_a_note(parts: Contexts) -> None:
    page = await opened(parts, fenced("flowchart LR\n  A --> [[["))
    await expect(page.get_by_text("This diagram could not be drawn.")).to_be_visible()
    await expect(page.locator("pre")).to_contain_text("A --> [[[")
    await expect(page.locator("iframe")).to_have_count(0)


async def test_very_many_diagrams_are_source(parts: Contexts) -> None:
    page = await opened(parts, fenced(FLOW) * 30)
    await expect(page.locator("iframe")).to_have_count(20)
    # Only those near the view are loaded.
    await drawn(page)
    assert len(page.frames) < 31


@dataclass
class Elsewhere:
    """A host that no page may call."""

    url: str
    requests: list[bytes] = field(default_factory=list)


@pytest_asyncio.fixture(loop_scope="session")
async def elsewhere() -> AsyncIterator[Elsewhere]:
    host = Elsewhere("")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Chromium opens a connection before it looks at the policy, and then sends nothing.
        if received := await reader.read(1000):
            host.requests.append(received)
        writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        host.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield host


@pytest.mark.parametrize("name", HOSTILE)
async def test_nothing_in_a_hostile_diagram_runs_or_loads(parts: Contexts, elsewhere: Elsewhere, name: str) -> None:
    page = await opened(parts, "", viewport=NARROW)
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    # What mermaid lets through, the policy of the frame stops.
    parts.problems.expect("Content.Security.Policy")
    await page.evaluate("(text) => parts.markdown(text)", fenced(HOSTILE[name].replace("ELSEWHERE", elsewhere.url)))
    await expect(
        page.get_by_role("button", name="Show the source").or_(page.get_by_text("could not be drawn"))
    ).to_be_visible()
    if await page.locator("iframe").count():
        frame = await drawn(page)
        for node in await frame.locator("svg .node").all():
            await node.dispatch_event("click")
        assert await frame.locator("script:not([src]), svg foreignObject, a[*|href^='javascript:']").count() == 0
        assert frame.url == f"{parts.url}/diagram.html"
    assert dialogs == []
    assert page.url == f"{parts.url}/"
    assert elsewhere.requests == []


async def test_the_frame_can_reach_nothing(parts: Contexts, elsewhere: Elsewhere) -> None:
    """As if a script of an attacker ran in it."""
    page = await opened(parts, fenced(FLOW))
    frame = await drawn(page)
    parts.problems.expect("Content.Security.Policy|Unsafe attempt|sandbox|Framing|Blocked|violates")
    picture = "(url) => new Promise((done, fail) => { const one = new Image(); one.onload = done;"
    attempts = {
        "other hosts": "(url) => fetch(url)",
        "the supervisor": "() => fetch('/agents')",
        "the page": "() => parent.document.title",
        "storage": "() => localStorage.length",
        "cookies": "() => document.cookie",
        "navigation of the page": "(url) => { top.location = url }",
        "pictures": f"{picture} one.onerror = () => fail(new Error('blocked')); one.src = url }})",
        "inline scripts": "() => { const one = document.createElement('script'); one.textContent = 'window.ran = 1';"
        " document.body.append(one); if (!window.ran) throw new Error('blocked') }",
        "windows": "(url) => { if (window.open(url) === null) throw new Error('blocked') }",
    }
    allowed = []
    for name, attempt in attempts.items():
        with suppress(Error):
            await frame.evaluate(attempt, elsewhere.url)
            allowed.append(name)
    assert allowed == []
    async with page.expect_event("framenavigated"):
        await frame.evaluate("(url) => { location = url }", elsewhere.url)
    assert page.url == f"{parts.url}/"
    assert elsewhere.requests == []


async def test_messages_of_others_are_ignored(parts: Contexts) -> None:
    page = await opened(parts, fenced(FLOW))
    await drawn(page)
    height = await page.locator("iframe").get_attribute("height")
    await page.evaluate("() => postMessage({ state: 'drawn', height: 9 }, '*')")
    await page.evaluate("() => postMessage({ state: 'failed' }, '*')")
    await page.evaluate("() => new Promise((done) => setTimeout(done, 50))")
    assert await page.locator("iframe").get_attribute("height") == height
