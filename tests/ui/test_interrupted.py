"""Runs that are interrupted in the middle of the answer: the model waits there until the test has interrupted them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from tests.recovery.model_server import ModelServer, model_server
from tests.recovery.processes import Restartable
from tests.ui.browser import LOOKS, VIEWPORTS, NewPage, Problems, accessibility_violations, check_both_themes
from tests.ui.chat import answer_in, open_chat, overflows, send
from tests.ui.scenario import ANSWER, ENVIRON, FIRST_HALF, hold, play

QUESTION = "How many issues are there?"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def model() -> AsyncIterator[ModelServer]:
    async with model_server(play) as model:
        yield model


@pytest.fixture(scope="module")
def supervisor_environ(model: ModelServer) -> dict[str, str]:
    return {**ENVIRON, **model.environ()}


@pytest.fixture
def released(model: ModelServer) -> Iterator[asyncio.Event]:
    """Answers stop in their middle until this is set."""
    released = hold(model.holds)
    yield released
    released.set()


@pytest_asyncio.fixture(loop_scope="session")
async def turn(page: Page, released: asyncio.Event) -> Locator:
    """A run whose answer is half written."""
    await open_chat(page)
    turn = await send(page, QUESTION)
    await expect(answer_in(turn)).to_have_text(FIRST_HALF)
    return turn


async def expect_whole_answer(page: Page) -> None:
    """Each word once, in order."""
    turn = page.get_by_role("article")
    await expect(turn).to_have_count(1)
    await expect(turn).to_have_attribute("aria-busy", "false")
    await expect(answer_in(page)).to_have_text(ANSWER)


async def test_a_run_is_stopped(page: Page, turn: Locator) -> None:
    await page.get_by_role("button", name="Stop").click()
    await expect(turn.get_by_text("The run was stopped.")).to_be_visible()
    await expect(turn).to_have_attribute("aria-busy", "false")
    await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    await page.reload()
    await expect(page.get_by_text("The run was stopped.")).to_be_visible()


async def test_a_reload_continues_the_run(page: Page, turn: Locator, released: asyncio.Event) -> None:
    await page.reload()
    await expect(answer_in(page)).to_have_text(FIRST_HALF)
    await expect(page.get_by_role("article")).to_have_attribute("aria-busy", "true")
    released.set()
    await expect_whole_answer(page)
    await page.reload()
    await expect_whole_answer(page)


async def test_a_second_tab_shows_the_same_run(page: Page, turn: Locator, released: asyncio.Event) -> None:
    second = await page.context.new_page()
    await second.goto(page.url)
    await expect(answer_in(second)).to_have_text(FIRST_HALF)
    released.set()
    await expect_whole_answer(page)
    await expect_whole_answer(second)


async def test_a_second_tab_stops_the_run(page: Page, turn: Locator) -> None:
    second = await page.context.new_page()
    await second.goto(page.url)
    await expect(answer_in(second)).to_have_text(FIRST_HALF)
    await second.get_by_role("button", name="Stop").click()
    await expect(second.get_by_text("The run was stopped.")).to_be_visible()
    await expect(turn.get_by_text("The run was stopped.")).to_be_visible()


async def test_a_run_continues_after_the_network_is_back(
    page: Page, turn: Locator, released: asyncio.Event, problems: Problems
) -> None:
    problems.expect_lost_connections()
    await page.context.set_offline(True)
    released.set()
    await expect(page.get_by_text("There is no connection to the supervisor.")).to_be_visible()
    await page.context.set_offline(False)
    await expect_whole_answer(page)
    await expect(page.get_by_text("There is no connection to the supervisor.")).to_have_count(0)


async def test_a_run_continues_after_the_supervisor_was_killed(
    page: Page, turn: Locator, released: asyncio.Event, problems: Problems, supervisor: Restartable
) -> None:
    problems.expect_lost_connections()
    await supervisor.kill()
    await expect(turn.get_by_text("The connection was lost.")).to_be_visible()
    released.set()
    await supervisor.start()
    await expect_whole_answer(page)
    await expect(turn.get_by_text("The connection was lost.")).to_have_count(0)
    await page.reload()
    await expect_whole_answer(page)


async def test_a_message_waits_for_the_run_before_it(page: Page, turn: Locator, released: asyncio.Event) -> None:
    second = await send(page, "And now?")
    await expect(second.get_by_text("Waiting for the previous message of this conversation.")).to_be_visible()
    await expect(second).to_have_attribute("aria-busy", "true")
    released.set()
    await expect(answer_in(second)).to_have_text(ANSWER)
    await expect(answer_in(turn)).to_have_text(ANSWER)


async def test_the_end_of_a_run_that_is_not_in_view_is_reported(
    page: Page, turn: Locator, released: asyncio.Event
) -> None:
    await page.get_by_role("link", name="Agents").click()
    await expect(page.get_by_role("heading", name="Agents")).to_be_visible()
    released.set()
    notice = page.get_by_role("region", name="Notifications")
    await expect(notice).to_contain_text("An answer is ready")
    await expect(notice).to_contain_text(QUESTION)
    await notice.get_by_role("button", name="Open").click()
    await expect_whole_answer(page)
    await expect(notice).not_to_contain_text("An answer is ready")


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "viewport"), LOOKS)
async def test_a_run_that_works_is_accessible_and_fits(
    new_page: NewPage, released: asyncio.Event, theme: str, viewport: str
) -> None:
    page = await new_page(theme=theme, viewport=VIEWPORTS[viewport])
    await open_chat(page)
    await expect(answer_in(await send(page, QUESTION))).to_have_text(FIRST_HALF)
    await expect(page.get_by_role("region", name="Plan")).to_be_visible()
    await check_both_themes(page, screenshot=f"working-{viewport}-{{theme}}")
    assert not await overflows(page)
    await page.get_by_role("button", name="Stop").click()
    await expect(page.get_by_text("The run was stopped.")).to_be_visible()
    await check_both_themes(page)


async def test_a_lost_connection_is_shown_accessibly(page: Page, turn: Locator, problems: Problems) -> None:
    problems.expect_lost_connections()
    await page.context.set_offline(True)
    await expect(page.get_by_text("There is no connection to the supervisor.")).to_be_visible()
    assert await accessibility_violations(page) == []
