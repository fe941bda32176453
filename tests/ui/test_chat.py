"""Asking in the page: the plan, the agents, the tools and the answer. Jira is a remote agent, the others are not."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from tests.servers import CommandLine
from tests.ui.browser import LOOKS, VIEWPORTS, NewPage, check_both_themes
from tests.ui.chat import answer_in, ask, open_chat, overflows, run_details

COMPARISON = "compare Jira and GitHub issues"
# Whether the turns ever showed the delegating tool, and how many agents they ever showed at work at once.
WATCH = """
addEventListener("DOMContentLoaded", () => {
  window.seen = { task: false, parallel: 0 };
  new MutationObserver(() => {
    for (const turn of document.querySelectorAll("article")) {
      seen.task ||= /\\btask\\b/i.test(turn.textContent);
      seen.parallel = Math.max(seen.parallel, turn.querySelectorAll(".step.in_progress").length);
    }
  }).observe(document, { childList: true, subtree: true, characterData: true, attributes: true });
});
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def supervisor_environ(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, str]]:
    environ = {"SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0.001"}
    data_dir = str(tmp_path_factory.mktemp("jira"))
    async with CommandLine(["agent", "jira", "--port", "0"], {"DATA_DIR": data_dir, **environ}) as agent:
        yield {**environ, "DISTRIBUTED_AGENTS": "jira", "JIRA_AGENT_URL": agent.url}


def step(turn: Locator, title: str) -> Locator:
    return turn.get_by_role("region", name="Plan").get_by_role("listitem").filter(has_text=title).first


@pytest.mark.parametrize(
    ("question", "agent", "tool"),
    [("show GitHub issues", "GitHub", "list_issues"), ("show Jira issues", "Jira", "search_issues")],
    ids=["in-process", "remote"],
)
async def test_a_run_shows_its_agent_and_tool(page: Page, question: str, agent: str, tool: str) -> None:
    await page.add_init_script(WATCH)
    await open_chat(page)
    turn = await ask(page, question)
    await expect(answer_in(turn)).to_contain_text("issues")
    details = await run_details(turn)
    await expect(details.get_by_text(agent, exact=True).first).to_be_visible()
    await expect(details.get_by_text(tool, exact=True).first).to_be_visible()
    assert not await page.evaluate("() => seen.task")


async def test_parallel_agents_are_shown_at_work_at_once(page: Page) -> None:
    await page.add_init_script(WATCH)
    await open_chat(page)
    turn = await ask(page, COMPARISON)
    details = await run_details(turn)
    for agent, title, tool in (
        ("Jira", "Show Jira issues", "search_issues"),
        ("GitHub", "Show GitHub issues", "list_issues"),
    ):
        line = step(turn, title)
        await expect(line).to_contain_text(agent)
        await expect(line).to_contain_text("(done)")
        await expect(line.get_by_text(tool)).to_be_visible()
    await expect(step(turn, "Compare the results")).to_contain_text("(done)")
    picture = details.get_by_role("img", name=re.compile("Timeline of"))
    await expect(picture).to_have_accessible_name(re.compile("Jira and GitHub work"))
    assert await page.evaluate("() => seen") == {"task": False, "parallel": 2}


async def test_a_suggested_question_is_asked_with_one_click(page: Page) -> None:
    await open_chat(page)
    suggestion = page.get_by_role("list", name="Suggested questions").get_by_role("button").first
    await suggestion.click()
    await expect(answer_in(page)).to_be_visible()


async def test_the_keyboard_is_enough(page: Page) -> None:
    await open_chat(page)
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the conversation")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("main")).to_be_focused()
    field = page.get_by_label("Your message")
    while not await field.evaluate("(element) => element === document.activeElement"):
        await page.keyboard.press("Tab")
    await page.keyboard.type("show argocd version")
    await page.keyboard.press("Enter")
    await expect(answer_in(page)).to_contain_text(re.compile("version", re.IGNORECASE))
    await expect(field).to_be_focused()


async def test_a_conversation_has_many_turns(page: Page) -> None:
    await open_chat(page)
    await ask(page, "show GitHub issues")
    second = await ask(page, "show argocd version")
    await expect(answer_in(second)).to_contain_text(re.compile("version", re.IGNORECASE))


async def test_a_question_is_repeated_or_edited(page: Page) -> None:
    await open_chat(page)
    first = await ask(page, "show GitHub issues")
    await first.get_by_role("button", name="Try again").click()
    turns = page.get_by_role("article")
    await expect(turns).to_have_count(2)
    # While the page scrolls to a growing answer, a click can end beside its button.
    await expect(turns.nth(1)).to_have_attribute("aria-busy", "false")
    await expect(answer_in(turns.nth(1))).to_be_visible()
    await expect(turns.nth(1).locator("details.run:not([open])")).to_be_visible()
    await first.get_by_role("button", name="Edit and send again").click()
    field = page.get_by_label("Your message")
    await expect(field).to_have_value("show GitHub issues")
    await expect(field).to_be_focused()


async def test_a_conversation_is_renamed_found_linked_and_deleted(page: Page, new_page: NewPage) -> None:
    await open_chat(page)
    await ask(page, "show argocd version")
    link = page.url
    # Sharing needs a sign-in, which this supervisor does not require.
    await expect(page.get_by_role("button", name="Share")).to_have_count(0)
    row = page.get_by_role("navigation").get_by_role("link", name="show argocd version").first
    await expect(row).to_be_visible()
    await row.hover()
    await page.get_by_role("button", name="Rename").first.click()
    await page.get_by_label("Name of the conversation").fill("Release check")
    await page.keyboard.press("Enter")
    renamed = page.get_by_role("link", name="Release check")
    await expect(renamed).to_have_count(1)
    await page.get_by_label("Search conversations").fill("release ch")
    await expect(renamed).to_have_count(1)
    other = await new_page()
    await other.goto(link)
    await expect(answer_in(other)).to_be_visible()
    await renamed.hover()
    page.on("dialog", lambda dialog: dialog.accept())
    await page.get_by_role("button", name="Delete").first.click()
    await expect(renamed).to_have_count(0)


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "viewport"), LOOKS)
async def test_the_chat_is_accessible_and_fits(new_page: NewPage, theme: str, viewport: str) -> None:
    page = await new_page(theme=theme, viewport=VIEWPORTS[viewport])
    await open_chat(page)
    await expect(page.get_by_role("list", name="Suggested questions").get_by_role("button").first).to_be_visible()
    await check_both_themes(page, screenshot=f"welcome-{viewport}-{{theme}}")
    turn = await ask(page, COMPARISON)
    await check_both_themes(page)
    await run_details(turn)
    await turn.locator(".question").scroll_into_view_if_needed()
    await check_both_themes(page, screenshot=f"answer-{viewport}-{{theme}}")
    assert not await overflows(page)
    if viewport == "narrow":
        await page.get_by_role("button", name="Open the menu").click()
        await expect(page.get_by_label("Search conversations")).to_be_visible()
        await check_both_themes(page)
