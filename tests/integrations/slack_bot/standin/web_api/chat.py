"""Messages: posting, changing and deleting them."""

from __future__ import annotations

from typing import Any

from ai_platform_engineering.integrations.slack_bot.preview.messages import SlackMessage
from tests.integrations.slack_bot.standin.calls import ApiCall
from tests.integrations.slack_bot.standin.contents import (
    POST_TEXT_LIMIT,
    UPDATE_TEXT_LIMIT,
    check_message,
    with_block_ids,
)
from tests.integrations.slack_bot.standin.conversations import check_thread, known, writable
from tests.integrations.slack_bot.standin.events import message_changed, message_deleted, message_event
from tests.integrations.slack_bot.standin.messages_json import message_json
from tests.integrations.slack_bot.standin.refusals import RefusedError
from tests.integrations.slack_bot.standin.state import State

Json = dict[str, Any]


def post_message(state: State, call: ApiCall) -> Json:
    channel = writable(state, call.get("channel")).id
    check_message(call.arguments, state.directory.unknown_blocks, text_limit=1_000_000)
    if thread_ts := call.get("thread_ts"):
        check_thread(state, channel, thread_ts)
    if len(call.get("text")) > POST_TEXT_LIMIT:
        state.violate("truncated", call.method, f"text has {len(call.get('text'))} characters")
    ts = state.new_ts()
    if metadata := call.arguments.get("metadata"):
        state.metadata[channel, ts] = metadata
    state.done("chat.postMessage", {**_named(state, call), "channel": channel}, made=ts)
    message = state.workspace.messages[channel, ts]
    state.tell(message_event(state, message))
    return {"channel": channel, "ts": ts, "message": message_json(state, message)}


def post_ephemeral(state: State, call: ApiCall) -> Json:
    conversation = writable(state, call.get("channel"))
    check_message(call.arguments, state.directory.unknown_blocks, text_limit=POST_TEXT_LIMIT)
    if call.get("user") not in conversation.members:
        raise RefusedError("user_not_in_channel")
    if thread_ts := call.get("thread_ts"):
        check_thread(state, conversation.id, thread_ts)
    ts = state.new_ts()
    state.done("chat.postEphemeral", {**_named(state, call), "channel": conversation.id}, made=ts)
    return {"message_ts": ts}


def update(state: State, call: ApiCall) -> Json:
    message = own(state, call, "cant_update_message")
    if state.directory.conversations[message.channel].archived:
        raise RefusedError("is_inactive")
    if message.streaming:
        raise RefusedError("streaming_state_conflict")
    check_message(call.arguments, state.directory.unknown_blocks, text_limit=UPDATE_TEXT_LIMIT)
    before = message_json(state, message)
    if metadata := call.arguments.get("metadata"):
        state.metadata[message.channel, message.ts] = metadata
    state.done("chat.update", _named(state, call))
    after = message_json(state, state.workspace.messages[message.channel, message.ts])
    state.tell(message_changed(state, message.channel, after, before))
    return {"channel": message.channel, "ts": message.ts, "text": after["text"], "message": after}


def delete(state: State, call: ApiCall) -> Json:
    message = own(state, call, "cant_delete_message")
    if message.streaming:
        raise RefusedError("cant_delete_message")
    state.done("chat.delete", call.arguments)
    state.tell(message_deleted(state, message))
    return {"channel": message.channel, "ts": message.ts}


def own(state: State, call: ApiCall, error: str) -> SlackMessage:
    """The message that the call is about, which must be the bot's."""
    conversation = known(state, call.get("channel"))
    message = state.message(conversation.id, call.get("ts"))
    if message is None:
        ever = (conversation.id, call.get("ts")) in state.workspace.messages
        raise RefusedError("message_not_found", fault=not ever)
    if message.author != state.directory.app.user_id:
        raise RefusedError(error, "it is another author's message", fault=True)
    return message


def _named(state: State, call: ApiCall) -> Json:
    blocks = call.arguments.get("blocks")
    return {**call.arguments, "blocks": with_block_ids(blocks, state.new_id)} if blocks else call.arguments
