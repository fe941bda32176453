"""A real supervisor and a real Chromium.

All async tests and fixtures that use the browser share the event loop of the session: an async fixture of such a test
needs `@pytest_asyncio.fixture(loop_scope="session")`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page
from starlette.applications import Starlette

from ai_platform_engineering.ui.page import Page as BuiltPage
from tests.made_once import made_once
from tests.ports import reserved_port
from tests.recovery.processes import Restartable
from tests.servers import serving
from tests.ui.browser import Contexts, NewPage, Problems, Profile, build_parts, running_browser


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if not item.path.is_relative_to(here):  # pytest passes the tests of all folders
            continue
        if pytest_asyncio.is_async_test(item) and {"browser", "supervisor"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="module")
def supervisor_environ() -> dict[str, str]:
    """Settings of the module's supervisor, beside its data directory. A module that needs others overrides this."""
    return {"OFFLINE_MODEL_DELAY": "0.005"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def supervisor(
    tmp_path_factory: pytest.TempPathFactory, supervisor_environ: dict[str, str]
) -> AsyncIterator[Restartable]:
    """The supervisor with the sandbox. It can be killed, and started again with the same port and data."""
    environ = {"DATA_DIR": str(tmp_path_factory.mktemp("data")), **supervisor_environ}
    with reserved_port() as port:
        async with Restartable(["serve"], port, environ) as process:
            yield process


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with running_browser() as browser:
        yield browser


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def profile(browser: Browser, supervisor: Restartable) -> AsyncIterator[Profile | None]:
    """The profile of the first page of each test. A module whose pages may have no cached files overrides this."""
    profile = Profile(browser, supervisor.url)
    try:
        yield profile
    finally:
        await profile.close()


@pytest_asyncio.fixture(loop_scope="session")
async def contexts(browser: Browser, supervisor: Restartable, profile: Profile | None) -> AsyncIterator[Contexts]:
    """Fails the test if one of its pages reports an error, violates the policy or calls another host."""
    contexts = Contexts(browser, supervisor.url, profile)
    try:
        yield contexts
    finally:
        await contexts.close()
    contexts.problems.check()


@pytest.fixture
def new_page(contexts: Contexts) -> NewPage:
    """`await new_page(theme="dark", viewport=NARROW)`: a page in a profile of its own."""
    return contexts.new_page


@pytest_asyncio.fixture(loop_scope="session")
async def page(contexts: Contexts) -> Page:
    """A blank page with the light theme, 1,400 pixels wide."""
    return await contexts.new_page()


@pytest.fixture
def problems(contexts: Contexts) -> Problems:
    return contexts.problems


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def profile_of_parts(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Profile]:
    """For a page with single parts of the page, served with the headers of the page."""
    built = await asyncio.to_thread(made_once, tmp_path_factory, "parts", build_parts)
    async with serving(lambda _settings: Starlette(routes=[*BuiltPage(built).routes()]), {}) as url:
        profile = Profile(browser, url)
        try:
            yield profile
        finally:
            await profile.close()


@pytest_asyncio.fixture(loop_scope="session")
async def parts(browser: Browser, profile_of_parts: Profile) -> AsyncIterator[Contexts]:
    """Pages with `window.parts`, which renders texts and runs. Checks what `contexts` checks."""
    contexts = Contexts(browser, profile_of_parts.url, profile_of_parts)
    try:
        yield contexts
    finally:
        await contexts.close()
    contexts.problems.check()
