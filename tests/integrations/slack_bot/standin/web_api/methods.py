"""The methods there are: what they take, what an app needs to call them, and how often it may."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tests.integrations.slack_bot.standin.calls import ApiCall
from tests.integrations.slack_bot.standin.state import State
from tests.integrations.slack_bot.standin.web_api import assistant, chat, files, reading, streams, views

TIER_2, TIER_3, TIER_4 = 20, 50, 100


@dataclass(frozen=True, slots=True)
class Method:
    does: Callable[[State, ApiCall], dict[str, Any]]
    required: frozenset[str]
    optional: frozenset[str]
    per_minute: int
    scope: str = ""
    """Needed whatever it is called with; what depends on the conversation is checked by the method."""
    token: Literal["bot", "app"] = "bot"


def _method(
    does: Callable[[State, ApiCall], dict[str, Any]],
    per_minute: int,
    scope: str = "",
    required: str = "",
    optional: str = "",
) -> Method:
    return Method(does, frozenset(required.split()), frozenset(optional.split()), per_minute, scope)


_LOOKS = "username icon_emoji icon_url"
_CONTENT = "text blocks attachments markdown_text parse link_names as_user"
_PAGES = "cursor limit oldest latest inclusive include_all_metadata"

METHODS: Mapping[str, Method] = {
    "auth.test": _method(reading.auth_test, 300),
    # Slack says one a minute, and means far more when connections break.
    "apps.connections.open": Method(reading.open_connection, frozenset(), frozenset(), TIER_2, token="app"),
    "chat.postMessage": _method(
        chat.post_message,
        300,
        "chat:write",
        "channel",
        f"{_CONTENT} {_LOOKS} thread_ts reply_broadcast metadata mrkdwn unfurl_links unfurl_media",
    ),
    "chat.postEphemeral": _method(
        chat.post_ephemeral, TIER_4, "chat:write", "channel user", f"{_CONTENT} {_LOOKS} thread_ts"
    ),
    "chat.update": _method(
        chat.update, TIER_3, "chat:write", "channel ts", f"{_CONTENT} file_ids metadata reply_broadcast"
    ),
    "chat.delete": _method(chat.delete, TIER_3, "chat:write", "channel ts", "as_user"),
    "chat.startStream": _method(
        streams.start,
        TIER_2,
        "chat:write",
        "channel thread_ts",
        f"chunks markdown_text recipient_team_id recipient_user_id task_display_mode {_LOOKS}",
    ),
    "chat.appendStream": _method(streams.append, TIER_4, "chat:write", "channel ts", "chunks markdown_text"),
    "chat.stopStream": _method(
        streams.stop, TIER_2, "chat:write", "channel ts", "chunks markdown_text blocks metadata"
    ),
    "assistant.threads.setStatus": _method(
        assistant.set_status, 600, "chat:write", "channel_id thread_ts status", f"loading_messages {_LOOKS}"
    ),
    "assistant.threads.setTitle": _method(assistant.set_title, TIER_4, "assistant:write", "channel_id thread_ts title"),
    "assistant.threads.setSuggestedPrompts": _method(
        assistant.set_suggested_prompts, TIER_4, "assistant:write", "channel_id prompts", "thread_ts title"
    ),
    "views.open": _method(views.open_view, TIER_4, "", "view trigger_id"),
    "views.push": _method(views.push_view, TIER_4, "", "view trigger_id"),
    "views.update": _method(views.update_view, TIER_4, "", "view", "view_id external_id hash"),
    "conversations.replies": _method(reading.replies, TIER_3, "", "channel ts", _PAGES),
    "conversations.history": _method(reading.history, TIER_3, "", "channel", _PAGES),
    "conversations.info": _method(reading.conversation_info, TIER_3, "", "channel", "include_locale"),
    "users.info": _method(reading.user_info, TIER_4, "users:read", "user", "include_locale"),
    "bots.info": _method(reading.bot_info, TIER_3, "users:read", "bot", "team_id"),
    "files.getUploadURLExternal": _method(
        files.get_upload_url, TIER_4, "files:write", "filename length", "alt_txt snippet_type"
    ),
    "files.completeUploadExternal": _method(
        files.complete_upload, TIER_4, "files:write", "files", "channel_id channels thread_ts initial_comment blocks"
    ),
    "reactions.add": _method(reading.add_reaction, TIER_3, "reactions:write", "channel name timestamp"),
}
