"""Modals and what else is shown around messages, through slack_sdk."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.integrations.slack_bot.bots import client_of
from tests.integrations.slack_bot.standin import Conversation, Person, Slack

Json = dict[str, Any]


def form(title: str) -> Json:
    return {"type": "modal", "title": {"type": "plain_text", "text": title}, "blocks": [{"type": "divider"}]}


async def refused(call: Awaitable[Any]) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


@pytest.fixture
def client(slack: Slack) -> AsyncWebClient:
    return client_of(slack)


@pytest.fixture
def ada(slack: Slack) -> Person:
    return slack.person("ada")


@pytest.fixture
def channel(slack: Slack, ada: Person) -> Conversation:
    return slack.channel("help", ada)


async def test_modals_lie_on_each_other(slack: Slack, client: AsyncWebClient, ada: Person) -> None:
    await client.views_open(trigger_id=slack.state.new_trigger(ada.id), view=form("1"))
    for title in ("2", "3"):
        await client.views_push(trigger_id=slack.state.new_trigger(ada.id), view=form(title))
    too_many = client.views_push(trigger_id=slack.state.new_trigger(ada.id), view=form("4"))
    assert await refused(too_many) == "push_limit_reached"
    titles = []
    while ada.has_modal:
        titles.append(ada.modal.title)
        await ada.closes()
    assert titles == ["3", "2", "1"]


async def test_a_modal_is_replaced_by_who_knows_its_state(slack: Slack, client: AsyncWebClient, ada: Person) -> None:
    opened = (await client.views_open(trigger_id=slack.state.new_trigger(ada.id), view=form("1")))["view"]
    updated = await client.views_update(view_id=opened["id"], hash=opened["hash"], view=form("2"))
    assert ada.modal.title == "2"
    stale = client.views_update(view_id=opened["id"], hash=opened["hash"], view=form("3"))
    assert await refused(stale) == "hash_conflict"
    assert ada.modal.title == "2"
    await ada.closes()
    gone = client.views_update(view_id=updated["view"]["id"], view=form("3"))
    assert await refused(gone) == "not_found"
    assert slack.violations == []
    assert await refused(client.views_update(view_id="V404", view=form("3"))) == "not_found"
    assert [violation.kind for violation in slack.violations] == ["refused"]


async def test_a_thread_has_a_status_a_title_and_prompts(slack: Slack, client: AsyncWebClient, ada: Person) -> None:
    direct = slack.direct(ada)
    question = await ada.says(direct, "hello")
    thread = {"channel_id": direct.id, "thread_ts": question.ts}
    await client.assistant_threads_setStatus(**thread, status="is thinking")
    await client.assistant_threads_setTitle(**thread, title="Hello")
    await client.assistant_threads_setSuggestedPrompts(**thread, prompts=[{"title": "Help", "message": "help me"}])
    seen = ada.sees(direct, question.ts)
    assert (seen.status, seen.title, seen.prompts) == ("is thinking", "Hello", ("Help",))
    await client.assistant_threads_setStatus(**thread, status="")
    assert ada.sees(direct, question.ts).status == ""
    prompts = [{"title": str(number), "message": "x"} for number in range(5)]
    too_many = client.assistant_threads_setSuggestedPrompts(**thread, prompts=prompts)
    assert await refused(too_many) == "invalid_arguments"
    nowhere = client.assistant_threads_setStatus(channel_id=direct.id, thread_ts="1.000001", status="x")
    assert await refused(nowhere) == "invalid_thread_ts"


async def test_a_reaction_is_seen_once(
    slack: Slack, client: AsyncWebClient, ada: Person, channel: Conversation
) -> None:
    question = await ada.says(channel, "hello")
    add = {"channel": channel.id, "timestamp": question.ts, "name": "eyes"}
    assert await refused(client.reactions_add(**add)) == "missing_scope"
    slack.app.scopes |= {"reactions:write"}
    await client.reactions_add(**add)
    assert await refused(client.reactions_add(**add)) == "already_reacted"
    assert slack.transcript(channel).messages[-1].reactions == (("eyes", slack.app.user_id),)


async def test_a_channel_is_read_as_far_as_the_app_may(
    slack: Slack, client: AsyncWebClient, ada: Person, channel: Conversation
) -> None:
    first = await ada.says(channel, "first")
    await ada.says(channel, "an answer", first.ts)
    await ada.says(channel, "second")
    history = await client.conversations_history(channel=channel.id)
    assert [message["text"] for message in history["messages"]] == ["second", "first"]
    assert await refused(client.conversations_info(channel=channel.id)) == "missing_scope"
    slack.app.scopes |= {"channels:read"}
    assert (await client.conversations_info(channel=channel.id))["channel"]["is_member"]
    private = slack.channel("private", ada, kind="group", with_bot=False)
    assert await refused(client.conversations_history(channel=private.id)) == "channel_not_found"
