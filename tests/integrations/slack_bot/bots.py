"""Small bots that are served to the stand-in, over HTTP and in Socket Mode."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.integrations.slack_bot.standin import Slack
from tests.integrations.slack_bot.standin.http_route import HttpRoute
from tests.integrations.slack_bot.standin.loopback import on_loopback


def client_of(slack: Slack, token: str | None = None) -> AsyncWebClient:
    """slack_sdk as it comes, but for retries: what it does by itself is not what a test asked for."""
    return AsyncWebClient(token or slack.app.bot_token, base_url=slack.api_url, retry_handlers=[])


def bolt_app(slack: Slack) -> AsyncApp:
    """An app that has answered a request when its listeners have run."""
    secret = slack.app.signing_secret
    # Without a name, Bolt looks for it in the whole stack, which takes longer than many a test.
    return AsyncApp(name="bot", client=client_of(slack), signing_secret=secret, process_before_response=True)


@asynccontextmanager
async def over_http(slack: Slack, app: AsyncApp) -> AsyncIterator[HttpRoute]:
    handler = AsyncSlackRequestHandler(app)

    async def events(request: Request) -> Response:
        return await handler.handle(request)

    async with on_loopback(Starlette(routes=[Route("/slack/events", events, methods=["POST"])])) as bot:
        yield slack.calls_bot_at(f"{bot.url}/slack/events")


@asynccontextmanager
async def in_socket_mode(slack: Slack, app: AsyncApp) -> AsyncIterator[AsyncSocketModeHandler]:
    handler = AsyncSocketModeHandler(app, slack.app.app_token, web_client=client_of(slack, slack.app.app_token))
    # Failing connections are looked at often: a test has no time.
    handler.client.ping_interval = 0.1
    await handler.connect_async()
    try:
        await slack.connected()
        yield handler
    finally:
        await handler.close_async()
