"""The owner of a conversation shares it with groups in the page; members see it, strangers do not."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, Page, expect

from tests.ui.browser import LOOKS, VIEWPORTS, NewPage, Problems, check_both_themes, refusal
from tests.ui.chat import answer_in, ask, overflows

PEOPLE = ("ann", "bob", "eve", "ops")
POLICY = 'version: 1\ngroups: {sre: ["key:ann", "key:bob"], platform: ["key:ann"], hr: ["key:eve"]}\n'
MANY = 21


def key_of(person: str) -> str:
    return f"{person}-0123456789abcdef"


@pytest.fixture(scope="module")
def supervisor_environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    policy = tmp_path_factory.mktemp("policy") / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    roles = {"ops": "admin"}
    keys = ", ".join(f"{person}:{roles.get(person, 'user')}:{key_of(person)}" for person in PEOPLE)
    return {"A2A_AUTH_KEYS": keys, "POLICY_FILE": str(policy), "OFFLINE_MODEL_DELAY": "0", "ENABLE_RAG": "false"}


async def signed_in(page: Page, person: str, place: str = "") -> Page:
    await page.goto(place)
    await page.get_by_label("Key of the supervisor").fill(key_of(person))
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_label("Your message")).to_be_visible()
    return page


def share_button(page: Page) -> Locator:
    return page.get_by_role("button", name="Share", exact=True)


async def open_dialog(page: Page) -> Locator:
    await share_button(page).click()
    dialog = page.get_by_role("dialog", name="Share this conversation")
    await expect(dialog).to_be_visible()
    return dialog


def listed(page: Page) -> Locator:
    return page.get_by_role("navigation").get_by_role("link", name="show argocd version")


async def test_members_see_a_shared_conversation_and_strangers_do_not(
    page: Page, new_page: NewPage, problems: Problems
) -> None:
    problems.expect("status of 40[14]")
    await signed_in(page, "ann")
    await ask(page, "show argocd version")
    link = page.url
    await expect(page.get_by_text("Not shared")).to_be_visible()
    dialog = await open_dialog(page)
    await expect(dialog.get_by_role("checkbox")).to_have_count(2)
    await dialog.get_by_role("checkbox", name="sre").check()
    await dialog.get_by_label("Another group").fill("database admins")
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Shared with database admins, sre")).to_be_visible()
    await expect(share_button(page)).to_be_focused()
    await expect(page.get_by_text("Shared with you")).to_have_count(0)

    member = await signed_in(await new_page(), "bob")
    await listed(member).click()
    await expect(answer_in(member)).to_be_visible()
    await expect(member.get_by_text("Shared with database admins, sre")).to_be_visible()
    await expect(listed(member).get_by_text("Shared with you")).to_have_count(1)
    await expect(share_button(member)).to_have_count(0)
    await expect(member.get_by_role("button", name="Rename")).to_have_count(1)
    await expect(member.get_by_role("button", name="Delete")).to_have_count(0)
    await ask(member, "show GitHub issues")

    stranger = await signed_in(await new_page(), "eve", link)
    await expect(stranger.get_by_text("or it is not shared with you.")).to_be_visible()
    await expect(stranger.get_by_text("No conversations yet.")).to_be_visible()
    await expect(share_button(stranger)).to_have_count(0)

    admin = await signed_in(await new_page(), "ops", link)
    await (await open_dialog(admin)).get_by_role("button", name="Stop sharing").click()
    await expect(admin.get_by_text("Not shared")).to_be_visible()
    await member.reload()
    await expect(member.get_by_text("or it is not shared with you.")).to_be_visible()
    await expect(listed(member)).to_have_count(0)


async def test_the_dialog_works_with_the_keyboard_and_an_error_loses_nothing(page: Page, problems: Problems) -> None:
    problems.expect("status of 503")
    body = {"error": "unavailable", "message": "The disk is full."}
    changes = await refusal(page, "PATCH", "**/conversations/*", 503, body)
    await signed_in(page, "ann")
    await ask(page, "show argocd version")
    await share_button(page).focus()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("checkbox", name="platform")).to_be_focused()
    await page.keyboard.press("Space")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(share_button(page)).to_be_focused()
    await expect(page.get_by_text("Not shared")).to_be_visible()

    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("checkbox", name="platform")).not_to_be_checked()
    field = dialog.get_by_label("Another group")
    await field.fill(" on call ")
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("checkbox", name="on call")).to_be_checked()
    await expect(dialog.get_by_role("status")).to_have_text("on call was added.")
    await expect(field).to_be_focused()

    changes.active = True
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("alert")).to_have_text("The change was not saved. The disk is full.")
    changes.active = False
    await page.keyboard.press("Enter")
    await expect(share_button(page)).to_be_focused()
    await expect(page.get_by_text("Shared with on call")).to_be_visible()

    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("checkbox")).to_have_count(3)
    for number in range(1, MANY):
        await field.fill(f"team {number}")
        await page.keyboard.press("Enter")
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("alert")).to_have_text("A conversation can be shared with at most 20 groups.")


async def test_the_dialog_opens_again_at_once_and_stays_open(page: Page) -> None:
    await signed_in(page, "ann")
    await ask(page, "show argocd version")
    dialog = await open_dialog(page)
    # The browser reports the close of the first dialog after the focus is back.
    await dialog.get_by_role("button", name="Cancel").evaluate("""cancel => {
        const first = cancel.closest("dialog");
        const opener = document.querySelector("[aria-haspopup=dialog]");
        opener.addEventListener("focus", () => queueMicrotask(() => opener.click()), {once: true});
        cancel.click();
        return new Promise(resolve => first.addEventListener("close", () => resolve()));
    }""")
    await expect(dialog).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "viewport"), LOOKS)
async def test_sharing_is_accessible_and_fits(new_page: NewPage, theme: str, viewport: str) -> None:
    page = await signed_in(await new_page(theme=theme, viewport=VIEWPORTS[viewport]), "ann")
    await ask(page, "show argocd version")
    dialog = await open_dialog(page)
    await dialog.get_by_role("checkbox", name="platform").check()
    await check_both_themes(page, screenshot=f"share-{viewport}-{{theme}}")
    assert not await overflows(page)
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Shared with platform")).to_be_visible()
    await check_both_themes(page)
    assert not await overflows(page)
