"""Serves one agent alone, with the same graph and the same executor that it has inside the supervisor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from a2a.types.a2a_pb2 import AgentSkill
from langgraph.checkpoint.base import BaseCheckpointSaver
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ai_platform_engineering.audit.log import NO_AUDIT
from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.graphs.agent_models import ModelFactory, model_for
from ai_platform_engineering.graphs.local_agent import local_agent_graph
from ai_platform_engineering.graphs.requester import current_requester
from ai_platform_engineering.installation import product_version
from ai_platform_engineering.llm import is_offline_model
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.multi_agents.agent_checks import backend_problem, model_problem, offline_warning
from ai_platform_engineering.multi_agents.agent_registry import known_manifests
from ai_platform_engineering.multi_agents.placement import sandbox_is_on, standalone
from ai_platform_engineering.policy.loading import load_policy
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.storage.audit.stores import audit_log
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import BaseLangGraphAgent
from ai_platform_engineering.utils.a2a_common.server.a2a_app import metrics_route, tool_rows, with_a2a
from ai_platform_engineering.utils.a2a_common.server.a2a_server import Degraded, agent_card
from ai_platform_engineering.utils.a2a_common.server.auth import security_schemes
from ai_platform_engineering.utils.a2a_common.server.executor import RunExecutor
from ai_platform_engineering.utils.a2a_common.server.log_maintenance import Forget, event_log
from ai_platform_engineering.utils.a2a_common.server.metrics import RunMetrics
from ai_platform_engineering.utils.a2a_common.server.usage_ledger import usage_ledger
from ai_platform_engineering.utils.checkpointer import ConversationSaver, FallbackSaver, checkpointer_for

logger = logging.getLogger(__name__)


class StandaloneAgent:
    """One agent and its tools. Call `start` before use and `aclose` after."""

    def __init__(self, settings: Settings, name: str, models: ModelFactory = model_for) -> None:
        manifests = known_manifests(settings)
        self.entry = standalone(name, manifests, settings, sandbox_is_on(settings, manifests))
        self.manifest: AgentManifest = manifests[self.entry.name]
        self.mcp = McpServers(settings, requester=current_requester)
        self.skills = SkillCatalog(settings)
        self._settings = settings
        self._models = models
        self._checkpointer: BaseCheckpointSaver[Any] | None = None
        self._graph: Graph | None = None

    @property
    def graph(self) -> Graph:
        if self._graph is None:
            raise RuntimeError(f"the agent {self.entry.name} has not been started")
        return self._graph

    async def start(self, checkpointer: BaseCheckpointSaver[Any] | None = None) -> None:
        self._checkpointer = checkpointer
        if warning := offline_warning(self._settings, [self.entry]):
            logger.warning("%s", warning)
        servers = {self.entry.name: self.entry.servers()}
        await asyncio.gather(self.mcp.start(servers, deadline=self._settings.mcp_start_timeout), self.skills.start())
        self._rebuild(self.entry.name)
        self.mcp.on_change(self._rebuild)

    async def aclose(self) -> None:
        await self.mcp.aclose()
        await self.skills.aclose()

    async def problems(self) -> list[str]:
        """Problems found by a test call of the backend and a short question to the model."""
        model = self._models(self._settings, self.manifest)
        found = await asyncio.gather(
            backend_problem(self.mcp, self.entry.name, self.entry.servers()),
            *([] if is_offline_model(model) else [model_problem(model)]),
        )
        return [problem for problem in found if problem]

    def _rebuild(self, _agent: str) -> None:
        self._graph = local_agent_graph(
            self._settings,
            self.manifest,
            self.mcp,
            self._models,
            self._checkpointer,
            sandboxed=self.entry.sandboxed,
            catalog=self.skills,
            commands=True,
        )


def create_agent_app(settings: Settings, name: str, models: ModelFactory = model_for) -> Starlette:
    agent = StandaloneAgent(settings, name, models)
    manifest = agent.manifest
    metrics = RunMetrics([manifest.name])
    log = event_log(settings, manifest.name, metrics)
    log.subscribe(metrics.observe_log)
    skill = AgentSkill(
        id=manifest.name,
        name=manifest.title,
        description=manifest.description,
        tags=list(manifest.keywords) or [manifest.name],
        examples=list(manifest.examples),
    )
    card = agent_card(
        name=manifest.title,
        description=manifest.description,
        url=settings.public_url,
        version=product_version(),
        schemes=security_schemes(settings, "behind", manifest.name),
        skills=[skill],
        keeps_tasks=settings.event_log != "memory",
        sandboxed=agent.entry.sandboxed,
    )

    async def check(_request: Request) -> Response:
        return JSONResponse({"problems": await agent.problems()})

    runner = BaseLangGraphAgent(manifest.name, lambda _context: agent.graph, metrics.model_turn)
    audit = audit_log(settings, manifest.name)
    policy = load_policy(settings)
    usage = usage_ledger(settings, manifest.name, policy.groups_of)
    executor = RunExecutor(runner, log, settings, metrics, audit or NO_AUDIT, policy, usage)

    conversations: FallbackSaver | None = None

    def degraded() -> Degraded | None:
        problem = conversations.problem if conversations is not None else None
        return Degraded(problem, serves=not settings.require_persistence) if problem else None

    @asynccontextmanager
    async def running() -> AsyncIterator[Forget | None]:
        nonlocal conversations
        async with checkpointer_for(settings, manifest.name, metrics) as checkpointer:
            conversations = checkpointer if isinstance(checkpointer, FallbackSaver) else None
            await agent.start(checkpointer)
            try:
                yield checkpointer.forget if isinstance(checkpointer, ConversationSaver) else None
            finally:
                await agent.aclose()

    app = with_a2a(
        executor,
        log,
        card,
        settings,
        running=running,
        release=executor.release,
        tools=lambda _caller: tool_rows(manifest.name, agent.mcp),
        agent=manifest.name,
        audit=audit,
        usage=usage,
    )
    app.state.degraded = degraded
    app.router.routes.append(Route("/check", check, methods=["GET"]))
    app.router.routes.append(metrics_route(metrics, manifest.name, app.state.now))
    return app
