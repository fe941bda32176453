"""Slack's error codes, grouped by how the bot handles them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    CREATING,
    Operation,
    Rejection,
    StartStream,
)

RATE_LIMITED: Final = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})
"""Rate limited; the call had no effect."""
UNCERTAIN: Final = frozenset(
    {
        "internal_error",
        "fatal_error",
        "service_unavailable",
        "request_timeout",
        "messaging_processing_failed",
        "update_failed",
    }
)
"""The call may have taken effect."""
TEMPORARY: Final = frozenset({"team_added_to_org", "org_login_required", "external_channel_migrating"})
"""A temporary state of the workspace; the call had no effect."""
TOKEN_ERRORS: Final = frozenset(
    {
        "invalid_auth",
        "not_authed",
        "token_revoked",
        "token_expired",
        "account_inactive",
        "app_access_restricted",
        "two_factor_setup_required",
    }
)
"""The token is not valid for any call."""

_KINDS: Final[Mapping[Rejection, frozenset[str]]] = {
    # People can stop a stream in Slack itself.
    "not_streaming": frozenset({"message_not_in_streaming_state", "stopped_by_user"}),
    "too_long": frozenset(
        {"msg_too_long", "msg_blocks_too_long", "msg_blocks_too_many", "attachment_payload_limit_exceeded"}
    ),
    # A message that can no longer be changed is handled like a deleted one.
    "message_gone": frozenset(
        {
            "message_not_found",
            "message_not_owned_by_app",
            "cant_update_message",
            "cant_delete_message",
            "edit_window_closed",
        }
    ),
    "thread_gone": frozenset(
        {
            "channel_not_found",
            "thread_not_found",
            "team_not_found",
            "is_archived",
            "is_inactive",
            "not_in_channel",
            "no_permission",
            "ekm_access_denied",
            "messages_tab_disabled",
            "cannot_reply_to_message",
            "restricted_action",
            "restricted_action_non_threadable_channel",
            "restricted_action_read_only_channel",
            "restricted_action_thread_locked",
        }
    ),
    "bad_blocks": frozenset(
        {"invalid_blocks", "invalid_blocks_format", "invalid_chunks", "invalid_attachments", "block_mismatch"}
    ),
}
_BY_CODE: Final[Mapping[str, Rejection]] = {code: kind for kind, codes in _KINDS.items() for code in codes}

_NO_STREAMING: Final = frozenset(
    {
        "channel_type_not_supported",
        "method_not_supported_for_channel_type",
        "unknown_method",
        "method_deprecated",
        "deprecated_endpoint",
        "not_allowed",
        "not_allowed_token_type",
        "feature_not_enabled",
        "enterprise_is_restricted",
        "missing_recipient_user_id",
        "missing_recipient_team_id",
        "user_not_found",
        "invalid_arguments",
    }
)
"""Errors of a stream's start after which a message can still be posted."""


def rejection_of(error: str, operation: Operation) -> Rejection:
    kind = _BY_CODE.get(error, "other")
    if isinstance(operation, StartStream) and (error in _NO_STREAMING or kind == "bad_blocks"):
        return "no_streaming"
    if isinstance(operation, CREATING) and kind == "message_gone":
        # The only message in such a call is the first one of the thread.
        return "thread_gone"
    return kind
