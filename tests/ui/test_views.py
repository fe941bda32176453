"""The views beside the chat: agents, workflows, skills, the knowledge base; and feedback on an answer."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, Route, expect

from tests.ports import reserved_port
from tests.recovery.processes import Restartable
from tests.servers import START_SECONDS, CommandLine
from tests.ui.browser import LOOKS, VIEWPORTS, NewPage, Problems, check_both_themes
from tests.ui.chat import ask

DOCUMENT = """# Restart the gateway

Run `gatewayctl restart` on the host that is on call. <script>alert(1)</script>

| step | host |
|---|---|
| drain | gateway-1 |
"""
OVERFLOWS = "() => document.querySelector('main').scrollWidth > document.querySelector('main').clientWidth"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def supervisor_environ(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, str]]:
    """Jira is a remote agent, and PagerDuty is one that does not run."""
    environ = {"SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0"}
    agent = CommandLine(["agent", "jira", "--port", "0"], {"DATA_DIR": str(tmp_path_factory.mktemp("jira")), **environ})
    with reserved_port() as silent:
        async with agent:
            urls = {"JIRA_AGENT_URL": agent.url, "PAGERDUTY_AGENT_URL": f"http://127.0.0.1:{silent}"}
            yield {**environ, **urls, "DISTRIBUTED_AGENTS": "jira,pagerduty"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def runbook(supervisor: Restartable) -> None:
    """A document that is stored while the supervisor runs."""
    # The first document loads the embedding model.
    async with httpx.AsyncClient(timeout=START_SECONDS) as http:
        stored = await http.put(
            f"{supervisor.url}/rag/v1/datasources/runbooks/documents/restart.md",
            content=DOCUMENT,
            headers={"Content-Type": "text/markdown"},
        )
    stored.raise_for_status()


async def opened(page: Page, view: str) -> Page:
    await page.goto(f"#/{view}")
    await expect(page.locator(".entry").first).to_be_visible()
    return page


def card(page: Page, title: str) -> Locator:
    return page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=re.compile(f"^{title}")))


async def test_agents_are_shown_with_their_placement_and_problems(page: Page) -> None:
    await opened(page, "agents")
    argocd, jira, pagerduty = (card(page, title) for title in ("Argo CD", "Jira", "PagerDuty"))
    await expect(argocd.get_by_text("in-process", exact=True)).to_be_visible()
    await expect(argocd.get_by_text("sandbox", exact=True)).to_be_visible()
    await expect(jira.get_by_text("remote", exact=True)).to_be_visible()
    await expect(jira.get_by_text("reachable", exact=True)).to_be_visible()
    await expect(jira.get_by_text("DISTRIBUTED_AGENTS")).to_be_visible()
    await expect(pagerduty.get_by_text("not reachable", exact=True)).to_be_visible()
    await expect(pagerduty.locator(".problem")).not_to_be_empty()


async def test_the_settings_of_a_real_backend_can_be_copied(page: Page) -> None:
    await opened(page, "agents")
    argocd = card(page, "Argo CD")
    await argocd.get_by_text("The real backend needs").click()
    lines = argocd.get_by_role("group", name="Settings for Argo CD")
    await expect(lines).to_contain_text(re.compile(r"^ARGOCD_\w+=$", re.MULTILINE))
    await expect(lines.get_by_role("button", name="Copy")).to_be_visible()


async def test_tools_are_found_with_what_they_may_change(page: Page) -> None:
    await opened(page, "agents")
    await page.get_by_label("Filter agents and tools").fill("rollback_application")
    await expect(page.locator(".entry")).to_have_count(1)
    tool = page.get_by_role("listitem").filter(has=page.get_by_text("rollback_application", exact=True)).last
    await expect(tool.get_by_text("destructive", exact=True)).to_be_visible()
    await page.get_by_label("Filter agents and tools").fill("nothing has this name")
    await expect(page.get_by_text("No agent and no tool matches.")).to_be_visible()


async def test_the_offline_model_is_explained_with_the_settings_of_a_real_one(page: Page) -> None:
    await opened(page, "agents")
    model = page.get_by_role("region", name="Model")
    await model.get_by_text("Configure a model", exact=True).click()
    await model.get_by_label("Provider").select_option("ollama")
    lines = model.get_by_role("group", name="Settings for ollama")
    await expect(lines).to_contain_text("LLM_PROVIDER=ollama")
    await expect(model.get_by_text("make setup EXTRAS=ollama")).to_be_visible()


async def test_an_example_of_an_agent_asks_it(page: Page) -> None:
    await opened(page, "agents")
    example = card(page, "Argo CD").get_by_role("list", name="Questions for Argo CD").get_by_role("button").first
    question = await example.inner_text()
    await example.click()
    await expect(page.locator(".question-text")).to_have_text(question)
    await expect(page.get_by_label("Answer", exact=True)).to_be_visible()


async def test_a_workflow_is_started_with_its_form(page: Page) -> None:
    await opened(page, "workflows")
    workflow = card(page, "Create GitHub Repo")
    await workflow.get_by_text("Steps (1)").click()
    await expect(workflow.get_by_text("create_repository", exact=True)).to_be_visible()
    await workflow.get_by_text("Inputs (3)").click()
    await expect(workflow.get_by_text("Name of the new repository")).to_be_visible()
    await workflow.get_by_role("button", name="Start Create GitHub Repo").click()
    await expect(page.get_by_role("region", name="Create GitHub Repo")).to_be_visible()


async def test_a_skill_is_found_shown_and_used(page: Page) -> None:
    await opened(page, "skills")
    await page.get_by_label("Search skills").fill("incident")
    await page.get_by_role("button", name="Search", exact=True).click()
    await page.get_by_role("button", name="incident-triage").click()
    await expect(page.get_by_role("heading", name="incident-triage")).to_be_focused()
    await expect(page.get_by_text("built-in", exact=True)).to_be_visible()
    await expect(page.get_by_role("heading", name="Steps")).to_be_visible()
    await page.get_by_label("Subject").fill("payments-api")
    await page.get_by_role("button", name="Use this skill").click()
    await expect(page.locator(".question-text")).to_have_text("/incident-triage payments-api")
    await expect(page.get_by_label("Answer", exact=True)).to_be_visible()


@pytest.mark.usefixtures("runbook")
async def test_the_knowledge_base_is_searched_and_a_document_opened(page: Page) -> None:
    await opened(page, "knowledge")
    await expect(card(page, "runbooks").get_by_text("1 document in 1 chunk")).to_be_visible()
    await page.get_by_label("Search in").select_option("runbooks")
    await page.get_by_label("Search the documents").fill("how is the gateway restarted?")
    await page.keyboard.press("Enter")
    result = page.get_by_role("region", name="Search results").get_by_role("listitem")
    await expect(result).to_have_count(1)
    await expect(result.locator("mark").first).to_have_text(re.compile("restart", re.IGNORECASE))
    await result.get_by_role("button", name="Restart the gateway").click()
    await expect(page.get_by_role("cell", name="gateway-1")).to_be_visible()
    await expect(page.get_by_text("alert(1)")).to_be_visible()
    await page.get_by_role("button", name="Back to the search").click()
    await expect(result).to_have_count(1)


@pytest.mark.usefixtures("runbook")
async def test_a_search_that_finds_nothing_says_so(page: Page) -> None:
    await opened(page, "knowledge")
    await page.get_by_label("Search in").select_option("runbooks")
    await page.get_by_label("Search the documents").fill("zebra crossing legislation")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("No document matches.")).to_be_visible()


async def test_feedback_with_a_reason_is_stored_and_remembered(page: Page, supervisor: Restartable) -> None:
    await page.goto("")
    await page.get_by_label("Your message").fill("show argocd version")
    await page.keyboard.press("Enter")
    feedback = page.get_by_role("group", name="Feedback on this answer")
    await feedback.get_by_role("button", name="Bad answer").click()
    await feedback.get_by_label("Incomplete").check()
    await feedback.get_by_label("Comment").fill("No build date")
    await feedback.get_by_role("button", name="Send feedback").click()
    await expect(feedback.get_by_text("Feedback stored.")).to_be_visible()
    async with httpx.AsyncClient() as http:
        (stored,) = (await http.get(f"{supervisor.url}/feedback")).json()["feedback"]
    assert (stored["rating"], stored["reason"], stored["surface"]) == ("down", "Incomplete. No build date", "web")
    assert stored["trace_id"] != stored["task_id"]
    await page.reload()
    await expect(feedback.get_by_role("button", name="Bad answer")).to_have_attribute("aria-pressed", "true")
    await feedback.get_by_role("button", name="Good answer").click()
    await expect(feedback.get_by_role("button", name="Good answer")).to_have_attribute("aria-pressed", "true")
    async with httpx.AsyncClient() as http:
        (replaced,) = (await http.get(f"{supervisor.url}/feedback")).json()["feedback"]
    assert replaced["rating"] == "up"


async def test_a_view_says_when_its_data_cannot_be_loaded(page: Page, problems: Problems) -> None:
    problems.expect("503")

    async def fail(route: Route) -> None:
        await route.fulfill(status=503, json={"detail": "The store is locked."})

    await page.route("**/skills?**", fail)
    await page.goto("#/skills")
    await expect(page.get_by_role("alert")).to_contain_text("The store is locked.")
    await page.unroute("**/skills?**")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.locator(".entry").first).to_be_visible()


@pytest.mark.usefixtures("runbook")
@pytest.mark.slow
@pytest.mark.parametrize(("theme", "viewport"), LOOKS)
async def test_the_views_are_accessible_and_fit(new_page: NewPage, theme: str, viewport: str) -> None:
    page = await new_page(theme=theme, viewport=VIEWPORTS[viewport])
    await page.goto("")
    for view in ("agents", "workflows", "skills", "knowledge"):
        await opened(page, view)
        for summary in await page.locator(".view summary").all():
            await summary.click()
        await check_accessible(page)
    await page.get_by_label("Search the documents").fill("how is the gateway restarted?")
    await page.keyboard.press("Enter")
    results = page.get_by_role("region", name="Search results")
    await results.get_by_role("button", name="Restart the gateway").wait_for()
    await check_accessible(page)
    await results.get_by_role("button", name="Restart the gateway").click()
    await expect(page.get_by_role("cell", name="gateway-1")).to_be_visible()
    await check_accessible(page)
    await opened(page, "skills")
    await page.locator(".entry").get_by_role("button").first.click()
    await expect(page.get_by_role("button", name="Use this skill")).to_be_visible()
    await check_accessible(page)
    await page.goto("#/")
    await ask(page, "show argocd version")
    await page.get_by_role("button", name="Bad answer").click()
    await check_accessible(page)


async def check_accessible(page: Page) -> None:
    await check_both_themes(page)
    assert not await page.evaluate(OVERFLOWS)
