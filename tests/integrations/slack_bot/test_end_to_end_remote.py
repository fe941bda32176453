"""An agent in a process of its own: in Slack there is no difference, also for the agent's own forms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.integrations.slack_bot.installation import (
    Installation,
    Service,
    Thread,
    installation,
    repositories,
    supervisor_with,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


# They have no directory in common, as on two machines.
KEY = {"A2A_AGENTS_AUTH_KEY": "key-of-all-the-agents"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def github(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    environ = {"DATA_DIR": str(tmp_path_factory.mktemp("github")), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0"}
    environ |= KEY
    service = Service(["agent", "github"], environ)
    yield service
    await service.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def distributed(github: Service, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    service = supervisor_with(
        tmp_path_factory.mktemp("supervisor"),
        DISTRIBUTED_AGENTS="github",
        GITHUB_AGENT_URL=github.url,
        **KEY,
        ENABLE_RAG="false",
        OFFLINE_MODEL_DELAY="0",
    )
    yield service
    await service.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def acme(
    github: Service, distributed: Service, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    """The bot alone: each test starts the others, or stops them."""
    async with installation(tmp_path_factory.mktemp("bot"), distributed.url, SUPERVISOR_TIMEOUT="180") as acme:
        yield acme
        acme.check(
            also={"the supervisor": distributed.output, "the agent": github.output},
            addresses=tuple(service.url.removeprefix("http://") for service in (distributed, github)),
        )


@pytest_asyncio.fixture(loop_scope="module")
async def all_running(github: Service, distributed: Service) -> None:
    await asyncio.gather(*(service.start() for service in (github, distributed) if not service.is_running))


async def fill_in(thread: Thread, title: str, values: dict[str, str]) -> None:
    """Fill in the form of that title that is open in the thread."""
    ada = thread.person
    (form,) = [message for message in thread.messages if title in str(message.blocks) and "Fill in" in str(message)]
    await ada.presses(form, "Fill in")
    await thread.until(lambda: ada.has_modal)
    await ada.fills_in(ada.modal, values)
    await ada.submits()
    assert not ada.has_modal


async def test_what_is_asked_before_the_supervisor_is_there_is_answered_when_it_is(
    acme: Installation, distributed: Service, github: Service
) -> None:
    for service in (github, distributed):
        if service.is_running:
            await service.kill()
    ada = acme.person()
    thread = await acme.asks(ada, "Create GitHub Repo")
    await thread.until(lambda: "is working on it..." in thread.text)
    await asyncio.gather(github.start(), distributed.start())
    await thread.until(lambda: thread.has_button("Submit"))
    form = thread.with_button("Submit")
    await ada.fills_in(form, {"repository": "far-away"})
    await ada.presses(form, "Submit")
    answer = await thread.answered()
    assert "acme/far-away" in answer.text
    assert "Calling Agent Github..." in thread.text
    assert f"Answered by <@{ada.id}>" in thread.text
    assert repositories(github).count("far-away") == 1
    assert "far-away" not in repositories(distributed)
    thread.check()


@pytest.mark.usefixtures("all_running")
async def test_two_agents_ask_at_once_and_are_answered_one_by_one(acme: Installation) -> None:
    thread = await acme.asks(acme.person(), "create an issue in payments-api")
    await thread.until(lambda: str(thread.messages).count("Fill in") >= 2)
    await fill_in(thread, "(Jira)", {"summary": "It is slow", "description": "Since Monday"})
    await thread.until(lambda: "Answered by <@" in thread.text)
    assert thread.answers == []
    await fill_in(thread, "(Github)", {"title": "It is slow, too"})
    answer = await thread.answered()
    assert "It is slow, too" in answer.text
    assert thread.text.count("Answered by <@") == 2
    assert "Calling Agent Jira..." in thread.text
    assert "Calling Agent Github..." in thread.text
    thread.check()


@pytest.mark.usefixtures("all_running")
async def test_an_agent_that_is_gone_is_named_and_the_answer_says_so(acme: Installation, github: Service) -> None:
    await github.kill()
    thread = await acme.asks(acme.person(), "compare Jira and GitHub issues")
    answer = await thread.answered()
    assert "SHOP-118" in answer.text
    assert "Github" in answer.text
    statuses = {card.title: card.status for message in thread.messages for card in message.cards}
    assert statuses["[Github] Show GitHub issues"] == "error"
    assert statuses["[Jira] Show Jira issues"] == "complete"
    thread.check()
