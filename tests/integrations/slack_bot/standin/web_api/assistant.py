"""What is shown around a thread while the bot works in it."""

from __future__ import annotations

from typing import Any

from tests.integrations.slack_bot.standin.calls import ApiCall
from tests.integrations.slack_bot.standin.conversations import check_thread, writable
from tests.integrations.slack_bot.standin.refusals import RefusedError
from tests.integrations.slack_bot.standin.state import State

Json = dict[str, Any]
LOADING_MESSAGES = 10
PROMPTS = 4


def set_status(state: State, call: ApiCall) -> Json:
    if len(call.arguments.get("loading_messages") or ()) > LOADING_MESSAGES:
        raise RefusedError("invalid_arguments", "too many loading_messages")
    return _environment(state, call)


def set_title(state: State, call: ApiCall) -> Json:
    return _environment(state, call)


def set_suggested_prompts(state: State, call: ApiCall) -> Json:
    prompts = call.arguments["prompts"]
    if not isinstance(prompts, list) or not 0 < len(prompts) <= PROMPTS:
        raise RefusedError("invalid_arguments", f"from one to {PROMPTS} prompts")
    if not all(isinstance(prompt, dict) and set(prompt) == {"title", "message"} for prompt in prompts):
        raise RefusedError("invalid_arguments", "a prompt has a title and a message")
    return _environment(state, call)


def _environment(state: State, call: ApiCall) -> Json:
    conversation = writable(state, call.get("channel_id"))
    if call.get("thread_ts") or call.method != "assistant.threads.setSuggestedPrompts":
        check_thread(state, conversation.id, call.get("thread_ts"), "invalid_thread_ts")
    state.done(call.method, call.arguments)
    return {}
