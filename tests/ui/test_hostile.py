"""Text of a model, a tool and a document that tries to run, to load and to mislead: it stays text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from ai_platform_engineering.llm.scripted import Turn
from ai_platform_engineering.sandbox.records import Ticket
from ai_platform_engineering.sandbox.store import SandboxStore, sandbox_path
from tests.recovery.model_server import ModelServer, model_server
from tests.recovery.processes import Restartable
from tests.recovery.scenario import results_of
from tests.servers import START_SECONDS
from tests.ui.browser import NARROW, NewPage, Problems
from tests.ui.chat import answer_in, ask, open_chat, overflows, run_details

HOSTILE = (
    "<script>window.ran = 1</script>"
    '<img src="x" onerror="window.ran = 2"><img src="https://beacon.example/p.png">'
    '<svg onload="window.ran = 3"></svg><iframe srcdoc="<script>top.ran = 4</script>"></iframe>'
    '<a href="javascript:window.ran = 5">here</a><form action="https://evil.example"><input name="key"></form>'
    '<style>body { display: none }</style><base href="https://evil.example/">'
)
MARKDOWN = (
    "[click](javascript:window.ran=6) ![beacon](https://beacon.example/q.png) "
    "[file](data:text/html,<script>1</script>) [ref]\n\n[ref]: javascript:window.ran=7\n\n"
    '```mermaid\ngraph TD\n  A["<img src=x onerror=\'top.ran=8\'>"] --> B\n  click B "javascript:top.ran=9"\n```\n\n'
)
BIDI = "pay\u202etxt.exe\u2066 \u200f"
HUGE = "W" * 400_000
DOCUMENT = f"# The zygomorphic handbook\n\nThe zygomorphic gateway is restarted so: {HOSTILE}\n\n{MARKDOWN}{BIDI}\n"
SUMMARY = f"Zygomorphic {HOSTILE} {BIDI}"
# Elements and attributes that could run something, load something or send something.
DANGEROUS = """
() => [...document.querySelectorAll("#page *")].filter((element) =>
  ["SCRIPT", "IFRAME", "OBJECT", "EMBED", "BASE", "STYLE", "META"].includes(element.tagName)
    && !element.matches("iframe[sandbox='allow-scripts']")
  || element.tagName === "IMG" && new URL(element.src, location).origin !== location.origin
  || [...element.attributes].some(({ name, value }) =>
    name.startsWith("on") || name === "style" || name === "srcdoc"
    || ["href", "src", "action", "xlink:href"].includes(name) && /^\\s*(javascript|data|vbscript):/i.test(value)))
  .map((element) => element.outerHTML.slice(0, 200))
"""
MISLEADING = "() => /[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.querySelector('main').innerText)"


def play(request: Mapping[str, Any]) -> Turn:
    """Repeats everything it was given."""
    tools = {tool["function"]["name"] for tool in request.get("tools") or ()}
    question = str(next(one["content"] for one in reversed(request["messages"]) if one["role"] == "user"))
    results = results_of(request["messages"])
    if "task" not in tools:
        return Turn(f"{results[-1][1]}") if results else Turn("", [("search_issues", {"query": "Zygomorphic"})])
    if "huge" in question:
        return Turn(f"# Long\n\n{HUGE}\n\nThe end.")
    if not results:
        steps = [{"content": f"{HOSTILE} {BIDI}", "agent": "jira"}]
        return Turn(f"{HOSTILE}\n\n{MARKDOWN}", [("write_todos", {"title": HOSTILE, "steps": steps})])
    if any(tool == "task" for tool, _ in results):
        said = "\n\n".join(text for tool, text in results if tool != "write_todos")
        return Turn(f"{said}\n\n{HOSTILE}\n\n{MARKDOWN}\n\n{BIDI}\n\nThe end.")
    return Turn(
        "",
        [
            ("task", {"description": f"Find it. {HOSTILE}", "subagent_type": "jira"}),
            ("search", {"query": "how is the zygomorphic gateway restarted?"}),
        ],
    )


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def model() -> AsyncIterator[ModelServer]:
    async with model_server(play) as model:
        yield model


@pytest.fixture(scope="module")
def supervisor_environ(model: ModelServer) -> dict[str, str]:
    return {"SANDBOX": "true", **model.environ()}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def planted(supervisor: Restartable) -> None:
    """A ticket and a document with the hostile text."""
    with SandboxStore(sandbox_path(Path(supervisor.data_dir))).write() as session:
        ticket = session.all(Ticket)[0]
        session.put(ticket.model_copy(update={"summary": SUMMARY, "description": SUMMARY}))
    # The first document loads the embedding model.
    async with httpx.AsyncClient(base_url=supervisor.url, timeout=START_SECONDS) as http:
        stored = await http.put(
            "/rag/v1/datasources/handbook/documents/gateway.md",
            content=DOCUMENT,
            headers={"Content-Type": "text/markdown"},
        )
    stored.raise_for_status()


async def expect_only_text(page: Page) -> None:
    assert await page.evaluate(DANGEROUS) == []
    assert not await page.evaluate(MISLEADING)
    assert await page.evaluate("() => window.ran ?? null") is None
    await expect(page.get_by_label("Your message")).to_be_visible()
    # No page was opened after this one.
    assert page.context.pages[-1] == page


@pytest.mark.usefixtures("planted")
async def test_hostile_text_of_model_tool_and_document_stays_text(
    page: Page, model: ModelServer, problems: Problems
) -> None:
    # Mermaid measures labels as HTML. Its frame has an origin of its own, whose policy blocks their handlers.
    problems.expect(r"/assets/diagram/|script-src-attr blocked inline  \(:")
    await open_chat(page)
    turn = await ask(page, f"Restart it. {HOSTILE}")
    results = " ".join(str(message["content"]) for message in model.calls[-1].messages if message["role"] == "tool")
    assert "Zygomorphic <script>" in results
    assert "zygomorphic gateway" in results
    await expect(answer_in(turn)).to_contain_text("The end.")
    await run_details(turn)
    await expect_only_text(page)
    await page.reload()
    await expect(answer_in(page)).to_contain_text("The end.")
    await run_details(page.get_by_role("article"))
    await expect_only_text(page)
    await page.get_by_role("button", name="Events of this run").click()
    for row in await page.get_by_role("region", name="Events of this run").locator("summary").all():
        await row.click()
    assert await page.evaluate(DANGEROUS) == []
    assert await page.evaluate("() => window.ran ?? null") is None


async def test_huge_text_is_cut_and_the_page_stays_usable(new_page: NewPage) -> None:
    page = await new_page(viewport=NARROW)
    await open_chat(page)
    await ask(page, "Say something huge.")
    assert not await overflows(page)
    await page.get_by_label("Your message").fill("still here")
    await expect(page.get_by_label("Your message")).to_have_value("still here")
