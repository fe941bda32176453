"""Where the bot may write and read."""

from __future__ import annotations

from collections.abc import Mapping

from tests.integrations.slack_bot.standin.calls import ApiCall
from tests.integrations.slack_bot.standin.directory import Conversation, ConversationKind
from tests.integrations.slack_bot.standin.refusals import RefusedError
from tests.integrations.slack_bot.standin.state import State

SCOPES: Mapping[ConversationKind, str] = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}


def known(state: State, channel: str) -> Conversation:
    """A conversation that the bot knows of: any public one, and those that it is part of."""
    conversation = state.directory.conversations.get(channel)
    if conversation is None:
        raise RefusedError("channel_not_found", f"there never was a {channel!r}", fault=True)
    if conversation.kind != "channel" and state.directory.app.user_id not in conversation.members:
        raise RefusedError("channel_not_found")
    return conversation


def writable(state: State, channel: str) -> Conversation:
    if channel in state.directory.users:
        channel = state.directory.direct(channel).id
    conversation = known(state, channel)
    if conversation.archived:
        raise RefusedError("is_archived")
    if state.directory.app.user_id not in conversation.members:
        raise RefusedError("not_in_channel")
    return conversation


def check_thread(state: State, channel: str, thread_ts: str, error: str = "thread_not_found") -> None:
    """A thread is named by its first message, which must have been there."""
    message = state.workspace.messages.get((channel, thread_ts))
    if message is None or not state.thread_exists(channel, thread_ts):
        raise RefusedError(error, fault=message is None)
    if message.thread_ts and message.thread_ts != message.ts:
        raise RefusedError("cannot_reply_to_message", f"{thread_ts} is an answer in the thread {message.thread_ts}")


def check_scope(state: State, needed: str) -> None:
    scopes = state.directory.app.scopes
    if needed not in scopes:
        raise RefusedError("missing_scope", needed=needed, provided=",".join(sorted(scopes)))


def readable(state: State, call: ApiCall, right: str) -> Conversation:
    """A conversation that may be read with the scopes that the app has; `right` is `history` or `read`."""
    conversation = known(state, call.get("channel"))
    check_scope(state, f"{SCOPES[conversation.kind]}:{right}")
    if right == "history" and state.directory.app.user_id not in conversation.members:
        raise RefusedError("not_in_channel")
    return conversation
