"""What a listener did not expect: the person is told in plain words, whatever they were doing."""

from __future__ import annotations

from slack_bolt import BoltResponse
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest

from ai_platform_engineering.integrations.slack_bot.listeners.ephemeral import post_ephemeral
from ai_platform_engineering.integrations.slack_bot.listeners.listening import Listening
from ai_platform_engineering.integrations.slack_bot.listeners.notice_view import notice_view
from ai_platform_engineering.integrations.slack_bot.listeners.requests import Body, SlackLocation, location_of
from ai_platform_engineering.integrations.slack_bot.listeners.trouble import trouble
from ai_platform_engineering.integrations.slack_bot.places import Person


class Failures:
    def __init__(self, listening: Listening) -> None:
        self._listening = listening

    def listen(self, app: AsyncApp) -> None:
        app.error(self.failed)

    async def failed(self, error: Exception, body: Body, request: AsyncBoltRequest) -> BoltResponse:
        sentence = trouble(error)
        team = self._listening.identity.team
        match body.get("type"):
            case "event_callback":
                # Slack sends it again; who waits for an answer is told once.
                if location := self._waiting(request, body.get("event") or {}):
                    self._listening.background.start(post_ephemeral(self._listening.client, location, sentence))
                return BoltResponse(status=500)
            case "view_submission":
                return BoltResponse(status=200, body={"response_action": "update", "view": notice_view(sentence)})
            case "block_actions":
                location = location_of(body, team)
                self._listening.background.start(post_ephemeral(self._listening.client, location, sentence))
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
        person = Person(event.get("user_team") or self._listening.identity.team, event["user"])
        return SlackLocation(person, event["channel"], event.get("thread_ts") or "")
