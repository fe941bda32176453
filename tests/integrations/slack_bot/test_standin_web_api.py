"""What the stand-in refuses, because Slack does; through slack_sdk."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.integrations.slack_bot.bots import client_of
from tests.integrations.slack_bot.standin import Conversation, Person, Slack, VirtualClock, standing_in

BUTTON = {"type": "button", "action_id": "go", "text": {"type": "plain_text", "text": "Go"}}
PLAN = {"type": "plan", "title": "Plan", "tasks": []}


@pytest.fixture
def client(slack: Slack) -> AsyncWebClient:
    return client_of(slack)


@pytest.fixture
def ada(slack: Slack) -> Person:
    return slack.person("ada")


@pytest.fixture
def channel(slack: Slack, ada: Person) -> Conversation:
    return slack.channel("help", ada)


async def refused(call: Awaitable[Any]) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


def kinds(slack: Slack) -> list[str]:
    return [violation.kind for violation in slack.violations]


async def test_a_token_is_known_and_of_the_right_type(slack: Slack) -> None:
    assert (await client_of(slack).auth_test())["user_id"] == slack.app.user_id
    assert await refused(client_of(slack, "xoxb-other").auth_test()) == "invalid_auth"
    assert await refused(AsyncWebClient(base_url=slack.api_url).auth_test()) == "not_authed"
    assert await refused(client_of(slack, slack.app.app_token).auth_test()) == "not_allowed_token_type"
    opened = await AsyncWebClient(base_url=slack.api_url).apps_connections_open(app_token=slack.app.app_token)
    assert opened["url"].startswith("ws://127.0.0.1:")


async def test_a_scope_is_needed(slack: Slack, client: AsyncWebClient, channel: Conversation) -> None:
    slack.app.scopes -= {"chat:write"}
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=channel.id, text="hello")
    answer = caught.value.response.data
    assert isinstance(answer, dict)
    assert (answer["error"], answer["needed"]) == ("missing_scope", "chat:write")
    assert "channels:history" in answer["provided"]
    slack.app.scopes -= {"channels:history"}
    assert await refused(client.conversations_replies(channel=channel.id, ts="1.0")) == "missing_scope"


async def test_unknown_methods_and_arguments_are_seen(
    slack: Slack, client: AsyncWebClient, channel: Conversation
) -> None:
    assert await refused(client.api_call("chat.shout", params={"channel": channel.id})) == "unknown_method"
    assert await refused(client.chat_postMessage(channel=channel.id, text="x", loud=True)) == "invalid_arguments"
    assert await refused(client.api_call("chat.update", json={"channel": channel.id, "text": "x"})) == (
        "invalid_arguments"
    )
    assert kinds(slack) == ["refused", "unknown_argument", "refused"]


async def test_forms_and_json_are_both_read(client: AsyncWebClient, channel: Conversation, slack: Slack) -> None:
    blocks = '[{"type": "section", "text": {"type": "mrkdwn", "text": "from a form"}}]'
    await client.api_call("chat.postMessage", data={"channel": channel.id, "blocks": blocks, "text": "x"})
    await client.api_call("chat.postMessage", json={"channel": channel.id, "text": "from JSON"})
    assert "from a form" in slack.text(channel)
    assert "from JSON" in slack.text(channel)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, "no_text"),
        ({"text": "x", "markdown_text": "x"}, "markdown_text_conflict"),
        ({"markdown_text": "x" * 12_001}, "msg_too_long"),
        ({"blocks": [{"type": "nonsense"}], "text": "x"}, "invalid_blocks"),
        ({"blocks": [{"type": "divider"}] * 51, "text": "x"}, "invalid_blocks"),
        ({"blocks": [{"type": "markdown", "text": "x" * 12_001}], "text": "x"}, "invalid_blocks"),
        ({"text": "x", "thread_ts": "1.000001"}, "thread_not_found"),
        ({"text": "x", "metadata": {"number": 1}}, "invalid_metadata_format"),
    ],
)
async def test_a_message_is_checked(
    client: AsyncWebClient, channel: Conversation, slack: Slack, arguments: dict[str, Any], error: str
) -> None:
    assert await refused(client.api_call("chat.postMessage", json={"channel": channel.id, **arguments})) == error
    assert kinds(slack) == ["refused"]
    assert slack.transcript(channel).messages == ()


async def test_a_text_that_slack_cuts_off_is_seen(client: AsyncWebClient, channel: Conversation, slack: Slack) -> None:
    await client.chat_postMessage(channel=channel.id, text="x" * 40_001)
    assert kinds(slack) == ["truncated"]
    assert len(slack.transcript(channel).messages[-1].text) == 40_000


async def test_conversations_can_be_left_archived_and_unknown(
    client: AsyncWebClient, channel: Conversation, slack: Slack
) -> None:
    posted = await client.chat_postMessage(channel=channel.id, text="hello")
    channel.archived = True
    assert await refused(client.chat_postMessage(channel=channel.id, text="x")) == "is_archived"
    assert await refused(client.chat_update(channel=channel.id, ts=posted["ts"], text="x")) == "is_inactive"
    channel.archived = False
    channel.members.remove(slack.app.user_id)
    assert await refused(client.chat_postMessage(channel=channel.id, text="x")) == "not_in_channel"
    assert slack.violations == []
    assert await refused(client.chat_postMessage(channel="C404", text="x")) == "channel_not_found"
    assert kinds(slack) == ["refused"]


async def test_only_its_own_messages_are_the_bots(
    client: AsyncWebClient, channel: Conversation, slack: Slack, ada: Person
) -> None:
    hers = await ada.says(channel, "mine")
    assert await refused(client.chat_update(channel=channel.id, ts=hers.ts, text="x")) == "cant_update_message"
    assert await refused(client.chat_delete(channel=channel.id, ts=hers.ts)) == "cant_delete_message"
    assert kinds(slack) == ["refused", "refused"]


async def test_what_was_deleted_is_gone(
    client: AsyncWebClient, channel: Conversation, slack: Slack, ada: Person
) -> None:
    posted = await client.chat_postMessage(channel=channel.id, text="hello")
    await ada.deletes(slack.transcript(channel).messages[-1])
    assert await refused(client.chat_update(channel=channel.id, ts=posted["ts"], text="x")) == "message_not_found"
    assert await refused(client.chat_postMessage(channel=channel.id, thread_ts=posted["ts"], text="x")) == (
        "thread_not_found"
    )
    assert slack.violations == []


async def test_a_thread_is_named_by_its_first_message(
    client: AsyncWebClient, channel: Conversation, ada: Person
) -> None:
    first = await ada.says(channel, "first")
    second = await ada.says(channel, "second", first.ts)
    assert await refused(client.chat_postMessage(channel=channel.id, thread_ts=second.ts, text="x")) == (
        "cannot_reply_to_message"
    )


async def test_an_update_takes_less_text_than_a_post(
    client: AsyncWebClient, channel: Conversation, slack: Slack
) -> None:
    posted = await client.chat_postMessage(channel=channel.id, text="x" * 4_001)
    assert await refused(client.chat_update(channel=channel.id, ts=posted["ts"], text="x" * 4_001)) == "msg_too_long"
    assert slack.transcript(channel).messages[-1].text == "x" * 4_001


async def test_an_older_workspace_does_not_know_some_blocks(
    client: AsyncWebClient, channel: Conversation, slack: Slack
) -> None:
    await client.chat_postMessage(channel=channel.id, text="x", blocks=[PLAN])
    slack.directory.unknown_blocks = frozenset({"plan", "markdown"})
    assert await refused(client.chat_postMessage(channel=channel.id, text="x", blocks=[PLAN])) == "invalid_blocks"
    assert slack.violations == []


async def test_a_thread_can_be_read_page_by_page(client: AsyncWebClient, channel: Conversation, ada: Person) -> None:
    question = await ada.says(channel, "first")
    for number in range(3):
        await client.chat_postMessage(
            channel=channel.id,
            thread_ts=question.ts,
            text=f"answer {number}",
            metadata={"event_type": "answer", "event_payload": {"number": number}},
        )
    await client.chat_postEphemeral(channel=channel.id, user=ada.id, thread_ts=question.ts, text="only you")
    first = await client.conversations_replies(channel=channel.id, ts=question.ts, limit=2)
    assert [message["text"] for message in first["messages"]] == ["first", "answer 0"]
    assert "metadata" not in first["messages"][1]
    first = await client.conversations_replies(channel=channel.id, ts=question.ts, limit=2, include_all_metadata=True)
    assert first["messages"][1]["metadata"]["event_payload"] == {"number": 0}
    cursor = first["response_metadata"]["next_cursor"]
    rest = await client.conversations_replies(channel=channel.id, ts=question.ts, limit=5, cursor=cursor)
    assert [message["text"] for message in rest["messages"]] == ["answer 1", "answer 2"]
    assert not rest["has_more"]


async def test_only_members_of_the_channel_get_ephemeral_messages(
    client: AsyncWebClient, channel: Conversation, slack: Slack, ada: Person
) -> None:
    bob = slack.person("bob")
    assert await refused(client.chat_postEphemeral(channel=channel.id, user=bob.id, text="x")) == "user_not_in_channel"
    posted = await client.chat_postEphemeral(channel=channel.id, user=ada.id, text="only you")
    channel.members.add(bob.id)
    assert "only you" in ada.reads(channel)
    assert "only you" not in bob.reads(channel)
    assert await refused(client.chat_update(channel=channel.id, ts=posted["message_ts"], text="x")) == (
        "message_not_found"
    )


async def test_files_are_shared_when_all_of_them_is_there(
    client: AsyncWebClient, channel: Conversation, slack: Slack, ada: Person
) -> None:
    question = await ada.says(channel, "the log, please")
    await client.files_upload_v2(
        filename="log.txt", content="line\n" * 100, title="The log", channel=channel.id, thread_ts=question.ts
    )
    (file,) = slack.transcript(channel, question.ts).messages[-1].files
    assert (file.name, file.title, file.content) == ("log.txt", "The log", b"line\n" * 100)
    begun = await client.files_getUploadURLExternal(filename="x.txt", length=5)
    assert await refused(client.files_completeUploadExternal(files=[{"id": begun["file_id"], "title": "x"}])) == (
        "file_not_found"
    )


async def test_people_and_bots_are_looked_up(slack: Slack, client: AsyncWebClient, ada: Person) -> None:
    other = slack.person("robot", is_bot=True)
    assert (await client.users_info(user=ada.id))["user"]["is_bot"] is False
    assert (await client.users_info(user=other.id))["user"]["is_bot"] is True
    assert await refused(client.users_info(user="U404")) == "user_not_found"
    assert (await client.bots_info(bot=slack.app.bot_id))["bot"]["user_id"] == slack.app.user_id


async def test_methods_have_a_limit_for_each_minute() -> None:
    clock = VirtualClock()
    async with standing_in(clock=clock) as slack:
        client = client_of(slack)
        channel = slack.channel("help")
        posted = await client.chat_postMessage(channel=channel.id, text="0")
        for number in range(50):
            await client.chat_update(channel=channel.id, ts=posted["ts"], text=str(number))
        with pytest.raises(SlackApiError) as caught:
            await client.chat_update(channel=channel.id, ts=posted["ts"], text="one too many")
        assert caught.value.response.status_code == 429
        assert caught.value.response.headers["Retry-After"] == "60"
        assert kinds(slack) == ["rate_limit"]
        assert slack.transcript(channel).messages[-1].text == "49"
        await clock.advance(59)
        assert await refused(client.chat_update(channel=channel.id, ts=posted["ts"], text="too early")) == "ratelimited"
        assert kinds(slack) == ["rate_limit", "too_early"]
        await clock.advance(1)
        await client.chat_update(channel=channel.id, ts=posted["ts"], text="now")


async def test_a_channel_takes_a_message_a_second() -> None:
    clock = VirtualClock()
    async with standing_in(clock=clock) as slack:
        client = client_of(slack)
        channel, other = slack.channel("one"), slack.channel("other")
        for _ in range(5):
            await client.chat_postMessage(channel=channel.id, text="burst")
        await client.chat_postMessage(channel=other.id, text="elsewhere")
        assert slack.violations == []
        assert await refused(client.chat_postMessage(channel=channel.id, text="x")) == "ratelimited"
        await clock.advance(1)
        await client.chat_postMessage(channel=channel.id, text="x")
        for _ in range(20):
            await clock.advance(1)
            await client.chat_postMessage(channel=channel.id, text="steady")
        assert kinds(slack) == ["rate_limit"]


async def test_a_modal_needs_a_recent_action_of_a_person() -> None:
    clock = VirtualClock()
    async with standing_in(clock=clock) as slack:
        client = client_of(slack)
        ada = slack.person("ada")
        view = {"type": "modal", "title": {"type": "plain_text", "text": "Form"}, "blocks": [{"type": "divider"}]}
        assert await refused(client.views_open(trigger_id="1.2.3", view=view)) == "invalid_trigger_id"
        trigger = slack.state.new_trigger(ada.id)
        await client.views_open(trigger_id=trigger, view=view)
        assert ada.modal.title == "Form"
        assert await refused(client.views_open(trigger_id=trigger, view=view)) == "exchanged_trigger_id"
        late = slack.state.new_trigger(ada.id)
        await clock.advance(3.1)
        assert await refused(client.views_open(trigger_id=late, view=view)) == "expired_trigger_id"
        bad = {**view, "title": {"type": "plain_text", "text": "a title of more than 24 characters"}}
        trigger = slack.state.new_trigger(ada.id)
        assert await refused(client.views_open(trigger_id=trigger, view=bad)) == "invalid_arguments"
