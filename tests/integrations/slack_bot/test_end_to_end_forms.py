"""Forms and approvals in Slack: the answer goes to the task that asked, and what comes of it stands in the thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from ai_platform_engineering.integrations.slack_bot.preview.messages import SlackMessage
from tests.integrations.slack_bot.installation import (
    Installation,
    Service,
    Thread,
    installation,
    labels,
    modal_text,
    repositories,
)

pytestmark = pytest.mark.asyncio(loop_scope="package")

ROLL_BACK = {"reason": "It crashes", "revision": "", "ticket": ""}


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def acme(supervisor: Service, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installation(tmp_path_factory.mktemp("bot"), supervisor.url) as acme:
        yield acme
        acme.check(also={"the supervisor": supervisor.output}, addresses=(supervisor.url.removeprefix("http://"),))


async def asked(thread: Thread, button: str) -> SlackMessage:
    """The form, once it is there."""
    await thread.until(lambda: thread.has_button(button))
    return thread.with_button(button)


async def approval(acme: Installation, thread: Thread) -> SlackMessage:
    """The approval form of a requested roll-back."""
    ada = thread.person
    await ada.presses(await asked(thread, "Fill in"), "Fill in")
    await thread.until(lambda: ada.has_modal)
    await ada.fills_in(ada.modal, {"reason": "It crashes"})
    await ada.submits()
    return await asked(thread, "Approve")


async def test_a_form_in_the_message_comes_back_with_what_is_wrong_and_then_resumes_the_task(
    acme: Installation, supervisor: Service
) -> None:
    ada = acme.person()
    thread = await acme.asks(ada, "Create GitHub Repo")
    form = await asked(thread, "Submit")
    shown = {card.title: card.status for message in thread.messages for card in message.cards}
    assert "Waiting for an answer: " in "".join(shown)
    assert "in_progress" not in shown.values(), "no card is in progress while it waits"
    await ada.fills_in(form, {"repository": "in slack"})
    await ada.presses(form, "Submit")
    await thread.until(lambda: "[in slack]" in thread.text)
    assert "in slack" not in repositories(supervisor)
    await ada.fills_in(thread.with_button("Submit"), {"repository": "in-slack", "description": "Made in Slack"})
    await ada.presses(thread.with_button("Submit"), "Submit")
    answer = await thread.answered()
    assert "acme/in-slack" in answer.text
    assert answer.ts > form.ts
    assert f"Answered by <@{ada.id}>" in thread.text
    assert not thread.has_button("Submit")
    await thread.until(lambda: "Waiting for an answer: " not in thread.text)
    assert repositories(supervisor).count("in-slack") == 1
    assert (
        len(
            {
                call.get("thread_ts")
                for call in acme.slack.calls("chat.postMessage")
                if call.get("channel") == form.channel
            }
        )
        == 1
    )
    thread.check()


async def test_pressed_twice_it_is_answered_once(acme: Installation, supervisor: Service) -> None:
    ada = acme.person()
    thread = await acme.asks(ada, "Create GitHub Repo")
    form = await asked(thread, "Submit")
    await ada.fills_in(form, {"repository": "pressed-twice"})
    await asyncio.gather(ada.presses(form, "Submit"), ada.presses(form, "Submit"))
    answer = await thread.answered()
    assert "acme/pressed-twice" in answer.text
    await thread.until(
        lambda: any("not open any more" in post_ephemeral for post_ephemeral in thread.ephemeral_messages)
    )
    assert repositories(supervisor).count("pressed-twice") == 1
    thread.check()


async def test_others_are_told_that_they_may_not(acme: Installation, supervisor: Service) -> None:
    ada, bob = acme.person(), acme.person("bob")
    thread = await acme.asks(ada, "Create GitHub Repo", acme.channel(ada, bob))
    form = await asked(thread, "Submit")
    seen = thread.seen_by(bob)
    await bob.fills_in(form, {"repository": "of-bob"})
    await bob.presses(form, "Submit")
    await thread.until(lambda: any(f"Only <@{ada.id}> may answer this." in one for one in seen.ephemeral_messages))
    await thread.says("repository: of-bob", bob)
    await thread.until(lambda: len(seen.ephemeral_messages) == 2)
    assert thread.ephemeral_messages == []
    assert thread.has_button("Submit")
    assert "of-bob" not in repositories(supervisor)
    await ada.presses(thread.with_button("Cancel"), "Cancel")
    await thread.until(lambda: f"Canceled by <@{ada.id}>" in thread.text)
    await thread.until(lambda: thread.answers)
    thread.check()


async def test_words_in_the_thread_answer_it(acme: Installation, supervisor: Service) -> None:
    ada = acme.person()
    thread = await acme.asks(ada, "Create GitHub Repo")
    await asked(thread, "Submit")
    await thread.says("repository: in-words\ndescription: Written in the thread")
    answer = await thread.answered()
    assert "acme/in-words" in answer.text
    assert f"Answered by <@{ada.id}>" in thread.text
    assert repositories(supervisor).count("in-words") == 1
    thread.check()


async def test_a_longer_form_is_a_modal_that_says_what_is_wrong_and_then_an_approval(acme: Installation) -> None:
    ada = acme.person()
    thread = await acme.asks(ada, "roll back payments-api")
    await ada.presses(await asked(thread, "Fill in"), "Fill in")
    await thread.until(lambda: ada.has_modal)
    assert "[Roll Back Application]" in modal_text(ada)
    await ada.fills_in(ada.modal, {"reason": "It crashes", "ticket": "no ticket"})
    await ada.submits()
    assert "! " in modal_text(ada)
    await ada.fills_in(ada.modal, {"ticket": ""})
    await ada.submits()
    assert not ada.has_modal
    question = await asked(thread, "Approve")
    assert "rollback_application" in thread.text
    assert {"Approve", "Reject...", "Edit..."} <= labels(question)
    await ada.presses(question, "Approve")
    answer = await thread.answered()
    assert "payments-api" in answer.text
    assert f"Approved by <@{ada.id}>" in thread.text
    assert not thread.has_button("Approve")
    thread.check()


async def test_a_rejection_has_a_reason(acme: Installation) -> None:
    ada = acme.person()
    thread = await acme.asks(ada, "roll back checkout")
    await ada.presses(await approval(acme, thread), "Reject...")
    await thread.until(lambda: ada.has_modal)
    (block,) = [block for block in ada.modal.view["blocks"] if block["type"] == "input"]
    await ada.fills_in(ada.modal, {block["block_id"]: "Not on a Friday"})
    await ada.submits()
    answer = await thread.answered()
    assert f"Rejected by <@{ada.id}>: Not on a Friday" in thread.text
    assert "Not on a Friday" in answer.text or "reject" in answer.text.lower()
    thread.check()


async def test_what_is_to_be_done_can_be_changed(acme: Installation) -> None:
    ada = acme.person()
    thread = await acme.asks(ada, "roll back guestbook")
    await ada.presses(await approval(acme, thread), "Edit...")
    await thread.until(lambda: ada.has_modal)
    await ada.fills_in(ada.modal, {"application": "inventory"})
    await ada.submits()
    answer = await thread.answered()
    assert f"Approved by <@{ada.id}> with" in thread.text
    assert "inventory" in answer.text
    thread.check()


async def test_a_modal_that_comes_too_late_says_so(acme: Installation) -> None:
    ada = acme.person()
    thread = await acme.asks(ada, "roll back web-frontend")
    form = await asked(thread, "Fill in")
    await ada.presses(form, "Fill in")
    await thread.until(lambda: ada.has_modal)
    await ada.presses(form, "Cancel")
    await thread.until(lambda: f"Canceled by <@{ada.id}>" in thread.text)
    await ada.fills_in(ada.modal, {"reason": "It crashes"})
    await ada.submits()
    assert "not open any more" in modal_text(ada)
    await thread.answered()
    thread.check()
