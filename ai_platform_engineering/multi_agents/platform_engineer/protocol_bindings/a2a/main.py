"""The supervisor's app: routes for A2A, health, tools, workflows and feedback, the REST API of the knowledge base and,
at the root, that of the skills; and the web page.

`app` is created from the environment on first access.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from a2a.types.a2a_pb2 import AgentSkill
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ai_platform_engineering.audit.log import NO_AUDIT, Audit
from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.identity.principal import caller_in
from ai_platform_engineering.installation import product_version
from ai_platform_engineering.knowledge_bases.rag.rest import lazy_rest
from ai_platform_engineering.multi_agents.platform_engineer.about import about_route
from ai_platform_engineering.multi_agents.platform_engineer.agent_rows import agents_route, all_tools
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.feedback.routes import FeedbackRoutes
from ai_platform_engineering.multi_agents.platform_engineer.memories.routes import MemoryRoutes
from ai_platform_engineering.multi_agents.platform_engineer.policy_changes import record_policy_change
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.agent import (
    AIPlatformEngineerA2ABinding,
)
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.agent_executor import (
    AIPlatformEngineerA2AExecutor,
)
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.skills_middleware.card import CardWithSkills
from ai_platform_engineering.skills_middleware.rest.mount import SkillsMount
from ai_platform_engineering.storage.audit.stores import audit_log
from ai_platform_engineering.storage.memories.memories import Memories
from ai_platform_engineering.storage.memories.stores import memories_for
from ai_platform_engineering.ui.page import Page
from ai_platform_engineering.utils.a2a_common.server.a2a_app import metrics_route, with_a2a, with_sign_in
from ai_platform_engineering.utils.a2a_common.server.a2a_server import Degraded, agent_card
from ai_platform_engineering.utils.a2a_common.server.auth import security_schemes
from ai_platform_engineering.utils.a2a_common.server.log_maintenance import Forget, event_log
from ai_platform_engineering.utils.a2a_common.server.metrics import RunMetrics
from ai_platform_engineering.utils.a2a_common.server.usage_ledger import usage_ledger
from ai_platform_engineering.utils.a2a_common.server.worker_metrics import WorkerMetrics
from ai_platform_engineering.utils.checkpointer import ConversationSaver, FallbackSaver, checkpointer_for

_DESCRIPTION = "Plans platform-engineering requests and delegates them to domain agents."
_KNOWLEDGE_SKILL = AgentSkill(
    id="knowledge_base",
    name="Knowledge base",
    description="Answers questions from the documents that the team has ingested, with their sources.",
    tags=["knowledge", "documentation", "runbooks", "how-to"],
    examples=["How do I run Argo CD as a remote agent?"],
)


def create_app(
    settings: Settings, mas: PlatformEngineerDeepAgent | None = None, workers: WorkerMetrics | None = None
) -> Starlette:
    """The supervisor as an ASGI app. Its lifespan starts and stops the agents. `workers` is for a server with several
    processes."""
    supervisor = mas or PlatformEngineerDeepAgent(settings)
    metrics = RunMetrics([SUPERVISOR, *(entry.name for entry in supervisor.registry.entries)])
    log = event_log(settings, timer=metrics)
    log.subscribe(metrics.observe_log)
    card = agent_card(
        name="AI Platform Engineer",
        description=_DESCRIPTION,
        url=settings.public_url,
        version=product_version(),
        schemes=security_schemes(settings),
        skills=_skills(supervisor),
        keeps_tasks=settings.event_log != "memory",
    )
    binding = AIPlatformEngineerA2ABinding(supervisor, metrics.model_turn)
    audit = audit_log(settings)
    recorded: Audit = audit or NO_AUDIT
    usage = usage_ledger(settings, SUPERVISOR, supervisor.policy.groups_of)
    executor = AIPlatformEngineerA2AExecutor(binding, log, settings, metrics, recorded, usage)
    feedback = FeedbackRoutes(settings)
    page = Page()

    conversations: FallbackSaver | None = None
    memories: Memories | None = None

    def degraded() -> Degraded | None:
        unstored = conversations.problem if conversations is not None else None
        problems = [*filter(None, (unstored, memories.problem if memories is not None else None))]
        serves = unstored is None or not settings.require_persistence
        return Degraded(" ".join(problems), serves) if problems else None

    @asynccontextmanager
    async def running() -> AsyncIterator[Forget | None]:
        nonlocal conversations, memories
        async with (
            workers.opened(metrics, app.state.now) if workers is not None else nullcontext(),
            checkpointer_for(settings, timer=metrics, fence=log.check_epoch) as checkpointer,
            memories_for(settings) as memories,
            feedback.running(),
        ):
            conversations = checkpointer if isinstance(checkpointer, FallbackSaver) else None
            await supervisor.start(checkpointer, memories)
            await asyncio.to_thread(record_policy_change, settings, recorded)
            try:
                yield checkpointer.forget if isinstance(checkpointer, ConversationSaver) else None
            finally:
                await supervisor.aclose()

    app = with_a2a(
        executor,
        log,
        with_sign_in(CardWithSkills(card, supervisor.skills), settings),
        settings,
        running=running,
        tools=lambda caller: all_tools(supervisor, caller),
        release=executor.release,
        audit=audit,
        usage=usage,
    )
    app.state.degraded = degraded
    app.state.public_paths = page.paths
    app.router.routes.append(metrics_route(metrics, SUPERVISOR, app.state.now, workers))
    app.router.routes.append(_workflow_route(supervisor))
    app.router.routes.append(agents_route(supervisor))
    app.router.routes.append(about_route(supervisor, app.state.problem))
    app.router.routes.extend(feedback.routes())
    if settings.langgraph_store_type is not None:
        app.router.routes.extend(MemoryRoutes(settings, lambda: memories, recorded).routes())
    if settings.enable_rag and settings.rag_server_url is None:
        app.mount("/rag", lazy_rest(supervisor.knowledge, supervisor.policy))
    app.router.routes.extend(page.routes())
    app.router.routes.append(SkillsMount(supervisor.skills, settings, recorded))
    return app


def _workflow_route(supervisor: PlatformEngineerDeepAgent) -> Route:
    """`GET /workflows`: the workflows that the caller may see, with their inputs and steps, and the reason why one
    cannot be started."""

    async def list_workflows(request: Request) -> Response:
        policy = supervisor.policy.of(caller_in(request.scope.get("state")))
        visible = [offer for offer in supervisor.offers if policy.sees("workflows", offer.workflow.name)]
        return JSONResponse({"workflows": [offer.details() for offer in visible]})

    return Route("/workflows", list_workflows, methods=["GET"])


def _skills(supervisor: PlatformEngineerDeepAgent) -> list[AgentSkill]:
    agents = [
        AgentSkill(
            id=entry.name,
            name=entry.manifest.title if entry.manifest else entry.name,
            description=supervisor.registry.description(entry.name),
            tags=list(entry.manifest.keywords if entry.manifest else ()) or [entry.name],
            examples=list(entry.manifest.examples) if entry.manifest else [],
        )
        for entry in supervisor.registry.enabled()
    ]
    return [*agents, _KNOWLEDGE_SKILL] if supervisor.settings.enable_rag else agents


def __getattr__(name: str) -> Any:
    if name == "app":
        return create_app(load_settings())
    raise AttributeError(name)
