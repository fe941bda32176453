"""Unexpected errors in a listener: the person gets a sentence, in the way that fits the request."""

from __future__ import annotations

from slack_bolt import BoltResponse
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest

from ai_platform_engineering.integrations.slack_bot.listeners.context import ListenerContext
from ai_platform_engineering.integrations.slack_bot.listeners.errors import error_sentence
from ai_platform_engineering.integrations.slack_bot.listeners.private_notices import notice_view, post_ephemeral
from ai_platform_engineering.integrations.slack_bot.listeners.requests import Body, SlackLocation, location_of
from ai_platform_engineering.integrations.slack_bot.places import SlackUser


class Failures:
    def __init__(self, context: ListenerContext) -> None:
        self._context = context

    def listen(self, app: AsyncApp) -> None:
        app.error(self.on_error)

    async def on_error(self, error: Exception, body: Body, request: AsyncBoltRequest) -> BoltResponse:
        sentence = error_sentence(error)
        team = self._context.identity.team
        match body.get("type"):
            case "event_callback":
                # Slack retries the event; the person gets the sentence once.
                if location := self._waiting(request, body.get("event") or {}):
                    self._context.background.start(post_ephemeral(self._context.client, location, sentence))
                return BoltResponse(status=500)
            case "view_submission":
                return BoltResponse(status=200, body={"response_action": "update", "view": notice_view(sentence)})
            case "block_actions":
                location = location_of(body, team)
                self._context.background.start(post_ephemeral(self._context.client, location, sentence))
                return BoltResponse(status=200)
            case _ if "command" in body:
                return BoltResponse(status=200, body={"response_type": "ephemeral", "text": sentence})
            case _:
                return BoltResponse(status=500)

    def _waiting(self, request: AsyncBoltRequest, event: Body) -> SlackLocation | None:
        again = request.headers.get("x-slack-retry-num", ["0"])[0] != "0"
        addressed = event.get("type") == "app_mention" or event.get("channel_type") == "im"
        if again or not addressed or not event.get("user"):
            return None
        person = SlackUser(event.get("user_team") or self._context.identity.team, event["user"])
        return SlackLocation(person, event["channel"], event.get("thread_ts") or "")
