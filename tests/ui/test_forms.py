"""Forms and approvals in the page, with the real supervisor and the sandbox."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.ui.browser import LOOKS, VIEWPORTS, NewPage, Problems, check_both_themes, refusal
from tests.ui.chat import open_chat, run_details, send

TICKET = "create a Jira ticket for the slow checkout page"
TWO_CALLS = f"{TICKET} and create a GitHub repository called demo"
EVERY_FIELD = "run file everything"
REGIONS = ", ".join(f"region-{number}" for number in range(1, 31))
# The page leaves `code` to the supervisor: JavaScript reads its pattern otherwise.
WORKFLOW = f"""
name: file_everything
title: File Everything
description: Opens a ticket from a form with every type of field.
keywords: [everything]
inputs:
  - {{name: service_name, description: Name of the service, pattern: "[a-z]+", max_length: 10}}
  - {{name: code, pattern: "(?i)[a-z]{{2,3}}-\\\\d+"}}
  - {{name: details, type: multiline, required: false}}
  - {{name: severity, type: number, integer: true, minimum: 1, maximum: 5, default: 3}}
  - {{name: urgent, type: boolean}}
  - {{name: size, type: select, options: [small, large], default: small}}
  - {{name: region, type: select, options: [{REGIONS}]}}
  - {{name: teams, type: multiselect, options: [web, data, ops]}}
  - {{name: runbook, type: url, required: false}}
  - {{name: contact, type: email}}
  - {{name: api_token, required: false}}
steps:
  - name: ticket
    title: Open a ticket
    agent: jira
    tool: create_issue
    arguments:
      summary: "{{{{ inputs.service_name }}}} {{{{ inputs.code }}}} severity {{{{ inputs.severity }}}}"
      description: "{{{{ inputs.details }}}}"
"""


@pytest.fixture(scope="module")
def supervisor_environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    workflows = tmp_path_factory.mktemp("workflows")
    (workflows / "file_everything.yaml").write_text(WORKFLOW, encoding="utf-8")
    return {"REQUIRE_APPROVAL": "writes", "WORKFLOWS_DIR": str(workflows), "OFFLINE_MODEL_DELAY": "0"}


async def ask(page: Page, question: str) -> Locator:
    """Send a question, and wait for its form."""
    if page.url == "about:blank":
        await open_chat(page)
    form = (await send(page, question)).locator(".form-card")
    await form.first.wait_for()
    return form


async def fill_in(form: Locator, *, code: str = "ab-1") -> None:
    await form.get_by_label("Service name").fill("checkout")
    await form.get_by_label("Code").fill(code)
    await form.get_by_label("Details").fill("first line\nsecond line")
    await form.get_by_role("group", name="Urgent").get_by_label("Yes").check()
    await form.get_by_label("Size").select_option("large")
    await form.get_by_label("Filter the options of Region").fill("region-27")
    await form.get_by_label("Filter the options of Region").press("Enter")
    await form.get_by_role("group", name="Teams").get_by_label("ops").check()
    await form.get_by_label("Contact").fill("someone@example.com")


async def test_a_form_takes_good_values_only(page: Page) -> None:
    form = await ask(page, EVERY_FIELD)
    await expect(form.get_by_role("heading", name="File Everything")).to_be_in_viewport()
    await form.get_by_role("button", name="Submit").click()
    name = form.get_by_label("Service name")
    await expect(name).to_be_focused()
    await expect(name).to_have_accessible_description(re.compile("This field is required"))

    await fill_in(form, code="123")
    await name.fill("Checkout 2")
    await form.get_by_label("Severity").fill("2,5")
    await name.press("Enter")
    await expect(name).to_have_accessible_description(re.compile("“Checkout 2” does not"))
    severity = form.get_by_label("Severity")
    await expect(severity).to_have_accessible_description(re.compile("Write decimals with a point"))
    await expect(severity).to_have_attribute("aria-invalid", "true")

    # The supervisor rejects what the page could not check. Nothing that was typed is lost.
    await name.fill("checkout")
    await severity.fill("4")
    await form.get_by_role("button", name="Submit").click()
    code = form.get_by_label("Code")
    await expect(code).to_have_accessible_description(re.compile("“Code” takes text .* “123” does not"))
    await expect(code).to_be_focused()
    await expect(code).to_have_value("123")
    await expect(form.get_by_label("Details")).to_have_value("first line\nsecond line")
    await expect(form.get_by_role("group", name="Region").get_by_text("Chosen: region-27")).to_be_visible()
    await code.fill("AB-12")
    await form.get_by_role("button", name="Submit").click()

    await expect(page.get_by_text("Answered · File Everything")).to_be_visible()
    approval = page.get_by_role("region", name="Approve create_issue?")
    await expect(approval.get_by_text('"checkout AB-12 severity 4"')).to_be_visible()
    await expect(approval.get_by_text("first line\nsecond line")).to_be_visible()
    await approval.get_by_role("button", name="Approve", exact=True).click()
    await expect(page.get_by_role("region", name="Answer")).to_be_visible()
    await expect(page.locator(".form-card")).to_have_count(0)
    await page.get_by_text("Answered · File Everything").click()
    values = page.get_by_label("Decisions")
    await expect(values.get_by_text('"checkout"')).to_be_visible()
    await expect(values.get_by_text("region-27")).to_be_visible()


async def test_a_form_can_be_canceled_with_a_reason(page: Page) -> None:
    form = await ask(page, EVERY_FIELD)
    await form.get_by_role("button", name="Cancel the form…").click()
    reason = form.get_by_label("Why?")
    await expect(reason).to_be_focused()
    await reason.press("Escape")
    await expect(form.get_by_role("button", name="Cancel the form…")).to_be_focused()
    await page.keyboard.press("Enter")
    await reason.fill("not today")
    await form.get_by_role("button", name="Cancel the form", exact=True).click()
    await expect(page.get_by_text("Canceled: not today")).to_be_visible()
    await expect(page.get_by_role("region", name="Answer")).to_be_visible()


async def test_an_approval_with_changed_arguments(page: Page) -> None:
    form = await ask(page, TICKET)
    await expect(form.get_by_text("Jira wants to call create_issue")).to_be_visible()
    await expect(form.get_by_text('"Slow checkout page"')).to_be_visible()
    await form.get_by_role("button", name="Edit…").click()
    summary = form.get_by_label("summary", exact=True).and_(form.get_by_role("textbox"))
    await expect(summary).to_be_focused()
    await form.get_by_role("button", name="Approve with changes").click()
    await expect(form.get_by_text("Nothing was changed.")).to_be_visible()

    # Enter decides nothing.
    await summary.fill("Checkout takes 9 seconds")
    await summary.press("Enter")
    await expect(form.get_by_text('Before: "Slow checkout page"')).to_be_visible()
    await expect(form.get_by_role("button", name="Approve", exact=True)).to_be_disabled()
    await form.get_by_role("button", name="Approve with changes").click()

    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Checkout takes 9 seconds")
    decision = page.get_by_label("Decisions")
    await expect(decision).to_contain_text("Edited and approved")
    await decision.get_by_text("Edited and approved").click()
    await expect(decision.get_by_role("listitem")).to_have_text(
        'summary: "Slow checkout page" to "Checkout takes 9 seconds"'
    )
    await page.reload()
    await expect(decision).to_contain_text("Edited and approved · Approve create_issue?")


async def test_a_rejection_with_a_reason(page: Page) -> None:
    form = await ask(page, TICKET)
    await form.get_by_role("button", name="Reject…").click()
    reason = form.get_by_label("Why? The agent gets the reason.")
    await reason.fill("there is one <b>already</b>")
    await reason.press("Enter")
    await expect(form.get_by_role("button", name="Reject", exact=True)).to_be_enabled()
    await form.get_by_role("button", name="Reject", exact=True).click()
    await expect(page.get_by_label("Decisions")).to_contain_text("Rejected: there is one <b>already</b>")
    await expect(page.get_by_role("region", name="Answer")).to_be_visible()
    details = await run_details(page.get_by_role("article"))
    await expect(details.get_by_text("rejected by a person: there is one <b>already</b>").first).to_be_attached()


async def test_arguments_are_shown_in_full_and_as_text(page: Page) -> None:
    hostile = "<script>alert(1)</script> <img src=x onerror=alert(1)>\nprod\u202etxt.exe\u200b end\n"
    lines = "".join(f"line {number}\n" for number in range(100))
    form = await ask(page, EVERY_FIELD)
    await fill_in(form)
    await form.get_by_label("Details").fill(hostile + lines + "last line")
    await form.get_by_role("button", name="Submit").click()
    approval = page.get_by_role("region", name="Approve create_issue?")
    value = approval.get_by_role("region", name="description")
    await expect(value).to_contain_text("<script>alert(1)</script> <img src=x onerror=alert(1)>")
    await expect(value).to_contain_text(r"prod\u{202e}txt.exe\u{200b} end")
    await expect(value).to_contain_text("last line")
    await expect(value.locator("script, img")).to_have_count(0)
    overflows = "value => value.scrollHeight > value.clientHeight"
    assert await value.evaluate(overflows)
    await approval.get_by_role("button", name="Show all").press("Enter")
    await expect(approval.get_by_role("button", name="Show less")).to_be_focused()
    assert not await value.evaluate(overflows)

    # An input cannot show all characters of the text, so it stays as it is unless it is replaced.
    await approval.get_by_role("button", name="Edit…").click()
    await expect(approval.get_by_role("textbox", name="description")).to_have_value("")
    await approval.get_by_role("textbox", name="summary").fill("Other")
    await approval.get_by_role("button", name="Approve with changes").click()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Other")


async def test_an_approval_for_the_conversation(page: Page) -> None:
    form = await ask(page, TICKET)
    await form.get_by_role("button", name="Approve for this conversation…").click()
    await expect(form.get_by_text('Jira may call create_issue with summary = "Slow checkout page"')).to_be_visible()
    await form.get_by_role("button", name="Approve for this conversation", exact=True).press("Enter")
    await expect(page.locator("#main")).to_be_focused()
    await expect(page.get_by_label("Decisions")).to_contain_text("Approved for this conversation")
    answers = page.get_by_role("region", name="Answer")
    await expect(answers).to_have_count(1)
    await send(page, TICKET)
    await expect(answers).to_have_count(2)
    await expect(page.get_by_label("Decisions")).to_have_count(1)


async def test_two_forms_are_answered_one_by_one(page: Page) -> None:
    forms = await ask(page, TWO_CALLS)
    await expect(forms).to_have_count(2)
    issue = page.get_by_role("region", name="Approve create_issue?")
    repository = page.get_by_role("region", name="Approve create_repository?")
    await issue.get_by_role("button", name="Reject…").click()
    await issue.get_by_label("Why?").fill("half a rea")
    await repository.get_by_role("button", name="Approve", exact=True).click()
    await expect(repository).to_have_count(0)
    # The other form stays as it is, with the text.
    await expect(issue.get_by_label("Why?")).to_have_value("half a rea")
    await issue.get_by_label("Why?").fill("half a reason")
    await issue.get_by_role("button", name="Reject", exact=True).click()
    await expect(page.locator(".form-card")).to_have_count(0)
    decisions = page.get_by_label("Decisions")
    await expect(decisions).to_contain_text("Approved · Approve create_repository?")
    await expect(decisions).to_contain_text("Rejected: half a reason · Approve create_issue?")
    await expect(page.get_by_role("region", name="Answer")).to_be_visible()


async def test_a_reload_brings_back_what_was_typed(page: Page) -> None:
    form = await ask(page, EVERY_FIELD)
    await fill_in(form)
    await form.get_by_label("Api token").fill("s3cret-value")
    await page.reload()
    await expect(form.get_by_label("Service name")).to_have_value("checkout")
    await expect(form.get_by_label("Details")).to_have_value("first line\nsecond line")
    await expect(form.get_by_role("group", name="Urgent").get_by_label("Yes")).to_be_checked()
    await expect(form.get_by_label("Size")).to_have_value("large")
    await expect(form.get_by_text("Chosen: region-27")).to_be_visible()
    await expect(form.get_by_role("group", name="Teams").get_by_label("ops")).to_be_checked()
    await expect(form.get_by_label("Api token")).to_have_value("")
    assert "s3cret" not in await page.evaluate("() => JSON.stringify(localStorage)")

    await form.get_by_role("button", name="Submit").click()
    await expect(page.get_by_role("region", name="Approve create_issue?")).to_be_visible()
    assert "checkout" not in await page.evaluate("() => JSON.stringify(localStorage)")


async def test_a_reload_brings_back_an_edited_call(page: Page) -> None:
    form = await ask(page, TICKET)
    await form.get_by_role("button", name="Edit…").click()
    await form.get_by_role("textbox", name="summary").fill("Half a summ")
    await page.reload()
    await expect(form.get_by_role("textbox", name="summary")).to_have_value("Half a summ")


async def test_an_answer_that_was_refused_can_be_sent_again(page: Page, problems: Problems) -> None:
    problems.expect("413")
    messages = await refusal(page, "POST", "**/*", 413, {"message": "The message is too long."})
    form = await ask(page, TICKET)
    await form.get_by_role("button", name="Reject…").click()
    await form.get_by_label("Why?").fill("because")
    messages.active = True
    reject = form.get_by_role("button", name="Reject", exact=True)
    await reject.click()
    await expect(form.get_by_role("alert")).to_be_visible()
    await expect(form.get_by_label("Why?")).to_have_value("because")
    messages.active = False
    await reject.click()
    await expect(page.get_by_label("Decisions")).to_contain_text("Rejected: because")


async def test_a_form_that_was_answered_elsewhere_goes_away(new_page: NewPage) -> None:
    first, second = await new_page(), await new_page()
    form = await ask(first, TICKET)
    await second.goto(first.url)
    await second.locator(".form-card").get_by_role("button", name="Approve", exact=True).click()
    await expect(second.get_by_role("region", name="Answer")).to_be_visible()
    await first.bring_to_front()
    await expect(form).to_have_count(0)
    await expect(first.get_by_label("Decisions")).to_contain_text("Approved")


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "width"), LOOKS)
async def test_forms_are_accessible(new_page: NewPage, theme: str, width: str) -> None:
    page = await new_page(theme=theme, viewport=VIEWPORTS[width])
    form = await ask(page, EVERY_FIELD)
    await expect(form.get_by_role("heading", name="File Everything")).to_be_in_viewport()
    await form.get_by_role("button", name="Submit").click()
    await expect(form.get_by_label("Service name")).to_be_focused()
    await check_both_themes(page, screenshot=f"form-{{theme}}-{width}")

    await page.goto("#/")
    approval = await ask(page, TICKET)
    await approval.get_by_role("button", name="Edit…").click()
    await approval.get_by_role("textbox", name="summary").fill("Other")
    await check_both_themes(page, screenshot=f"approval-{{theme}}-{width}")
    await approval.get_by_role("button", name="Approve with changes").click()
    await expect(page.get_by_label("Decisions")).to_be_visible()
    await page.get_by_text("Edited and approved").click()
    await expect(page.get_by_role("region", name="Answer")).to_be_visible()
    await check_both_themes(page)
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
