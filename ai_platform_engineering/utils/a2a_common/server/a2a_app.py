"""An A2A server as an ASGI app: the routes, who may call them, and what starts and stops with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from a2a.server.agent_execution import AgentExecutor
from a2a.types.a2a_pb2 import AgentCard
from starlette.applications import Starlette

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.event_log.event_log import EventLog
from ai_platform_engineering.utils.a2a_common.server.a2a_server import a2a_routes, health_routes, request_handler
from ai_platform_engineering.utils.a2a_common.server.auth import auth_middleware
from ai_platform_engineering.utils.a2a_common.server.card import ChangingCard
from ai_platform_engineering.utils.a2a_common.server.hosts import host_middleware
from ai_platform_engineering.utils.a2a_common.server.origins import origin_middleware
from ai_platform_engineering.utils.a2a_common.server.upkeep import Forget, Release, kept_up, release_nothing
from ai_platform_engineering.utils.keys import Place

Rows = Sequence[Mapping[str, Any]]


def with_a2a(
    executor: AgentExecutor,
    log: EventLog,
    card: AgentCard | ChangingCard,
    settings: Settings,
    *,
    running: Callable[[], AbstractAsyncContextManager[Forget | None]],
    tools: Callable[[], Rows | Awaitable[Rows]],
    release: Release = release_nothing,
    agent: str = SUPERVISOR,
) -> Starlette:
    """An app that serves `executor` from `log` while what `running` starts is up.

    `running` may give a function that drops conversations; it is called for those whose tasks have been dropped.
    `release` is told of conversations in which nobody answered in time. `app.state.stop_work` ends the work that is
    under way: a server calls it while callers can still be answered.
    """
    plain = card if isinstance(card, AgentCard) else card.plain
    handler = request_handler(executor, log, plain, settings, agent=agent)
    started = False

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        nonlocal started
        async with log.opened(), running() as forget, kept_up(log, settings, agent, forget or _forget_nothing, release):
            started = True
            try:
                yield
            finally:
                started = False
                await handler.aclose()

    place: Place = "front" if agent == SUPERVISOR else "behind"
    routes = [*health_routes(lambda: started and not handler.stopping, tools), *a2a_routes(handler, card, settings)]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[*host_middleware(settings), *origin_middleware(settings), *auth_middleware(settings, place)],
    )
    app.state.stop_work = handler.stop_work
    return app


async def _forget_nothing(_conversations: Iterable[str]) -> None:
    pass


def tool_rows(agent: str, mcp: McpServers) -> Rows:
    """What `/tools` says of one agent."""
    return [
        {
            "agent": agent,
            "name": tool.name,
            "description": tool.description,
            "read_only": bool((tool.metadata or {}).get("read_only")),
            "destructive": bool((tool.metadata or {}).get("destructive")),
        }
        for tool in mcp.tools(agent)
    ]
