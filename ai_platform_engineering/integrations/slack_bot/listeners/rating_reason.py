"""The modal that asks for the reason of a negative rating, and its submission."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from slack_bolt.async_app import AsyncAck, AsyncApp

from ai_platform_engineering.integrations.slack_bot.listeners.context import ListenerContext
from ai_platform_engineering.integrations.slack_bot.listeners.requests import Body, SlackLocation, person_of
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Rating

REASON: Final = "platform_engineer:reason"
REASONS: Final = (
    "It is wrong",
    "It does not answer what I asked",
    "Something is missing",
    "It is out of date",
    "It is too long or hard to read",
    "It did something that I did not want",
)
_KIND, _WORDS, _AGAIN = "kind", "words", "again"
THANKS: Final = "Thank you, noted."


def reason_view(rating: Rating, location: SlackLocation) -> dict[str, Any]:
    """The modal. Its metadata has the rated answer and the location of the person."""
    where = {"channel": location.channel, "thread_ts": location.thread_ts}
    options = [{"text": _plain(reason), "value": reason} for reason in REASONS]
    return {
        "type": "modal",
        "callback_id": REASON,
        "private_metadata": json.dumps({"rating": asdict(rating), **where}),
        "title": _plain("What was wrong?"),
        "submit": _plain("Send"),
        "close": _plain("Close"),
        "blocks": [
            _input(_KIND, "What is the matter?", {"type": "static_select", "options": options}),
            _input(
                _WORDS,
                "In your own words",
                {"type": "plain_text_input", "multiline": True, "max_length": 3000},
            ),
            _input(
                _AGAIN,
                "And now?",
                {"type": "checkboxes", "options": [{"text": _plain("Answer again now"), "value": _AGAIN}]},
            ),
        ],
    }


class Reasons:
    def __init__(self, context: ListenerContext) -> None:
        self._context = context

    def listen(self, app: AsyncApp) -> None:
        app.view(REASON)(self.on_submission)

    async def on_submission(self, ack: AsyncAck, body: Body, view: Mapping[str, Any]) -> None:
        await ack()
        metadata = json.loads(view["private_metadata"])
        person = person_of(body, self._context.identity.team)
        location = SlackLocation(person, metadata["channel"], metadata["thread_ts"])
        if self._context.first_time("submitted", body.get("trigger_id")):
            rating = Rating(**metadata["rating"])
            self._context.run_later(location, self._store(rating, location, view["state"]["values"]))

    async def _store(self, rating: Rating, location: SlackLocation, values: Mapping[str, Any]) -> str | None:
        kind = (values[_KIND][_KIND].get("selected_option") or {}).get("value") or ""
        words = (values[_WORDS][_WORDS].get("value") or "").strip()
        reason = ": ".join(part for part in (kind, words) if part)
        again = bool(values[_AGAIN][_AGAIN].get("selected_options"))
        if reason:
            await self._context.bot.rate(rating, location.person, good=False, reason=reason)
        if again:
            return await self._context.bot.retry(rating.task_id, location.person, addition=reason)
        return THANKS


def _input(block_id: str, label: str, element: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "input",
        "block_id": block_id,
        "optional": True,
        "label": _plain(label),
        "element": {**element, "action_id": block_id},
    }


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}
