"""Chromium for tests: where it is, how it is started, and the checks that hold for every page that a test opens."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    ViewportSize,
    WebError,
    async_playwright,
    expect,
)

from ai_platform_engineering.ui.page import Page as BuiltPage
from tests.servers import ROOT
from tests.services.environment import not_here

NARROW: ViewportSize = {"width": 360, "height": 740}
WIDE: ViewportSize = {"width": 1400, "height": 900}
VIEWPORTS = {"narrow": NARROW, "wide": WIDE}
THEMES = ("light", "dark")
WAIT_MS = 15_000
"""Much longer than anything takes, for machines that are busy with other things."""

_ARGUMENTS = (
    *("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
)
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_LOOPBACK = {"127.0.0.1", "localhost"}
_SCHEMES = {"http", "https", "ws", "wss"}
_REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`Content-Security-Policy: ${event.violatedDirective} blocked ${event.blockedURI} ${event.sample}`));
"""


def chromium() -> str:
    """The program of `CHROMIUM`, or that of the PATH. Skips where there is none, or where the page was not built."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        not_here("there is no Chromium (apt-get install chromium, or set CHROMIUM to its path)")
    if not BuiltPage().is_built:
        not_here("the page was not built (make setup builds it where there is Node.js)")
    return found


def build_parts(folder: Path) -> None:
    """Build a page that renders single parts of the page, for tests of those."""
    environ = {**os.environ, "UV": str(ROOT / ".venv" / "bin" / "uv")}
    subprocess.run([ROOT / "ai_platform_engineering/ui/web/page", "parts", folder], check=True, env=environ)


@asynccontextmanager
async def running_browser() -> AsyncIterator[Browser]:
    program = chromium()
    expect.set_options(timeout=WAIT_MS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            await browser.close()


@dataclass
class Problems:
    """Errors of the pages of one test: the test fails if there is one that it did not expect."""

    found: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def expect(self, pattern: str) -> None:
        """A regular expression of errors that belong to the test, such as a refused connection."""
        self.expected.append(pattern)

    def expect_lost_connections(self) -> None:
        self.expect(r"net::ERR_|Failed to fetch|network error")

    def check(self) -> None:
        unexpected = [one for one in self.found if not any(re.search(pattern, one) for pattern in self.expected)]
        assert not unexpected, "The page has errors:\n" + "\n".join(unexpected)

    def watch(self, context: BrowserContext) -> None:
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            place = message.location
            self.found.append(f"console: {message.text} ({place['url']}:{place['lineNumber']})")

    def _on_error(self, error: WebError) -> None:
        self.found.append(f"exception: {error.error}")

    def _on_request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme in _SCHEMES and address.hostname not in _LOOPBACK:
            self.found.append(f"request to another host: {request.method} {request.url}")


@dataclass
class Contexts:
    """Browser contexts of one test. Each is a new profile: own storage, own theme, own viewport."""

    browser: Browser
    url: str
    problems: Problems = field(default_factory=Problems)
    _open: list[BrowserContext] = field(default_factory=list)

    async def new_page(self, *, theme: str = "light", viewport: ViewportSize = WIDE, **options: Any) -> Page:
        """A blank page. `page.goto("")` opens the supervisor's page."""
        context = await self.browser.new_context(
            base_url=f"{self.url}/",
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce",
            viewport=viewport,
            **options,
        )
        self._open.append(context)
        context.set_default_timeout(WAIT_MS)
        await context.add_init_script(_REPORT_VIOLATIONS)
        self.problems.watch(context)
        return await context.new_page()

    async def close(self) -> None:
        for context in self._open:
            await context.close()


def _documentation() -> str:
    return "".join(file.read_text(encoding="utf-8") for file in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))


NewPage = Callable[..., Awaitable[Page]]


@dataclass(frozen=True)
class Violation:
    rule: str
    help: str
    elements: Sequence[str]


async def accessibility_violations(page: Page) -> list[Violation]:
    """Violations that axe finds in the present state of the page."""
    if not await page.evaluate("() => 'axe' in window"):
        source = ROOT / "ai_platform_engineering/ui/web/node_modules/axe-core/axe.min.js"
        await page.evaluate(source.read_text(encoding="utf-8"))
    found = await page.evaluate("async () => (await axe.run(document, { resultTypes: ['violations'] })).violations")
    return [
        Violation(one["id"], one["help"], [f"{node['html']} {node['failureSummary']}" for node in one["nodes"]])
        for one in found
    ]


async def take_screenshot(page: Page, name: str) -> None:
    """Write `docs/screenshots/<name>.png` if `WRITE_SCREENSHOTS` is 1 and the documentation shows it."""
    if os.environ.get("WRITE_SCREENSHOTS") == "1" and f"screenshots/{name}.png" in _documentation():
        await page.screenshot(path=ROOT / "docs" / "screenshots" / f"{name}.png", animations="disabled", caret="hide")
