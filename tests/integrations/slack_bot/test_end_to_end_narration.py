"""What people see while the supervisor works: its narration, its agents, the answer once. Both are real processes."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.integrations.slack_bot.held_tools import HeldTools
from tests.integrations.slack_bot.installation import Installation, Service, Thread, installation

pytestmark = pytest.mark.asyncio(loop_scope="package")


@pytest_asyncio.fixture(scope="module", loop_scope="package", params=["Socket Mode", "HTTP"])
async def acme(
    request: pytest.FixtureRequest, supervisor: Service, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    folder = tmp_path_factory.mktemp("bot")
    async with installation(folder, supervisor.url, socket_mode=request.param == "Socket Mode") as acme:
        yield acme
        acme.check(also={"the supervisor": supervisor.output}, addresses=(supervisor.url.removeprefix("http://"),))


def cards(thread: Thread) -> dict[str, str]:
    return {card.title: card.status for message in thread.messages for card in message.cards}


def times_seen(thread: Thread, text: str) -> list[int]:
    """How often a text was to be seen, at every moment."""
    return [sum(message.text.count(text) for message in moment) for moment in thread.moments()]


async def test_narration_is_there_before_the_knowledge_base_has_answered(
    acme: Installation, knowledge: HeldTools
) -> None:
    ada = acme.person()
    async with knowledge.holding("fetch_document"):
        async with knowledge.holding("search"):
            thread = await acme.asks(ada, "how do I run ArgoCD remotely?")
            searching = "I'll search the knowledge base for how to run ArgoCD remotely."
            await thread.until(lambda: searching in thread.said)
            assert knowledge.called == {"search": 1}
            await thread.until(lambda: cards(thread) == {"Knowledge base": "in_progress"})
        await thread.until(lambda: "I'll read “" in thread.said)
        await thread.until(lambda: "fetch_document" in thread.text)
        assert knowledge.called["fetch_document"]
        assert "DISTRIBUTED_AGENTS" not in thread.said
    answer = await thread.answered()
    assert "DISTRIBUTED_AGENTS=argocd" in answer.text
    assert "Sources:" in answer.text
    assert thread.said.count(searching) == 1
    assert max(times_seen(thread, "Sources:")) == 1
    assert cards(thread) == {"Knowledge base": "complete"}
    thread.check()


async def test_after_an_agent_its_report_is_not_echoed_and_the_answer_is_shown_once(acme: Installation) -> None:
    thread = await acme.asks(acme.person(), "list the open GitHub issues")
    answer = await thread.answered()
    rows = re.findall(r"^\| acme/\S+ \| \d+ \|.*$", answer.text, re.MULTILINE)
    assert len(rows) > 3
    for row in rows:
        assert max(times_seen(thread, row)) == 1
    # Nothing of the answer is shown before all of it: what streams after an agent may be its report once more.
    assert set(times_seen(thread, rows[0])) == {0, 1}
    assert times_seen(thread, rows[0]) == times_seen(thread, rows[-1])
    assert "I'll ask Github" in thread.said
    thread.check()


async def test_knowledge_streams_also_after_an_agent_has_reported(acme: Installation, knowledge: HeldTools) -> None:
    async with knowledge.holding("fetch_document"):
        thread = await acme.asks(acme.person(), "who is on call, and how do I run ArgoCD remotely?")
        await thread.until(lambda: "I'll read “" in thread.said)
        await thread.until(lambda: cards(thread).get("[Pagerduty] Who is on call") == "complete")
        assert "Sources:" not in thread.said
    answer = await thread.answered()
    assert "Priya Nair" in answer.text
    assert "DISTRIBUTED_AGENTS=argocd" in answer.text
    assert max(times_seen(thread, "Priya Nair")) == 1
    assert max(times_seen(thread, "Sources:")) == 1
    thread.check()


async def test_every_agent_is_called_by_its_name(acme: Installation) -> None:
    thread = await acme.asks(acme.person(), "compare Jira and GitHub issues")
    await thread.until(lambda: "Calling Agent Jira..." in thread.text and "Calling Agent Github..." in thread.text)
    answer = await thread.answered()
    assert "SHOP-118" in answer.text
    assert "acme/payments-api" in answer.text
    assert "Calling Agent Jira..." in thread.text
    assert "Calling Agent Github..." in thread.text
    assert "[Jira] Show Jira issues" in cards(thread)
    assert set(cards(thread).values()) == {"complete"}
    shown = [card for moment in thread.moments() for message in moment for card in message.cards]
    assert not any("task" in f"{card.title} {card.details}".lower() for card in shown)
    thread.check()


async def test_the_bot_is_seen_to_work_within_a_second(acme: Installation) -> None:
    thread = await acme.asks(acme.person(), "show argocd version")
    await thread.answered()
    first_sign = acme.slack.history.first_sign(thread.channel.id, thread.ts)
    assert first_sign is not None
    assert first_sign - float(thread.ts) < 1
