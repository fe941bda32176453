"""Markdown in the page: texts of models, tools and documents are shown, and nothing in them runs, loads or misleads."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.ui.browser import LOOKS, NARROW, VIEWPORTS, Contexts, check_both_themes
from tests.ui.hostile_texts import HOSTILE_TEXTS

NORMAL = """# Deployment report

The service **payments-api** runs `1.42.0`, see [the runbook](https://git.example.com/rollback.md) [1].

## Applications

| Application | Status | Restarts | Image |
|:--|:-:|--:|---|
| payments-api | Healthy | 3 | `registry.example.com/team/payments-api:1.42.0` |
| checkout | **Degraded** | 17 | `registry.example.com/team/checkout:2.7.1-rc4` |

1. Open the *dashboard*
   - [x] pods
   - [ ] alerts

> A quote with `code`

```yaml
replicas: 3 # enough
```

```console
$ kubectl get pods --namespace payments-production --output wide --show-labels --sort-by .metadata.name
```

Sources:

1. [Rollback of a release](https://git.example.com/team/runbooks/rollback.md)
2. Deploying (`/srv/docs/deploy.md`)
"""

# Everything that no rendered text may have. Buttons and their icons are those of the page itself.
_CHECK = """() => {
  const root = document.querySelector(".markdown");
  const own = [...root.querySelectorAll("*")].filter((one) => !one.closest("button"));
  const tags = new Set(own.map((one) => one.localName));
  const attributes = own.flatMap((one) => [...one.attributes].map((attribute) => attribute.name));
  const links = [...root.querySelectorAll("a")];
  return {
    pwned: window.pwned ?? null,
    base: document.baseURI === location.href && document.querySelectorAll("base, meta[http-equiv]").length === 0,
    isIntact: document.getElementById("page")?.contains(root) && typeof document.getElementById === "function",
    forbidden: [...tags].filter((tag) =>
      !/^(a|blockquote|br|code|del|div|em|h[3-6]|hr|img|li|ol|p|pre|span|strong|table|tbody|td|th|thead|tr|ul)$/.test(tag)),
    attributes: [...new Set(attributes)].filter((name) => /^on|^style$|^id$|^name$|src(set|doc)|^action$/.test(name) ),
    sources: [...root.querySelectorAll("[src]")].map((one) => one.src),
    links: links.map((one) => one.protocol).filter((one) => !/^(https?|mailto):$/.test(one)),
    unprotected: links.filter((one) => one.rel !== "noopener noreferrer" || one.target !== "_blank").length,
  };
}"""


async def opened(parts: Contexts, **options: Any) -> Page:
    page = await parts.new_page(**options)
    await page.goto("")
    return page


async def show(page: Page, text: str, *, streaming: bool = False) -> None:
    await page.evaluate("([text, streaming]) => parts.markdown(text, streaming)", [text, streaming])


async def frames(page: Page, count: int = 2) -> None:
    """Wait for animation frames: a long text is rendered piece by piece."""
    for _ in range(count):
        await page.evaluate("() => new Promise((done) => requestAnimationFrame(done))")


async def test_nothing_in_a_hostile_text_runs_or_loads(parts: Contexts) -> None:
    page = await opened(parts)
    await show(page, "```yaml\na: 1\n```")
    await expect(page.locator(".hljs-attr")).to_be_visible()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    for name, text in HOSTILE_TEXTS.items():
        for streaming in (True, False):
            await page.evaluate("() => parts.clear()")
            await show(page, text, streaming=streaming)
            await frames(page, 3)
            found = await page.evaluate(_CHECK)
            assert found == {
                "pwned": None,
                "base": True,
                "isIntact": True,
                "forbidden": [],
                "attributes": [],
                "sources": [],
                "links": [],
                "unprotected": 0,
            }, name
    assert requests == []


async def test_html_is_shown_as_it_is_written(parts: Contexts) -> None:
    page = await opened(parts)
    await show(page, "Press <kbd>Enter</kbd><br>now <!-- hidden --> &lt;ok&gt;\n\n<script>alert(1)</script>")
    await expect(page.locator(".markdown p").first).to_have_text(re.compile(r"Press <kbd>Enter</kbd>\s*now\s+<ok>"))
    await expect(page.locator(".markdown p").last).to_have_text("<script>alert(1)</script>")


async def test_pictures_of_other_hosts_are_links(parts: Contexts) -> None:
    page = await opened(parts)
    await show(page, "![a beacon](https://evil.example/x.png) ![none](data:image/png;base64,AAAA)")
    await expect(page.get_by_role("link", name="a beacon")).to_have_attribute("href", "https://evil.example/x.png")
    await expect(page.locator(".markdown img")).to_have_count(0)
    await expect(page.locator(".markdown")).to_have_text("a beacon none")


async def test_a_picture_of_the_supervisor_is_loaded(parts: Contexts) -> None:
    page = await opened(parts)
    icon = await page.locator("link[rel=icon]").get_attribute("href")
    await show(page, f"![the icon]({icon})")
    await expect(page.get_by_role("img", name="the icon")).to_have_js_property("complete", True)
    assert await page.get_by_role("img", name="the icon").evaluate("(one) => one.naturalWidth > 0")


async def test_text_cannot_be_reordered_or_hidden(parts: Contexts) -> None:
    page = await opened(parts)
    await show(page, "user\u202egpj.exe\u2066 \u0007`a\u202eb` &#x202e;c\n\n```\nif x \u2067 # y\n```")
    text = await page.locator(".markdown").inner_text()
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u0007]", text)
    assert "usergpj.exe" in text


async def test_a_link_with_the_text_of_another_host_names_its_own(parts: Contexts) -> None:
    page = await opened(parts)
    await show(page, "[https://github.com/login](https://evil.example/login)")
    await expect(page.locator(".markdown")).to_have_text("https://github.com/login (evil.example)")


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "viewport"), LOOKS)
async def test_normal_text_is_accessible_and_fits(parts: Contexts, theme: str, viewport: str) -> None:
    page = await opened(parts, theme=theme, viewport=VIEWPORTS[viewport])
    await show(page, NORMAL)
    await expect(page.locator(".hljs-attr")).to_be_visible()
    # A page has a landmark and a heading of its own, which this one has not.
    outside = {"region", "page-has-heading-one", "landmark-one-main"}
    await check_both_themes(page, besides=outside)
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    if viewport == "narrow":
        assert await page.locator(".table-scroll").evaluate("(one) => one.scrollWidth > one.clientWidth")
        assert await page.locator("pre").last.evaluate("(one) => one.scrollWidth > one.clientWidth")


async def test_the_parts_of_a_text_have_names(parts: Contexts) -> None:
    page = await opened(parts)
    await show(page, NORMAL)
    await expect(page.get_by_role("heading", name="Deployment report", level=3)).to_be_visible()
    await expect(page.get_by_role("heading", name="Applications", level=4)).to_be_visible()
    await expect(page.get_by_role("columnheader", name="Restarts")).to_be_visible()
    await expect(page.get_by_role("img", name="done")).to_be_visible()
    link = page.get_by_role("link", name="Rollback of a release")
    await expect(link).to_have_attribute("href", "https://git.example.com/team/runbooks/rollback.md")


async def test_code_is_copied_as_it_is_written(parts: Contexts) -> None:
    page = await opened(parts, permissions=["clipboard-read", "clipboard-write"])
    await show(page, "```yaml\nreplicas: 3\n\tb: <c>\n```")
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("() => navigator.clipboard.readText()") == "replicas: 3\n\tb: <c>"


HUGE = {
    "one line": "word " * 200_000,
    "one word": "x" * 1_000_000,
    "a table": "| a | b | c |\n|---|---|---|\n" + "| 1 | 2 | 3 |\n" * 100_000,
    "lists": "\n".join(f"{'  ' * depth}- item" for depth in range(400)),
    "quotes": "> " * 5_000 + "deep",
    "items": "- item\n" * 100_000,
    "code": "```yaml\n" + "a: 1\n" * 200_000 + "```",
    "emphasis": "*a **b _c " * 50_000,
    "brackets": "[" * 100_000,
}


@pytest.mark.parametrize("name", HUGE)
async def test_a_huge_text_does_not_fill_the_page(parts: Contexts, name: str) -> None:
    page = await opened(parts)
    await show(page, HUGE[name])
    await frames(page, 30)
    assert await page.locator(".markdown *").count() < 12_000
    assert len(await page.locator(".markdown").inner_text()) < 150_000


async def test_all_of_a_long_text_is_available_as_plain_text(parts: Contexts) -> None:
    page = await opened(parts)
    text = "".join(f"Line {number}\n\n" for number in range(20_000))
    await show(page, text)
    await page.get_by_role("button", name="Show all as plain text").click()
    shown = await page.locator(".plain-text").evaluate("(one) => one.textContent")
    assert shown == text
    await page.get_by_role("button", name="Show the beginning, formatted").click()
    await expect(page.locator(".markdown p").first).to_have_text("Line 0")


async def test_all_rows_of_a_long_table_are_available(parts: Contexts) -> None:
    page = await opened(parts)
    await show(page, "| a |\n|---|\n" + "".join(f"| {number} |\n" for number in range(900)))
    await expect(page.get_by_text("The first 200 of 900 rows.")).to_be_visible()
    await page.get_by_role("button", name="Show all as plain text").click()
    await expect(page.locator(".plain-text")).to_contain_text("| 899 |")


async def test_finished_blocks_keep_their_elements_while_text_arrives(parts: Contexts) -> None:
    page = await opened(parts, viewport=NARROW)
    await show(page, NORMAL[:400], streaming=True)
    mark = "() => document.querySelectorAll('.markdown h3, .markdown h3 + p').forEach((one) => (one.mark = 1))"
    await page.evaluate(mark)
    for end in range(400, len(NORMAL), 40):
        await show(page, NORMAL[:end], streaming=True)
    await show(page, NORMAL)
    await expect(page.locator(".hljs-attr")).to_be_visible()
    kept = "() => [...document.querySelectorAll('.markdown h3, .markdown h3 + p')].map((one) => one.mark)"
    assert await page.evaluate(kept) == [1, 1]


async def test_no_task_is_long_while_an_answer_is_streamed(parts: Contexts) -> None:
    """40 pieces of text a second, 20 KB in all: no task of the page takes 50 ms of CPU time.

    CPU time is longer on a busy machine, too, so the best of three times counts.
    """
    page = await opened(parts)
    text = (NORMAL.replace("[1]", "") * 30)[:20_000]
    # Once before, because the browser compiles the scripts when they run for the first time.
    await page.evaluate("(text) => parts.stream(text, 1000)", text)
    longest: list[float] = []
    while len(longest) < 3 and min(longest, default=50) >= 50:
        await page.evaluate("() => parts.clear()")
        await parts.browser.start_tracing(page=page, categories=["toplevel", "disabled-by-default-toplevel"])
        await page.evaluate("(text) => parts.stream(text, 200)", text)
        trace = json.loads(await parts.browser.stop_tracing())
        assert await page.locator(".markdown .code-block").count() > 20
        tasks = task_milliseconds(trace["traceEvents"])
        assert len(tasks) > 100
        longest.append(max(tasks))
    assert min(longest) < 50


def task_milliseconds(events: list[dict[str, Any]]) -> list[float]:
    """The CPU time of each task of the pages' main threads."""
    mains = {
        (one["pid"], one["tid"])
        for one in events
        if one["name"] == "thread_name" and one["args"]["name"] == "CrRendererMain"
    }
    return [
        one["tdur"] / 1000
        for one in events
        if "RunTask" in one["name"] and "tdur" in one and (one["pid"], one["tid"]) in mains
    ]
