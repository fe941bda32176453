"""`response_url`: a reply of the bot to a button or command, without a token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ai_platform_engineering.integrations.slack_bot.preview.calls import Key
from tests.integrations.slack_bot.standin.contents import POST_TEXT_LIMIT, check_message, with_block_ids
from tests.integrations.slack_bot.standin.events import message_event
from tests.integrations.slack_bot.standin.refusals import RefusedError
from tests.integrations.slack_bot.standin.state import RESPONSE_URL_USES, ResponseUrl, State

KEYS = frozenset(
    {
        "text",
        "blocks",
        "attachments",
        "response_type",
        "replace_original",
        "delete_original",
        "thread_ts",
        "mrkdwn",
        "unfurl_links",
        "unfurl_media",
        "metadata",
    }
)


def respond(state: State, name: str, body: Mapping[str, Any]) -> None:
    url = state.response_urls.get(name)
    if url is None:
        raise RefusedError("no_service")
    if state.now > url.expires:
        raise RefusedError("expired_url")
    if url.uses >= RESPONSE_URL_USES:
        raise RefusedError("used_url")
    if unknown := set(body) - KEYS:
        state.violate("unknown_argument", "response_url", min(unknown))
    url.uses += 1
    say(state, url, body)


def say(state: State, url: ResponseUrl, body: Mapping[str, Any]) -> None:
    """What came for it, or in the answer to a slash command."""
    if body.get("delete_original"):
        if url.message:
            state.workspace.delete(*url.message)
            state.seen(*url.message)
        return
    check_message(body, state.directory.unknown_blocks, POST_TEXT_LIMIT)
    blocks = body.get("blocks")
    content = {"text": body.get("text"), "blocks": with_block_ids(blocks, state.new_id) if blocks else None}
    if body.get("replace_original") and url.message:
        _replace(state, url.message, content)
        return
    thread_ts = body.get("thread_ts") or url.thread_ts
    arguments = {"channel": url.channel, "thread_ts": thread_ts, **content}
    ts = state.new_ts()
    if body.get("response_type") == "in_channel":
        state.done("chat.postMessage", arguments, made=ts)
        state.tell(message_event(state, state.workspace.messages[url.channel, ts]))
    else:
        state.done("chat.postEphemeral", {**arguments, "user": url.person}, made=ts)


def _replace(state: State, key: Key, content: Mapping[str, Any]) -> None:
    if state.workspace.message(*key) is None:
        raise RefusedError("message_not_found")
    state.done("chat.update", {"channel": key[0], "ts": key[1], **content})
