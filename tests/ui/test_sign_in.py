"""The sign-in of the page, at a supervisor with a key."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import Page, expect

from tests.recovery.processes import Restartable
from tests.ui.browser import LOOKS, VIEWPORTS, NewPage, Problems, accessibility_violations, check_both_themes

KEY = "correct-horse-battery"
STORED = "() => JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }])"


@pytest.fixture(scope="module")
def supervisor_environ() -> dict[str, str]:
    return {"A2A_AUTH_SHARED_KEY": KEY, "OFFLINE_MODEL_DELAY": "0", "ENABLE_RAG": "false"}


async def sign_in(page: Page, key: str = KEY) -> None:
    await page.get_by_label("Key of the supervisor").fill(key)
    await page.get_by_role("button", name="Sign in").click()


async def ask(page: Page) -> None:
    await page.get_by_role("textbox", name="Your message").fill("Which Argo CD version is running?")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Try again").last).to_be_visible()


async def test_a_person_signs_in_asks_and_signs_out(page: Page, problems: Problems) -> None:
    problems.expect("status of 401")
    await page.goto("")
    field = page.get_by_label("Key of the supervisor")
    await expect(field).to_be_focused()
    assert await field.get_attribute("type") == "password"
    assert await field.get_attribute("autocomplete") == "current-password"

    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_have_text("Enter the key.")
    await sign_in(page, "wrong")
    await expect(page.get_by_role("alert")).to_have_text("The key is not correct.")
    await expect(field).to_be_focused()
    await expect(field).to_have_attribute("aria-invalid", "true")

    await sign_in(page, f" {KEY} ")
    await ask(page)
    assert KEY not in await page.content()
    stored = await page.evaluate(STORED)
    assert KEY not in stored
    assert json.loads(stored)[0] == ""
    (cookie,) = await page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")

    await page.reload()
    await expect(page.get_by_role("textbox", name="Your message")).to_be_visible()
    await page.get_by_role("button", name="Sign out").click()
    await expect(field).to_be_visible()
    assert await page.context.cookies() == []


async def test_a_sign_in_in_another_tab_does_not_disturb_this_one(page: Page, problems: Problems) -> None:
    problems.expect("status of 403")
    await page.goto("")
    await sign_in(page)
    await expect(page.get_by_role("textbox", name="Your message")).to_be_visible()
    # The cookies of the context, with a new session and therefore another token.
    again = await page.context.request.post("session", data={"key": KEY})
    assert again.ok
    async with page.expect_response(lambda response: response.status == 403):
        await ask(page)


async def test_a_restarted_supervisor_accepts_the_session(
    page: Page, problems: Problems, supervisor: Restartable
) -> None:
    problems.expect_lost_connections()
    await page.goto("")
    await sign_in(page)
    await expect(page.get_by_role("textbox", name="Your message")).to_be_visible()
    await supervisor.terminate()
    await supervisor.start()
    await page.reload()
    await ask(page)


async def test_an_ended_session_brings_the_sign_in_back(page: Page, problems: Problems) -> None:
    problems.expect("status of 401")
    await page.goto("")
    await sign_in(page)
    await expect(page.get_by_role("textbox", name="Your message")).to_be_visible()
    await page.context.clear_cookies()
    await page.get_by_role("textbox", name="Your message").fill("Hello")
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Key of the supervisor")).to_be_focused()


async def test_with_an_issuer_alone_the_page_names_the_terminal(page: Page, supervisor: Restartable) -> None:
    session = {"required": True, "signed_in": False, "subject": None, "name": None, "csrf_token": None, "methods": []}
    await page.route("**/session", lambda route: route.fulfill(json=session | {"groups": [], "terminal": None}))
    await page.goto("")
    await expect(page.get_by_text(f"platform-engineer chat --url {supervisor.url}/")).to_be_visible()
    await expect(page.get_by_role("textbox")).to_have_count(0)
    assert await accessibility_violations(page) == []


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "width"), LOOKS)
async def test_the_sign_in_is_accessible(new_page: NewPage, problems: Problems, theme: str, width: str) -> None:
    page = await new_page(theme=theme, viewport=VIEWPORTS[width])
    await page.goto("")
    await expect(page.get_by_label("Key of the supervisor")).to_be_visible()
    await check_both_themes(page)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await check_both_themes(page)
    assert not await page.evaluate("() => document.documentElement.scrollWidth > innerWidth")
