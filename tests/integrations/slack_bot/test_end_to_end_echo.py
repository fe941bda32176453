"""What a model says, to the word: held back as long as it may be an agent's report once more, and never lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.integrations.slack_bot.installation import Installation, Service, installation
from tests.integrations.slack_bot.played_model import Call, Pause, PlayedModel

pytestmark = pytest.mark.asyncio(loop_scope="package")


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def acme(thinker: Service, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installation(tmp_path_factory.mktemp("bot"), thinker.url) as acme:
        yield acme
        acme.check(also={"the supervisor": thinker.output}, addresses=(thinker.url.removeprefix("http://"),))


def ask_github(model: PlayedModel) -> Call:
    model.parts["Look at the issues"] = [["Issue 57 is open.\n"]]
    return Call("task", {"description": "Look at the issues", "subagent_type": "github"})


async def test_after_an_agent_what_may_be_its_report_again_waits_for_the_answer(
    acme: Installation, model: PlayedModel
) -> None:
    pause = Pause()
    question = "What is open?"
    model.parts[question] = [
        ["I'll ask GitHub.\n", ask_github(model)],
        ["Issue 57 is open.\n\n", pause, "Ada should look at it.\n"],
    ]
    thread = await acme.asks(acme.person(), question)
    await asyncio.wait_for(pause.reached.wait(), 90)
    await thread.until(lambda: "I'll ask GitHub." in thread.said and "Calling Agent Github..." in thread.text)
    # Longer than it takes to show what is not held back.
    await asyncio.sleep(1.5)
    assert "Issue 57" not in thread.text
    pause.end()
    await thread.answered()
    assert thread.said.count("Issue 57 is open.") == 1
    assert thread.said.count("Ada should look at it.") == 1
    thread.check()


async def test_the_knowledge_base_is_heard_also_after_an_agent_in_an_earlier_step(
    acme: Installation, model: PlayedModel
) -> None:
    pauses = Pause(), Pause()
    question = "What is open, and what does the handbook say?"
    model.parts[question] = [
        ["I'll ask GitHub.\n", ask_github(model)],
        ["Now the handbook.\n", pauses[0], Call("search", {"query": "remote agents"})],
        ["The handbook says:\n\n", pauses[1], "run them elsewhere.\n"],
    ]
    thread = await acme.asks(acme.person(), question)
    await asyncio.wait_for(pauses[0].reached.wait(), 90)
    pauses[0].end()
    await thread.until(lambda: "Now the handbook." in thread.said)
    await thread.until(lambda: "The handbook says:" in thread.said)
    assert not pauses[1].over.is_set()
    assert thread.answers == []
    pauses[1].end()
    await thread.answered()
    for text in ("I'll ask GitHub.", "Now the handbook.", "The handbook says:", "run them elsewhere."):
        assert thread.said.count(text) == 1
    thread.check()


async def test_the_echo_between_two_agents_is_not_shown(acme: Installation, model: PlayedModel) -> None:
    pause = Pause()
    question = "What is open anywhere?"
    model.parts["Look at the tickets"] = [[pause, "SHOP-118 is open.\n"]]
    ask_jira = Call("task", {"description": "Look at the tickets", "subagent_type": "jira"})
    model.parts[question] = [
        ["I'll ask GitHub.\n", ask_github(model)],
        ["Issue 57 is open.\n", ask_jira],
        ["Two are open.\n"],
    ]
    thread = await acme.asks(acme.person(), question)
    await asyncio.wait_for(pause.reached.wait(), 90)
    pause.end()
    await thread.answered()
    assert "Issue 57" not in thread.said
    assert thread.said.count("Two are open.") == 1
    assert "Calling Agent Github..." in thread.text
    assert "Calling Agent Jira..." in thread.text
    thread.check()


async def test_a_message_that_is_deleted_while_it_is_written_takes_nothing_with_it(
    acme: Installation, model: PlayedModel
) -> None:
    pause = Pause()
    question = "What is deleted?"
    model.parts[question] = [["This may go.\n\n", pause, "This stays.\n"]]
    thread = await acme.asks(acme.person(), question)
    await thread.until(lambda: "This may go." in thread.said)
    await thread.person.deletes(thread.messages[0])
    pause.end()
    await thread.answered()
    assert thread.said.strip() == "This stays."


async def test_killed_in_socket_mode_it_connects_again_and_goes_on(acme: Installation, model: PlayedModel) -> None:
    pause = Pause()
    question = "What of sockets?"
    model.parts[question] = [["They begin.\n\n", pause, "They end.\n"]]
    thread = await acme.asks(acme.person(), question)
    await thread.until(lambda: "They begin." in thread.said)
    await acme.bot.kill()
    pause.end()
    await acme.restart_bot()
    await thread.answered()
    assert (thread.said.count("They begin."), thread.said.count("They end.")) == (1, 1)
    model.parts["And now?"] = [["Again.\n"]]
    await thread.says("And now?")
    await thread.answered(2)
    assert model.heard("And now?") == [question, "And now?"]
    thread.check()
