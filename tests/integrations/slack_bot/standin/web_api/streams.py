"""Streams: messages that grow before people's eyes, for at most five minutes."""

from __future__ import annotations

from typing import Any, Literal

from ai_platform_engineering.integrations.slack_bot.preview.messages import SlackMessage
from tests.integrations.slack_bot.standin.calls import ApiCall
from tests.integrations.slack_bot.standin.contents import check_blocks, check_stream, with_block_ids
from tests.integrations.slack_bot.standin.conversations import check_thread, writable
from tests.integrations.slack_bot.standin.directory import Conversation
from tests.integrations.slack_bot.standin.events import message_event
from tests.integrations.slack_bot.standin.messages_json import message_json
from tests.integrations.slack_bot.standin.refusals import RefusedError
from tests.integrations.slack_bot.standin.state import State
from tests.integrations.slack_bot.standin.web_api.chat import own

Json = dict[str, Any]
Mode = Literal["chunks", "markdown_text"]
DISPLAY_MODES = ("timeline", "plan", "dense", "")


def start(state: State, call: ApiCall) -> Json:
    conversation = writable(state, call.get("channel"))
    if error := conversation.streaming_error or state.directory.streaming_error:
        raise RefusedError(error, fault=False)
    _check_recipient(state, conversation, call)
    check_thread(state, conversation.id, call.get("thread_ts"))
    if call.get("task_display_mode") not in DISPLAY_MODES:
        raise RefusedError("invalid_arguments", f"task_display_mode {call.get('task_display_mode')}")
    check_stream(call.arguments, state.directory.unknown_blocks)
    ts = state.new_ts()
    state.done("chat.startStream", {**_named(state, call), "channel": conversation.id}, made=ts)
    if mode := _mode(call):
        state.stream_modes[conversation.id, ts] = mode
    state.tell(message_event(state, state.workspace.messages[conversation.id, ts]))
    return {"channel": conversation.id, "ts": ts}


def append(state: State, call: ApiCall) -> Json:
    message = _streaming(state, call)
    if not call.arguments.get("chunks") and not call.arguments.get("markdown_text"):
        raise RefusedError("no_text")
    _check_added(state, call, message)
    state.done("chat.appendStream", _named(state, call))
    return {"channel": message.channel, "ts": message.ts}


def stop(state: State, call: ApiCall) -> Json:
    message = _streaming(state, call)
    _check_added(state, call, message)
    if blocks := call.arguments.get("blocks"):
        check_blocks(blocks, state.directory.unknown_blocks)
    state.done("chat.stopStream", _named(state, call))
    key = (message.channel, message.ts)
    state.stopped.add(key)
    if metadata := call.arguments.get("metadata"):
        state.metadata[key] = metadata
    stopped = message_json(state, state.workspace.messages[key])
    return {"channel": message.channel, "ts": message.ts, "message": stopped}


def _check_recipient(state: State, conversation: Conversation, call: ApiCall) -> None:
    if conversation.kind != "im":
        for name in ("recipient_team_id", "recipient_user_id"):
            if not call.get(name):
                raise RefusedError(f"missing_{name}")
    if recipient := call.get("recipient_user_id"):
        user = state.directory.users.get(recipient)
        if user is None or user.is_bot:
            raise RefusedError("user_not_found", f"{recipient} is not a person")
    if call.get("recipient_team_id") not in ("", state.directory.team_id):
        raise RefusedError("team_not_found")


def _streaming(state: State, call: ApiCall) -> SlackMessage:
    writable(state, call.get("channel"))
    message = own(state, call, "message_not_owned_by_app")
    key = (message.channel, message.ts)
    if key in state.stopped_by_people and call.method == "chat.appendStream":
        raise RefusedError("stopped_by_user")
    if not message.streaming:
        raise RefusedError("message_not_in_streaming_state", fault=not message.streamed)
    return message


def _check_added(state: State, call: ApiCall, message: SlackMessage) -> None:
    check_stream(call.arguments, state.directory.unknown_blocks)
    mode = _mode(call)
    if mode and state.stream_modes.setdefault((message.channel, message.ts), mode) != mode:
        raise RefusedError("streaming_mode_mismatch")


def _mode(call: ApiCall) -> Mode | None:
    if call.arguments.get("chunks"):
        return "chunks"
    return "markdown_text" if call.arguments.get("markdown_text") else None


def _named(state: State, call: ApiCall) -> Json:
    """With names for blocks that have none, wherever they are."""
    arguments = dict(call.arguments)
    if blocks := arguments.get("blocks"):
        arguments["blocks"] = with_block_ids(blocks, state.new_id)
    if chunks := arguments.get("chunks"):
        arguments["chunks"] = [
            {**chunk, "blocks": with_block_ids(chunk["blocks"], state.new_id)} if chunk["type"] == "blocks" else chunk
            for chunk in chunks
        ]
    return arguments
