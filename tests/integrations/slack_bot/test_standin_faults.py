"""What goes wrong on demand, as slack_sdk meets with it."""

from __future__ import annotations

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.integrations.slack_bot.bots import client_of
from tests.integrations.slack_bot.standin import (
    Broken,
    Conversation,
    Fault,
    Lost,
    Refusal,
    Silence,
    Slack,
    TooMany,
    VirtualClock,
    standing_in,
)
from tests.integrations.slack_bot.standin.calls import ApiCall


@pytest.fixture
def channel(slack: Slack) -> Conversation:
    return slack.channel("help")


@pytest.fixture
def client(slack: Slack) -> AsyncWebClient:
    return client_of(slack)


def said(slack: Slack, channel: Conversation) -> list[str]:
    return [message.text for message in slack.transcript(channel).messages]


async def test_slack_says_when_to_come_back() -> None:
    clock = VirtualClock()
    async with standing_in(clock=clock) as slack:
        client, channel = client_of(slack), slack.channel("help")
        slack.faults.next("chat.postMessage", TooMany(1))
        with pytest.raises(SlackApiError) as caught:
            await client.chat_postMessage(channel=channel.id, text="hello")
        assert caught.value.response.status_code == 429
        assert caught.value.response.headers["Retry-After"] == "1"
        assert slack.violations == []
        with pytest.raises(SlackApiError, match="ratelimited"):
            await client.chat_postMessage(channel=channel.id, text="was on its way")
        assert slack.violations == []
        await clock.advance(0.3)
        with pytest.raises(SlackApiError, match="ratelimited"):
            await client.chat_postMessage(channel=channel.id, text="too early")
        assert [violation.kind for violation in slack.violations] == ["too_early"]
        await clock.advance(0.7)
        await client.chat_postMessage(channel=channel.id, text="in time")
        assert said(slack, channel) == ["in time"]


@pytest.mark.parametrize("done", [False, True])
async def test_a_server_in_trouble(slack: Slack, client: AsyncWebClient, channel: Conversation, done: bool) -> None:
    slack.faults.next("chat.postMessage", Broken(503, done))
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=channel.id, text="hello")
    assert caught.value.response.status_code == 503
    assert said(slack, channel) == (["hello"] if done else [])


@pytest.mark.long
@pytest.mark.parametrize("done", [False, True])
async def test_no_answer(slack: Slack, client: AsyncWebClient, channel: Conversation, done: bool) -> None:
    slack.faults.next("chat.postMessage", Silence(done))
    client.timeout = 1
    with pytest.raises(TimeoutError):
        await client.chat_postMessage(channel=channel.id, text="hello")
    assert said(slack, channel) == (["hello"] if done else [])
    await client_of(slack).chat_postMessage(channel=channel.id, text="again")


@pytest.mark.parametrize("done", [False, True])
async def test_a_lost_connection(slack: Slack, client: AsyncWebClient, channel: Conversation, done: bool) -> None:
    slack.faults.next("chat.postMessage", Lost(done), None)
    with pytest.raises(aiohttp.ClientError):
        await client.chat_postMessage(channel=channel.id, text="hello")
    assert said(slack, channel) == (["hello"] if done else [])
    await client.chat_postMessage(channel=channel.id, text="again")


@pytest.mark.long
async def test_what_slack_sdk_repeats_by_itself_is_seen_twice(slack: Slack, channel: Conversation) -> None:
    slack.faults.next("chat.postMessage", Lost(done=True))
    client = AsyncWebClient(slack.app.bot_token, base_url=slack.api_url)
    await client.chat_postMessage(channel=channel.id, text="hello")
    assert said(slack, channel) == ["hello", "hello"]


@pytest.mark.parametrize("done", [False, True])
async def test_an_error_of_any_name(slack: Slack, client: AsyncWebClient, channel: Conversation, done: bool) -> None:
    with slack.faults.always("chat.postMessage", Refusal("internal_error", done)):
        for _ in range(2):
            with pytest.raises(SlackApiError, match="internal_error"):
                await client.chat_postMessage(channel=channel.id, text="hello")
    await client.chat_postMessage(channel=channel.id, text="again")
    assert said(slack, channel) == [*(["hello", "hello"] if done else []), "again"]
    assert slack.violations == []


async def test_what_is_refused_anyhow_is_refused(slack: Slack, client: AsyncWebClient, channel: Conversation) -> None:
    slack.faults.next("chat.postMessage", Lost(done=True))
    with pytest.raises(SlackApiError, match="no_text"):
        await client.api_call("chat.postMessage", json={"channel": channel.id})


async def test_faults_can_be_chosen_call_by_call(slack: Slack, client: AsyncWebClient, channel: Conversation) -> None:
    def choose(call: ApiCall) -> Fault | None:
        return Refusal("fatal_error") if "bad" in call.get("text") else None

    slack.faults.choose = choose
    await client.chat_postMessage(channel=channel.id, text="good")
    with pytest.raises(SlackApiError, match="fatal_error"):
        await client.chat_postMessage(channel=channel.id, text="bad")
    assert [call.ok for call in slack.calls("chat.postMessage")] == [True, False]


@pytest.mark.parametrize("done", [False, True])
async def test_an_upload_is_lost(slack: Slack, client: AsyncWebClient, channel: Conversation, done: bool) -> None:
    slack.faults.next("upload", Lost(done))
    with pytest.raises(aiohttp.ClientError):
        await client.files_upload_v2(filename="log.txt", content="a log", channel=channel.id)
    assert [upload.arrived for upload in slack.state.uploads.values()] == [done]
    assert said(slack, channel) == []
