"""An A2A server as an ASGI app: routes, middleware, start and stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from typing import Any

from a2a.types.a2a_pb2 import AgentCard
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ai_platform_engineering.audit.access import AccessAudit
from ai_platform_engineering.audit.log import NO_AUDIT, AuditLog
from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.runs.outcomes import InterruptedRun
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.audit.stores import audit_record
from ai_platform_engineering.storage.event_log.event_log import EventLog
from ai_platform_engineering.utils.a2a_common.server.a2a_server import (
    Degraded,
    a2a_routes,
    health_routes,
    request_handler,
)
from ai_platform_engineering.utils.a2a_common.server.approval_route import approval_route
from ai_platform_engineering.utils.a2a_common.server.audit_routes import audit_route
from ai_platform_engineering.utils.a2a_common.server.auth import METRICS_PATH, auth_middleware, signs_in_at_provider
from ai_platform_engineering.utils.a2a_common.server.browser_checks import host_middleware, origin_middleware
from ai_platform_engineering.utils.a2a_common.server.card import CardWithFlows, ChangingCard
from ai_platform_engineering.utils.a2a_common.server.conversations import ConversationRoutes
from ai_platform_engineering.utils.a2a_common.server.log_maintenance import (
    Forget,
    Release,
    maintained,
    release_nothing,
)
from ai_platform_engineering.utils.a2a_common.server.metrics import RunMetrics, Scrape, ServerState
from ai_platform_engineering.utils.a2a_common.server.push_configs import open_receivers
from ai_platform_engineering.utils.a2a_common.server.sign_in import SessionRoutes, terminal_sign_in
from ai_platform_engineering.utils.a2a_common.server.usage_ledger import UsageLedger
from ai_platform_engineering.utils.a2a_common.server.usage_route import usage_route
from ai_platform_engineering.utils.a2a_common.server.work import Executor
from ai_platform_engineering.utils.a2a_common.server.worker_metrics import WorkerMetrics
from ai_platform_engineering.utils.keys import Place

Rows = Sequence[Mapping[str, Any]]


def with_a2a(  # noqa: PLR0913 - the parts of a server
    executor: Executor,
    log: EventLog,
    card: AgentCard | ChangingCard,
    settings: Settings,
    *,
    running: Callable[[], AbstractAsyncContextManager[Forget | None]],
    tools: Callable[[Principal], Rows | Awaitable[Rows]],
    release: Release = release_nothing,
    agent: str = SUPERVISOR,
    audit: AuditLog | None = None,
    usage: UsageLedger | None = None,
) -> Starlette:
    """An app that serves `executor` and `log`. `running` is entered for as long as the app runs.

    `running` may yield a function that deletes the checkpoints of conversations: it is called for those whose tasks
    were pruned or deleted.
    `release` is called for runs that were ended from outside: by a kill, or because a form expired.
    `app.state.degraded` may be replaced by a function that says whether the server works only in part.
    `app.state.problem()` is the reason why it works only in part, None if it works.
    `app.state.public_paths` may be set to paths that can be read without authentication.
    `app.state.stop_work(grace)` ends all runs; a server calls it while callers still get responses.
    `audit` and `usage` are open while the app runs.
    `app.state.now()` is the state of the server for `/metrics`.
    """
    plain = card if isinstance(card, AgentCard) else card.plain
    access = AccessAudit(audit or NO_AUDIT)
    receivers = open_receivers(settings, agent)
    handler = request_handler(
        executor, log, plain, settings, agent=agent, receivers=receivers, audit=access, usage=usage
    )
    started = False
    forget_checkpoints: Forget = _forget_nothing

    async def released(run: InterruptedRun, for_good: bool) -> None:
        await release(run, for_good)
        await handler.work.release(run.context_id)

    def with_receivers(forget: Forget) -> Forget:
        async def forget_pruned(conversations: Iterable[str]) -> None:
            await forget(conversations)
            await handler.pushes.prune()

        return forget_pruned

    def resumes() -> bool:
        # Where several processes share the work, unfinished tasks may run in another one.
        return executor.resumable or handler.work.every is not None

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        nonlocal started, forget_checkpoints
        async with (
            audit.opened() if audit is not None else nullcontext(),
            usage.opened() if usage is not None else nullcontext(),
            log.opened(),
            handler.pushes.running(),
            running() as forget,
            maintained(
                log,
                settings,
                agent,
                with_receivers(forget or _forget_nothing),
                released,
                resumes=resumes(),
                every=handler.work.every,
            ),
            handler.work.opened(),
        ):
            if resumes():
                await handler.work.recover()
            started = True
            forget_checkpoints = forget or _forget_nothing
            try:
                yield
            finally:
                started = False
                await handler.aclose()

    def degraded() -> Degraded | None:
        if log.problem is not None:  # no request can be served without tasks
            return Degraded(log.problem, serves=False)
        problem: Degraded | None = app.state.degraded()
        if audit is None or audit.problem is None:
            return problem
        if problem is None:
            return Degraded(audit.problem)
        return replace(problem, reason=f"{problem.reason} {audit.problem}")

    def problem() -> str | None:
        found = degraded()
        return None if found is None else found.reason

    def now() -> ServerState:
        work = handler.work
        return ServerState(
            work.running,
            work.queued,
            handler.streams.count,
            degraded=degraded() is not None,
            audit=audit.state() if audit is not None else None,
        )

    place: Place = "front" if agent == SUPERVISOR else "behind"
    routes = [
        *health_routes(lambda: started and not handler.stopping, tools, degraded),
        *a2a_routes(handler, card, settings),
        approval_route(log),
    ]
    if agent == SUPERVISOR:
        routes += ConversationRoutes(handler, lambda: forget_checkpoints, access).routes()
        routes += SessionRoutes(settings, access).routes()
        routes += [audit_route(lambda: audit_record(settings, agent), access)] if audit is not None else []
        routes += [usage_route(usage)] if usage is not None else []
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[
            *host_middleware(settings),
            *origin_middleware(settings),
            *auth_middleware(settings, place, agent, access),
        ],
    )
    app.state.stop_work = handler.stop_work
    app.state.now = now
    app.state.degraded = lambda: None
    app.state.problem = problem
    app.state.public_paths = frozenset()
    return app


def with_sign_in(card: AgentCard | ChangingCard, settings: Settings) -> AgentCard | ChangingCard:
    """The card, with the flows of the provider if people can sign in there."""
    if terminal_sign_in(settings) is None and not signs_in_at_provider(settings):
        return card
    # Imported on demand: cryptography is slow to load.
    from ai_platform_engineering.utils.a2a_common.server.issuer import Issuer  # noqa: PLC0415

    issuer = Issuer.of(settings)
    return card if issuer is None else CardWithFlows(card, issuer, settings.oidc_scopes)


def metrics_route(
    metrics: RunMetrics, agent: str, state: Callable[[], ServerState], workers: WorkerMetrics | None = None
) -> Route:
    """The route `/metrics` of the server of `agent`. `state` is called at every scrape. `workers` is for a server with
    several processes."""

    async def get(_request: Request) -> Response:
        # In a thread, because the import would delay the streams of others.
        render = await asyncio.to_thread(_page_renderer)
        scrape = Scrape(metrics, state()) if workers is None else await workers.scrape()
        return render(scrape, agent)

    return Route(METRICS_PATH, get, methods=["GET"])


def _page_renderer() -> Callable[[Scrape, str], Response]:
    # Imported on demand: prometheus_client would delay every start.
    from ai_platform_engineering.utils.a2a_common.server.metrics_page import render  # noqa: PLC0415

    return render


async def _forget_nothing(_conversations: Iterable[str]) -> None:
    pass


def tool_rows(agent: str, mcp: McpServers) -> Rows:
    """The rows of `/tools` for one agent."""
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
