"""The slash command: answers that the person alone sees, questions that the channel sees, and what is stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ai_platform_engineering.integrations.slack_bot.channels import load_channels
from ai_platform_engineering.integrations.slack_bot.listeners.errors import NOT_IN_CHANNEL
from ai_platform_engineering.integrations.slack_bot.listeners.texts import NOT_HERE, help_text, listed
from ai_platform_engineering.integrations.slack_bot.places import Incoming, SlackUser, ThreadPlace
from ai_platform_engineering.integrations.slack_bot.store import BotStoreError, StoredRun
from ai_platform_engineering.integrations.slack_bot.words import NOT_STORED
from ai_platform_engineering.utils.errors import ReadableError
from tests.integrations.slack_bot.listening_bench import ANNA, Bench, bench


@pytest.fixture
async def listeners() -> AsyncIterator[Bench]:
    async with bench() as made:
        yield made


def running(task_id: str, text: str, person: str = "UANNA", channel: str = "C1") -> StoredRun:
    incoming = Incoming(ThreadPlace("T1", channel, "1.0"), "1.0", text, SlackUser("T1", person))
    return StoredRun(task_id, incoming, "context", task_id=task_id)


@pytest.mark.parametrize("text", ["", "  ", "help", "HELP"])
async def test_help_is_there_at_once(listeners: Bench, text: str) -> None:
    answer = await listeners.command(text)
    assert answer.json() == {"response_type": "ephemeral", "text": help_text("/platform")}
    assert listeners.slack.calls == []


async def test_agents_and_workflows_are_listed_for_the_person_alone(listeners: Bench) -> None:
    for word in ("agents", "Workflows"):
        answer = await listeners.command(word)
        assert (answer.status_code, answer.text) == (200, "")
    await listeners.quiet()
    agents, workflows = sorted(listeners.slack.private_responses, key=lambda notice: "Create" in notice["text"])
    assert agents["response_type"] == workflows["response_type"] == "ephemeral"
    assert "*Jira*: Tickets &lt;and&gt; boards\n• *Argo CD*: Deployments" in agents["text"]
    assert "*Create GitHub Repo*" in workflows["text"]
    assert "/platform Create GitHub Repo" in workflows["text"]
    assert listeners.slack.calls == []


async def test_skills_are_listed_with_the_way_to_use_one(listeners: Bench) -> None:
    await listeners.command("skills")
    await listeners.quiet()
    (notice,) = listeners.slack.private_responses
    assert notice["response_type"] == "ephemeral"
    assert "`/platform /incident-triage`" in notice["text"]
    assert "• *incident-triage*: Find out what is broken" in notice["text"]
    assert "• *cost-review*: Costs &lt;by&gt; team" in notice["text"]
    assert listeners.slack.calls == []


@pytest.mark.parametrize(
    "text", ["/incident-triage payments-api", "incident-triage payments-api", "skills of the team", "which skills?"]
)
async def test_a_skill_after_the_command_is_asked_for_as_it_is_typed(listeners: Bench, text: str) -> None:
    await listeners.command(f"  {text} ")
    await listeners.quiet()
    assert [taken.text for taken in listeners.bot.taken] == [text]
    (posted,) = listeners.slack.of("chat.postMessage")
    assert posted["text"] == f"<@UANNA> asks:\n> {text}"


async def test_a_supervisor_that_cannot_be_reached_is_told_in_words(listeners: Bench) -> None:
    listeners.bot.error = ReadableError("The supervisor at http://10.0.0.7:8000 cannot be reached. Try again.")
    await listeners.command("agents")
    await listeners.quiet()
    (notice,) = listeners.slack.private_responses
    assert notice["text"] == "The supervisor at (address) cannot be reached. Try again."


async def test_where_the_bot_keeps_things_is_for_whoever_runs_it(
    listeners: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    listeners.bot.error = BotStoreError("/srv/bot/slack.sqlite is full. Choose another directory with DATA_DIR.")
    await listeners.command("who is on call?")
    await listeners.quiet()
    (notice,) = listeners.slack.private_responses
    assert notice["text"] == NOT_STORED
    assert "/srv/bot/slack.sqlite is full" in caplog.text


async def test_a_question_is_asked_in_the_channel_and_answered_in_its_thread(listeners: Bench) -> None:
    answer = await listeners.command("agents of <!channel>\n&amp; who is on call?")
    assert answer.text == ""
    await listeners.quiet()
    (posted,) = listeners.slack.of("chat.postMessage")
    assert posted["channel"] == "C1"
    assert posted["text"] == "<@UANNA> asks:\n> agents of @channel\n> &amp; who is on call?"
    (taken,) = listeners.bot.taken
    assert taken == Incoming(ThreadPlace("T1", "C1", taken.ts), taken.ts, "agents of @channel\n& who is on call?", ANNA)
    assert taken.ts.startswith("900.")
    assert listeners.slack.private_responses == []


@pytest.mark.parametrize("refusal", ["not_in_channel", "channel_not_found"])
async def test_where_the_bot_is_not_it_asks_to_be_invited(listeners: Bench, refusal: str) -> None:
    listeners.slack.refusals["chat.postMessage"] = refusal
    await listeners.command("who is on call?")
    await listeners.quiet()
    assert [notice["text"] for notice in listeners.slack.private_responses] == [NOT_IN_CHANNEL]
    assert listeners.bot.taken == []


async def test_where_it_is_switched_off_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "channels.yaml"
    path.write_text("channels: {C2: {prompt: Be brief.}}", encoding="utf-8")
    async with bench(load_channels(path)) as listeners:
        await listeners.command("who is on call?")
        await listeners.command("who is on call?", channel="C2")
        await listeners.quiet()
        assert [notice["text"] for notice in listeners.slack.private_responses] == [NOT_HERE]
        assert [taken.instructions for taken in listeners.bot.taken] == ["Be brief."]


async def test_a_command_that_slack_sends_twice_is_one(listeners: Bench) -> None:
    for _ in range(2):
        await listeners.command("who is on call?", trigger_id="same")
    await listeners.quiet()
    assert len(listeners.bot.taken) == 1


async def test_cancel_stops_what_the_person_began_here(listeners: Bench) -> None:
    listeners.bot.running = [
        running("t1", "deploy"),
        running("t2", "of another person", "UBEN"),
        running("t3", "elsewhere", channel="C2"),
    ]
    await listeners.command("cancel")
    await listeners.quiet()
    assert listeners.bot.asked == [("cancel_run", "t1", ANNA)]
    assert [notice["text"] for notice in listeners.slack.private_responses] == ["Stopping it."]


async def test_cancel_lists_what_it_stops(listeners: Bench) -> None:
    listeners.bot.running = [running("t1", "deploy <it>"), running("t2", "long " * 50)]
    await listeners.command("cancel")
    await listeners.quiet()
    assert [asked[1] for asked in listeners.bot.asked] == ["t1", "t2"]
    first, second = listeners.slack.private_responses[0]["text"].splitlines()
    assert first == "• _deploy &lt;it&gt;_: Stopping it."
    assert len(second) < 120


async def test_cancel_says_that_there_is_nothing(listeners: Bench) -> None:
    await listeners.command("cancel")
    await listeners.quiet()
    assert "You have no running request" in listeners.slack.private_responses[0]["text"]
    assert listeners.bot.asked == []


async def test_the_command_has_the_name_that_is_set() -> None:
    async with bench(command="/ops") as listeners:
        answer = await listeners.command("help", command="/ops")
        assert "`/ops agents`" in answer.json()["text"]


def test_a_list_ends_before_slack_cuts_it() -> None:
    text = listed("All:", [(f"Agent {number}", "does things " * 40) for number in range(100)])
    assert len(text) < 3100
    assert text.splitlines()[-1] == f"… and {100 - (len(text.splitlines()) - 2)} more"
