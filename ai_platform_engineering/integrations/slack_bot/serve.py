"""Runs the bot as a process: startup checks, Socket Mode or HTTP, graceful shutdown."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Final

from slack_sdk.web.async_client import AsyncWebClient
from starlette.applications import Starlette

from ai_platform_engineering.integrations.slack_bot.app import build_app, library_log
from ai_platform_engineering.integrations.slack_bot.app_setup import check_tokens
from ai_platform_engineering.integrations.slack_bot.assembly import assemble
from ai_platform_engineering.integrations.slack_bot.authentication import Authentication, authenticate
from ai_platform_engineering.integrations.slack_bot.channels import Channels, load_channels
from ai_platform_engineering.integrations.slack_bot.clock import SystemClock
from ai_platform_engineering.integrations.slack_bot.http_routes import events_route, health_routes
from ai_platform_engineering.integrations.slack_bot.listeners.bot_calls import BotCalls
from ai_platform_engineering.integrations.slack_bot.listeners.context import ListenerContext
from ai_platform_engineering.integrations.slack_bot.listeners.requests import Identity
from ai_platform_engineering.integrations.slack_bot.socket_mode import SocketModeConnection
from ai_platform_engineering.integrations.slack_bot.standby import become_active, end_process, watched
from ai_platform_engineering.integrations.slack_bot.store import BotStore, SharedBotStore, open_store
from ai_platform_engineering.integrations.slack_bot.web_api.budget import Budget
from ai_platform_engineering.integrations.slack_bot.web_api.paced_client import PacedClient
from ai_platform_engineering.integrations.slack_bot.web_api.web_client import web_client
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.connection_limits import ConnectionLimits
from ai_platform_engineering.utils.serving import begin_start, listen, run

FINISH_SECONDS: Final = 2.0
OpenBot = Callable[[AsyncWebClient, Budget], AbstractAsyncContextManager[BotCalls]]
"""Opens a bot that calls Slack with that client, within that shared rate budget."""


def run_slack_bot(settings: Settings) -> int:
    """Serve until SIGINT or SIGTERM, and return the exit code. Wrong settings are reported before anything starts."""
    begin_start(settings)
    check_tokens(settings)
    channels = load_channels(settings.slack_channels_file)
    with listen(settings.slack_host, settings.slack_port) as listener:
        authentication = asyncio.run(authenticate(settings, library_log()))
        store = open_store(settings, on_lost=end_process)
        limits = ConnectionLimits.of(settings)
        try:
            if isinstance(store, SharedBotStore) and not become_active(
                store, listener, limits, lambda: _print(_standby_line(settings, store, listener))
            ):
                return 0
            app = create_slack_app(
                settings,
                authentication,
                channels,
                store,
                lambda client, budget: _bot(settings, client, store, channels, budget),
            )
            line = _ready_line(settings, authentication.identity, listener)
            return run(app, listener, lambda: _print(line), limits)
        finally:
            store.close()


def create_slack_app(
    settings: Settings, authentication: Authentication, channels: Channels, store: BotStore, bot_with: OpenBot
) -> Starlette:
    """The bot as an ASGI app. It runs within the app's lifespan."""
    log, identity = library_log(), authentication.identity
    bot_token, app_token, secret = (
        token.get_secret_value() if token else ""
        for token in (settings.slack_bot_token, settings.slack_app_token, settings.slack_signing_secret)
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # The stack closes in reverse order: new requests, then background work, then the bot.
        async with AsyncExitStack() as stack:
            if isinstance(store, SharedBotStore):
                await stack.enter_async_context(watched(store))
            client = await stack.enter_async_context(web_client(bot_token, settings.slack_api_url))
            clock = SystemClock()
            budget = Budget(clock)
            bot = await stack.enter_async_context(bot_with(client, budget))
            paced = PacedClient(client, budget, clock)
            context = ListenerContext(bot, store, channels, paced, identity, settings.slack_command, clock)
            stack.push_async_callback(context.background.finish, FINISH_SECONDS)
            app.state.bolt = bolt = build_app(context, secret, log)
            if app_token:
                connection = SocketModeConnection(bolt, app_token, log, address=authentication.address)
                app.state.connection = await stack.enter_async_context(connection)
            yield

    async def is_ready() -> bool:
        return not app_token or await served.state.connection.ready()

    # Requests over HTTP are accepted only without Socket Mode, because only then the signing secret is set.
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


def _ready_line(settings: Settings, identity: Identity, listener: socket.socket) -> str:
    mode = "Socket Mode" if settings.slack_app_token else "HTTP"
    return (
        f"Slack bot is ready at {_address(settings, listener)} ({mode}), workspace {identity.team_name}, "
        f"supervisor {settings.supervisor_url}"
    )


def _standby_line(settings: Settings, store: SharedBotStore, listener: socket.socket) -> str:
    return (
        f"Slack bot is on standby at {_address(settings, listener)}: another bot uses {store.place}. This one takes "
        "over when the other is gone."
    )


def _address(settings: Settings, listener: socket.socket) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.slack_host, settings.slack_host)
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
