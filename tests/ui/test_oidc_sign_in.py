"""The sign-in of the page with OpenID Connect: a real browser, and a strict provider on another site."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Page, expect

from tests.oidc_provider import PAGE, TestProvider, providing
from tests.recovery.processes import Restartable
from tests.ui.browser import Problems, accessibility_violations


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def provider() -> AsyncIterator[TestProvider]:
    async with providing(host="localhost") as provider:
        yield provider


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def supervisor_environ(provider: TestProvider) -> dict[str, str]:
    return {
        "A2A_OAUTH_ISSUER": provider.url,
        "OIDC_CLIENT_ID": PAGE,
        "A2A_AUTH_SHARED_KEY": "correct-horse-battery",
        "OFFLINE_MODEL_DELAY": "0",
        "ENABLE_RAG": "false",
    }


async def test_a_person_signs_in_at_the_provider_asks_and_signs_out(
    page: Page, supervisor: Restartable, provider: TestProvider
) -> None:
    provider.clients[PAGE].redirect_uris.add(f"{supervisor.url}/session/callback")
    provider.clients[PAGE].post_logout_uris.add(f"{supervisor.url}/")
    await page.goto("#/agents")
    await expect(page.get_by_role("link", name="Sign in")).to_be_visible()
    assert await accessibility_violations(page) == []

    await page.get_by_role("link", name="Sign in").click()
    await page.get_by_role("button", name="Decline").click()
    await expect(page.get_by_role("alert").first).to_have_text("The sign-in was declined. You can try again.")
    await expect(page).to_have_url(f"{supervisor.url}/#/agents")

    await page.get_by_role("link", name="Sign in").click()
    await page.get_by_role("button", name="Sign in as Ada").click()
    await expect(page.get_by_text("Signed in as Ada Lovelace")).to_be_visible()
    await expect(page).to_have_url(f"{supervisor.url}/#/agents")
    (cookie,) = await page.context.cookies(supervisor.url)
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert await page.evaluate("() => document.cookie") == ""
    await page.goto("#/")
    await page.get_by_role("textbox", name="Your message").fill("Which Argo CD version is running?")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Try again").last).to_be_visible()

    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("link", name="Sign in")).to_be_visible()
    assert await page.context.cookies(supervisor.url) == []
    assert provider.logouts[-1]["post_logout_redirect_uri"] == f"{supervisor.url}/"


async def test_the_key_is_offered_as_well(page: Page, problems: Problems) -> None:
    problems.expect("status of 401")
    await page.goto("")
    await page.get_by_text("Sign in with a key instead").click()
    await page.get_by_label("Key of the supervisor").fill("wrong")
    await page.get_by_role("button", name="Sign in with the key").click()
    await expect(page.get_by_text("The key is not correct.")).to_be_visible()
    await page.get_by_label("Key of the supervisor").fill("correct-horse-battery")
    await page.get_by_role("button", name="Sign in with the key").click()
    await expect(page.get_by_role("textbox", name="Your message")).to_be_visible()
