"""Running the bot: what has to be right first, Socket Mode or HTTP, and the end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Final

from slack_sdk.web.async_client import AsyncWebClient
from starlette.applications import Starlette

from ai_platform_engineering.integrations.slack_bot.app import build_app
from ai_platform_engineering.integrations.slack_bot.assembly import assemble
from ai_platform_engineering.integrations.slack_bot.channels import Channels, load_channels
from ai_platform_engineering.integrations.slack_bot.clock import SystemClock
from ai_platform_engineering.integrations.slack_bot.connection import Connection
from ai_platform_engineering.integrations.slack_bot.introduction import Introduction, introduce
from ai_platform_engineering.integrations.slack_bot.library_log import library_log
from ai_platform_engineering.integrations.slack_bot.listeners.calls import BotCalls
from ai_platform_engineering.integrations.slack_bot.listeners.identity import Identity
from ai_platform_engineering.integrations.slack_bot.listeners.listening import Listening
from ai_platform_engineering.integrations.slack_bot.store import BotStore, open_store
from ai_platform_engineering.integrations.slack_bot.tokens import check_tokens
from ai_platform_engineering.integrations.slack_bot.web import events_route, health_routes
from ai_platform_engineering.integrations.slack_bot.web_api.budget import Budget
from ai_platform_engineering.integrations.slack_bot.web_api.paced_client import PacedClient
from ai_platform_engineering.integrations.slack_bot.web_api.web_client import web_client
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.serving import begin_start, listen, run

FINISH_SECONDS: Final = 2.0
OpenBot = Callable[[AsyncWebClient, Budget], AbstractAsyncContextManager[BotCalls]]
"""A bot that calls Slack with that client, within that budget, which others use as well."""


def run_slack_bot(settings: Settings) -> int:
    """Serve until SIGINT or SIGTERM; the exit code of the process. What is set wrong is said before anything starts."""
    begin_start()
    check_tokens(settings)
    channels = load_channels(settings.slack_channels_file)
    with listen(settings.slack_host, settings.slack_port) as listener:
        introduction = asyncio.run(introduce(settings, library_log()))
        store = open_store(settings)
        try:
            app = create_slack_app(
                settings,
                introduction,
                channels,
                store,
                lambda client, budget: _bot(settings, client, store, channels, budget),
            )
            line = _ready_line(settings, introduction.identity, listener.getsockname()[1])
            return run(app, listener, lambda: _say(line))
        finally:
            store.close()


def create_slack_app(
    settings: Settings, introduction: Introduction, channels: Channels, store: BotStore, bot_with: OpenBot
) -> Starlette:
    """The bot as an ASGI app: it works while that is served."""
    log, identity = library_log(), introduction.identity
    bot_token, app_token, secret = (
        token.get_secret_value() if token else ""
        for token in (settings.slack_bot_token, settings.slack_app_token, settings.slack_signing_secret)
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # What is entered last ends first: no new requests, then what they began, then the bot.
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(web_client(bot_token, settings.slack_api_url))
            clock = SystemClock()
            budget = Budget(clock)
            bot = await stack.enter_async_context(bot_with(client, budget))
            paced = PacedClient(client, budget, clock)
            listening = Listening(bot, store, channels, paced, identity, settings.slack_command, clock)
            stack.push_async_callback(listening.background.finish, FINISH_SECONDS)
            app.state.bolt = bolt = build_app(listening, secret, log)
            if app_token:
                connection = Connection(bolt, app_token, log, address=introduction.address)
                app.state.connection = await stack.enter_async_context(connection)
            yield

    async def is_ready() -> bool:
        return not app_token or await served.state.connection.ready()

    # Without Socket Mode, and only then, Slack's requests come over HTTP: what signs them is known.
    requests = [] if app_token else [events_route(lambda: served.state.bolt, settings.max_request_bytes)]
    served = Starlette(routes=[*health_routes(is_ready), *requests], lifespan=lifespan)
    return served


@asynccontextmanager
async def _bot(
    settings: Settings, client: AsyncWebClient, store: BotStore, channels: Channels, budget: Budget
) -> AsyncIterator[BotCalls]:
    bot = assemble(settings, client, store, channels, budget=budget)
    await bot.start()
    try:
        yield bot
    finally:
        await bot.aclose()


def _ready_line(settings: Settings, identity: Identity, port: int) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.slack_host, settings.slack_host)
    mode = "Socket Mode" if settings.slack_app_token else "HTTP"
    return (
        f"Slack bot is ready at http://{f'[{host}]' if ':' in host else host}:{port} ({mode}), "
        f"workspace {identity.team_name}, supervisor {settings.supervisor_url}"
    )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
