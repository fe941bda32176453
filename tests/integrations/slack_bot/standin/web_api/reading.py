"""What a bot can look up: conversations, people, bots, itself."""

from __future__ import annotations

from typing import Any

from ai_platform_engineering.integrations.slack_bot.preview.messages import SlackMessage
from tests.integrations.slack_bot.standin.calls import ApiCall
from tests.integrations.slack_bot.standin.conversations import readable
from tests.integrations.slack_bot.standin.messages_json import message_json
from tests.integrations.slack_bot.standin.refusals import RefusedError
from tests.integrations.slack_bot.standin.state import State

Json = dict[str, Any]
SOCKET_TICKET_SECONDS = 30.0


def auth_test(state: State, call: ApiCall) -> Json:
    directory = state.directory
    return {
        "url": f"https://{directory.team_name.lower()}.slack.com/",
        "team": directory.team_name,
        "team_id": directory.team_id,
        "user": directory.app.name,
        "user_id": directory.app.user_id,
        "bot_id": directory.app.bot_id,
        "is_enterprise_install": False,
    }


def open_connection(state: State, call: ApiCall) -> Json:
    ticket = state.new_id()
    state.socket_tickets[ticket] = state.now + SOCKET_TICKET_SECONDS
    address = state.url.replace("http://", "ws://", 1)
    return {"url": f"{address}/link/?ticket={ticket}&app_id={state.directory.app.id}"}


def replies(state: State, call: ApiCall) -> Json:
    conversation = readable(state, call, "history")
    named = state.workspace.messages.get((conversation.id, call.get("ts")))
    thread_ts = (named.thread_ts or named.ts) if named else ""
    messages = [message for message in _visible(state, conversation.id, thread_ts) if thread_ts]
    if not messages:
        raise RefusedError("thread_not_found", fault=named is None)
    return _page(state, call, messages)


def history(state: State, call: ApiCall) -> Json:
    conversation = readable(state, call, "history")
    return _page(state, call, list(reversed(_visible(state, conversation.id, ""))))


def conversation_info(state: State, call: ApiCall) -> Json:
    conversation = readable(state, call, "read")
    kind = conversation.kind
    return {
        "channel": {
            "id": conversation.id,
            "name": conversation.name,
            "is_channel": kind == "channel",
            "is_group": kind == "group",
            "is_im": kind == "im",
            "is_mpim": kind == "mpim",
            "is_private": kind != "channel",
            "is_archived": conversation.archived,
            "is_member": state.directory.app.user_id in conversation.members,
        }
    }


def user_info(state: State, call: ApiCall) -> Json:
    user = state.directory.users.get(call.get("user"))
    if user is None:
        raise RefusedError("user_not_found", fault=False)
    name = user.name.capitalize()
    return {
        "user": {
            "id": user.id,
            "team_id": state.directory.team_id,
            "name": user.name,
            "real_name": name,
            "deleted": False,
            "is_bot": user.is_bot,
            "is_app_user": False,
            "tz": "Europe/Berlin",
            "profile": {"real_name": name, "display_name": user.name, "team": state.directory.team_id},
        }
    }


def bot_info(state: State, call: ApiCall) -> Json:
    for user in state.directory.users.values():
        if user.bot_id and user.bot_id == call.get("bot"):
            return {"bot": {"id": user.bot_id, "deleted": False, "name": user.name, "user_id": user.id}}
    raise RefusedError("bot_not_found", fault=False)


def add_reaction(state: State, call: ApiCall) -> Json:
    message = state.message(call.get("channel"), call.get("timestamp"))
    if message is None:
        raise RefusedError("message_not_found")
    if (call.get("name"), state.directory.app.user_id) in message.reactions:
        raise RefusedError("already_reacted", fault=False)
    state.done(call.method, call.arguments)
    return {}


def _visible(state: State, channel: str, thread_ts: str) -> list[SlackMessage]:
    messages = state.workspace.transcript(channel, thread_ts).messages
    return [message for message in messages if not message.ephemeral_for and not message.deleted]


def _page(state: State, call: ApiCall, messages: list[SlackMessage]) -> Json:
    """Some of the messages, and where to go on. A cursor is opaque to clients: here it is a number."""
    limit = int(call.get("limit") or 1000)
    start = int(call.get("cursor") or 0)
    oldest, latest = float(call.get("oldest") or 0), float(call.get("latest") or "inf")
    inclusive = call.get("inclusive") in ("1", "true", "True")
    wanted = [
        message
        for message in messages
        if oldest < float(message.ts) < latest
        or (inclusive and float(message.ts) in (oldest, latest))
        or message.ts == call.get("ts")
    ]
    more = len(wanted) > start + limit
    shown = [message_json(state, message) for message in wanted[start : start + limit]]
    if call.get("include_all_metadata") not in ("1", "true", "True"):
        for message in shown:
            message.pop("metadata", None)
    return {
        "messages": shown,
        "has_more": more,
        "response_metadata": {"next_cursor": str(start + limit) if more else ""},
    }
