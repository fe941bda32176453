"""Chromium for tests: where it is, how it is started, and the checks that hold for every page that a test opens."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Route,
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
LOOKS = [("light", "narrow"), ("dark", "wide")]
"""Theme and width in which a page is opened; `check_both_themes` checks each width with both themes."""
COLOR_RULES = ("color-contrast", "link-in-text-block")
WAIT_MS = 15_000
"""Much longer than anything takes, for machines that are busy with other things."""

_ARGUMENTS = (
    *("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
)
# The headless shell is what Playwright itself runs without a window: a page costs half of the CPU.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
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
        not_here("there is no Chromium (apt-get install chromium-headless-shell, or set CHROMIUM to its path)")
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
    _watched: list[BrowserContext] = field(default_factory=list)

    def expect(self, pattern: str) -> None:
        """A regular expression of errors that belong to the test, such as a refused connection."""
        self.expected.append(pattern)

    def expect_lost_connections(self) -> None:
        self.expect(r"net::ERR_|Failed to fetch|network error")

    def check(self) -> None:
        unexpected = [one for one in self.found if not any(re.search(pattern, one) for pattern in self.expected)]
        assert not unexpected, "The page has errors:\n" + "\n".join(unexpected)

    def watch(self, context: BrowserContext) -> None:
        self._watched.append(context)
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("request", self._on_request)

    def stop_watching(self) -> None:
        for context in self._watched:
            context.remove_listener("console", self._on_console)
            context.remove_listener("weberror", self._on_error)
            context.remove_listener("request", self._on_request)
        self._watched.clear()

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
class Refusal:
    """Whether requests of a page are refused."""

    active: bool = False


async def refusal(page: Page, method: str, pattern: str, status: int, answer: dict[str, str]) -> Refusal:
    """Prepared before the page is opened: Chromium may still send a request of an open page after `page.route`."""
    refused = Refusal()

    async def decide(route: Route) -> None:
        if refused.active and route.request.method == method:
            await route.fulfill(status=status, json=answer)
        else:
            await route.continue_()

    await page.route(pattern, decide)
    return refused


@dataclass
class Profile:
    """A browser context for one test after the other: a new one costs as much as loading the page and asking.

    Each test gets it without cookies, storage and pages of earlier tests. Files of the page stay cached.
    """

    browser: Browser
    url: str
    _blank: Page | None = None
    """Stays open: Chromium drops the caches of a context that has no page."""

    async def new_page(self) -> Page:
        if self._blank is None:
            context = await _new_context(self.browser, self.url)
            self._blank = await context.new_page()
        else:
            context = self._blank.context
            await context.clear_cookies()
            session = await context.new_cdp_session(self._blank)
            await session.send("Storage.clearDataForOrigin", {"origin": self.url, "storageTypes": "all"})
            await session.detach()
        return await context.new_page()

    async def release(self) -> None:
        if self._blank is not None:
            for page in self._blank.context.pages:
                if page != self._blank:
                    await page.close()
            await self._blank.context.set_offline(False)

    async def close(self) -> None:
        if self._blank is not None:
            await self._blank.context.close()


async def _new_context(browser: Browser, url: str, **options: Any) -> BrowserContext:
    context = await browser.new_context(base_url=f"{url}/", reduced_motion="reduce", viewport=WIDE, **options)
    context.set_default_timeout(WAIT_MS)
    await context.add_init_script(_REPORT_VIOLATIONS)
    return context


@dataclass
class Contexts:
    """Browser contexts of one test. Each page has a profile of its own: own storage, own theme, own viewport.

    The first page has `profile`, if there is one.
    """

    browser: Browser
    url: str
    profile: Profile | None = None
    problems: Problems = field(default_factory=Problems)
    _open: list[BrowserContext] = field(default_factory=list)
    _uses_profile: bool = False

    async def new_page(self, *, theme: str = "light", viewport: ViewportSize = WIDE, **options: Any) -> Page:
        """A blank page. `page.goto("")` opens the supervisor's page."""
        page = await self._new_page(**options)
        self.problems.watch(page.context)
        if theme == "dark":
            await page.emulate_media(color_scheme="dark")
        if viewport != WIDE:
            await page.set_viewport_size(viewport)
        return page

    async def _new_page(self, **options: Any) -> Page:
        if self.profile is not None and not self._uses_profile and not options:
            self._uses_profile = True
            return await self.profile.new_page()
        context = await _new_context(self.browser, self.url, **options)
        self._open.append(context)
        return await context.new_page()

    async def close(self) -> None:
        for context in self._open:
            await context.close()
        if self.profile is not None:
            await self.profile.release()
        self.problems.stop_watching()


def _documentation() -> str:
    return "".join(file.read_text(encoding="utf-8") for file in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))


NewPage = Callable[..., Awaitable[Page]]


@dataclass(frozen=True)
class Violation:
    rule: str
    help: str
    elements: Sequence[str]


async def accessibility_violations(page: Page, rules: Sequence[str] = ()) -> list[Violation]:
    """Violations that axe finds in the present state of the page, of all rules unless some are named."""
    if not await page.evaluate("() => 'axe' in window"):
        source = ROOT / "ai_platform_engineering/ui/web/node_modules/axe-core/axe.min.js"
        await page.evaluate(source.read_text(encoding="utf-8"))
    found = await page.evaluate(
        """async (rules) => {
          const options = rules.length ? { runOnly: { type: "rule", values: rules } } : {};
          return (await axe.run(document, { resultTypes: ["violations"], iframes: false, ...options })).violations;
        }""",
        [*rules],
    )
    return [
        Violation(one["id"], one["help"], [f"{node['html']} {node['failureSummary']}" for node in one["nodes"]])
        for one in found
    ]


async def check_both_themes(page: Page, *, screenshot: str = "", besides: Collection[str] = ()) -> None:
    """Check that axe finds nothing in the present state of the page: in its theme, and then in the other one.

    A theme changes colors alone, so the other one is checked for these. `screenshot` is the name of a picture, with
    `{theme}` in it; `besides` are rules that do not apply.
    """
    is_dark = await page.evaluate("() => matchMedia('(prefers-color-scheme: dark)').matches")
    themes: list[Literal["light", "dark"]] = ["dark", "light"] if is_dark else ["light", "dark"]
    for theme, rules in zip(themes, ((), COLOR_RULES), strict=True):
        await page.emulate_media(color_scheme=theme)
        found = [one for one in await accessibility_violations(page, rules) if one.rule not in besides]
        assert found == [], theme
        if screenshot:
            await take_screenshot(page, screenshot.format(theme=theme))


async def take_screenshot(page: Page, name: str) -> None:
    """Write `docs/screenshots/<name>.png` if `WRITE_SCREENSHOTS` is 1 and the documentation shows it."""
    if os.environ.get("WRITE_SCREENSHOTS") == "1" and f"screenshots/{name}.png" in _documentation():
        await page.screenshot(path=ROOT / "docs" / "screenshots" / f"{name}.png", animations="disabled", caret="hide")
