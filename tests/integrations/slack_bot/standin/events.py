"""Events as Slack tells them: what happened, and the envelope around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ai_platform_engineering.integrations.slack_bot.preview.messages import SlackMessage
from tests.integrations.slack_bot.standin.directory import App, Conversation, ConversationKind
from tests.integrations.slack_bot.standin.messages_json import message_json
from tests.integrations.slack_bot.standin.state import State

Json = dict[str, Any]
SUBSCRIPTIONS: dict[ConversationKind, str] = {
    "channel": "message.channels",
    "group": "message.groups",
    "im": "message.im",
    "mpim": "message.mpim",
}


def message_event(state: State, message: SlackMessage) -> Json:
    event = {**message_json(state, message), **_place(state, message.channel), "event_ts": message.ts}
    author = state.directory.users.get(message.author)
    if author and not author.is_bot:
        event["client_msg_id"] = f"client-{message.ts}"
    parent = state.workspace.messages.get((message.channel, message.thread_ts))
    return {**event, "parent_user_id": parent.author} if parent else event


def app_mention(state: State, message: SlackMessage) -> Json:
    """The same message once more, without the kind of the conversation."""
    event = {**message_event(state, message), "type": "app_mention"}
    event.pop("channel_type", None)
    return event


def message_changed(state: State, channel: str, after: Json, before: Json) -> Json:
    change = {"type": "message", "subtype": "message_changed", "hidden": True, **_place(state, channel)}
    return {**change, "ts": state.new_ts(), "event_ts": after["ts"], "message": after, "previous_message": before}


def message_deleted(state: State, message: SlackMessage) -> Json:
    change = {"type": "message", "subtype": "message_deleted", "hidden": True, **_place(state, message.channel)}
    ts = state.new_ts()
    before = message_json(state, message)
    return {**change, "ts": ts, "event_ts": ts, "deleted_ts": message.ts, "previous_message": before}


def assistant_thread_started(state: State, message: SlackMessage, person: str) -> Json:
    thread = {"user_id": person, "context": {}, "channel_id": message.channel, "thread_ts": message.ts}
    return {"type": "assistant_thread_started", "assistant_thread": thread, "event_ts": message.ts}


def app_home_opened(state: State, channel: str, person: str) -> Json:
    return {
        "type": "app_home_opened",
        "user": person,
        "channel": channel,
        "tab": "messages",
        "event_ts": state.new_ts(),
    }


def agent_session_stopped(state: State, message: SlackMessage, person: str, streams: Sequence[str]) -> Json:
    """A person pressed Slack's own stop button in the thread of that message; it has ended these streams."""
    return {
        "type": "agent_session_stopped",
        "user": person,
        "channel": message.channel,
        "thread_ts": message.thread_ts or message.ts,
        "streaming_message_ts": list(streams),
        "event_ts": state.new_ts(),
    }


def is_subscribed(app: App, event: Json, conversation: Conversation | None) -> bool:
    """Whether the app gets the event: it subscribes to it, has the scope, and is a member of the conversation."""
    if conversation is not None and app.user_id not in conversation.members:
        return False
    match event["type"]:
        case "message" if conversation is not None:
            name = SUBSCRIPTIONS[conversation.kind]
            return name in app.events and f"{name.removeprefix('message.')}:history" in app.scopes
        case "app_mention":
            return "app_mention" in app.events and "app_mentions:read" in app.scopes
        case "assistant_thread_started":
            return "assistant_thread_started" in app.events and "assistant:write" in app.scopes
        case other:
            return other in app.events


def envelope(state: State, event: Json) -> Json:
    directory = state.directory
    authorization = {
        "enterprise_id": None,
        "team_id": directory.team_id,
        "user_id": directory.app.user_id,
        "is_bot": True,
        "is_enterprise_install": False,
    }
    return {
        "token": "verification",
        "team_id": directory.team_id,
        "api_app_id": directory.app.id,
        "event": event,
        "type": "event_callback",
        "event_id": state.new_id("Ev"),
        "event_time": int(state.now),
        "authorizations": [authorization],
        "is_ext_shared_channel": False,
        "event_context": state.new_id("4-"),
    }


def _place(state: State, channel: str) -> Json:
    kind = state.directory.conversations[channel].kind
    return {"channel": channel, "channel_type": kind}
