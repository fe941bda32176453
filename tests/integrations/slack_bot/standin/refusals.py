"""Why Slack does not do what it is asked."""

from __future__ import annotations

from typing import Any

EXPECTED = frozenset(
    {
        "cant_delete_message",
        "channel_not_found",
        "expired_trigger_id",
        "invalid_thread_ts",
        "is_archived",
        "is_inactive",
        "message_not_found",
        "message_not_in_streaming_state",
        "not_in_channel",
        "stopped_by_user",
        "streaming_state_conflict",
        "thread_not_found",
    }
)
"""What happens to a bot that does everything right: people delete and archive, streams expire, answers get lost."""


class RefusedError(Exception):
    """`ok: false`. It is the bot's fault unless it is among what is to be expected, or said not to be."""

    def __init__(self, error: str, detail: str = "", *, fault: bool | None = None, **more: Any) -> None:
        super().__init__(f"{error}: {detail}" if detail else error)
        self.error = error
        self.fault = error not in EXPECTED if fault is None else fault
        self.more = {**more, **({"response_metadata": {"messages": [f"[ERROR] {detail}"]}} if detail else {})}

    @property
    def answer(self) -> dict[str, Any]:
        return {"ok": False, "error": self.error, **self.more}
