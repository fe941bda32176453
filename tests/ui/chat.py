"""What a person does in the chat."""

from __future__ import annotations

from playwright.async_api import Locator, Page, expect


async def open_chat(page: Page) -> None:
    await page.goto("")
    await expect(page.get_by_label("Your message")).to_be_visible()


async def send(page: Page, question: str) -> Locator:
    """Sends a message; the turn that begins with it."""
    turns = page.get_by_role("article")
    count = await turns.count()
    await page.get_by_label("Your message").fill(question)
    await page.get_by_label("Your message").press("Enter")
    await expect(turns).to_have_count(count + 1)
    return turns.nth(count)


async def ask(page: Page, question: str) -> Locator:
    """Sends a message and waits for the answer."""
    turn = await send(page, question)
    await expect(turn).to_have_attribute("aria-busy", "false")
    await expect(turn.get_by_role("region", name="Answer")).to_be_visible()
    return turn
