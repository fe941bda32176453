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


def answer_in(place: Page | Locator) -> Locator:
    return place.get_by_role("region", name="Answer")


async def run_details(turn: Locator) -> Locator:
    """Opens the details of a run, which fold away when the answer is complete."""
    await expect(turn.locator("details.run:not([open])")).to_be_visible()
    details = turn.locator("details.run")
    await details.locator("summary").first.click()
    await expect(details.locator(".run-body")).to_be_visible()
    return details


async def overflows(page: Page) -> bool:
    """Whether the page scrolls sideways."""
    wider: bool = await page.evaluate("() => document.documentElement.scrollWidth > innerWidth")
    return wider
