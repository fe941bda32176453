"""The supervisor's app: A2A routes first, then health, tools and workflows, then the REST of the knowledge base and,
at the root, of the skills.

`app` is made from the environment on first use.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from a2a.types.a2a_pb2 import AgentSkill
from starlette.applications import Starlette

from ai_platform_engineering.knowledge_bases.rag.rest.lazy import lazy_rest
from ai_platform_engineering.multi_agents.connectivity import remote_tools
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.feedback.routes import FeedbackDesk
from ai_platform_engineering.multi_agents.platform_engineer.knowledge import KNOWLEDGE_BASE
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.agent import (
    AIPlatformEngineerA2ABinding,
)
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.agent_executor import (
    AIPlatformEngineerA2AExecutor,
)
from ai_platform_engineering.multi_agents.platform_engineer.workflows.routes import workflow_route
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.skills_middleware.card import CardWithSkills
from ai_platform_engineering.skills_middleware.rest.mount import SkillsMount
from ai_platform_engineering.utils.a2a_common.server.a2a_app import tool_rows, with_a2a
from ai_platform_engineering.utils.a2a_common.server.a2a_server import agent_card
from ai_platform_engineering.utils.a2a_common.server.auth import security_schemes
from ai_platform_engineering.utils.a2a_common.server.upkeep import Forget, event_log
from ai_platform_engineering.utils.access_tokens import AccessTokenError
from ai_platform_engineering.utils.checkpointer import ConversationSaver, checkpointer_for
from ai_platform_engineering.version import product_version

logger = logging.getLogger(__name__)

_TOOLS_SECONDS = 2.0
_DESCRIPTION = "Plans platform-engineering requests and delegates them to domain agents."
_KNOWLEDGE_SKILL = AgentSkill(
    id="knowledge_base",
    name="Knowledge base",
    description="Answers questions from the documents that the team has ingested, with their sources.",
    tags=["knowledge", "documentation", "runbooks", "how-to"],
    examples=["How do I run Argo CD as a remote agent?"],
)


def create_app(settings: Settings, mas: PlatformEngineerDeepAgent | None = None) -> Starlette:
    """The supervisor as an ASGI app; the agents start and stop with it."""
    supervisor = mas or PlatformEngineerDeepAgent(settings)
    log = event_log(settings)
    card = agent_card(
        name="AI Platform Engineer",
        description=_DESCRIPTION,
        url=settings.public_url,
        version=product_version(),
        schemes=security_schemes(settings),
        skills=_skills(supervisor),
    )
    binding = AIPlatformEngineerA2ABinding(supervisor)
    executor = AIPlatformEngineerA2AExecutor(binding, log, settings)
    desk = FeedbackDesk(settings)

    @asynccontextmanager
    async def running() -> AsyncIterator[Forget | None]:
        async with checkpointer_for(settings) as checkpointer, desk.running():
            await supervisor.start(checkpointer)
            try:
                yield checkpointer.forget if isinstance(checkpointer, ConversationSaver) else None
            finally:
                await supervisor.aclose()

    app = with_a2a(
        executor,
        log,
        CardWithSkills(card, supervisor.skills),
        settings,
        running=running,
        tools=lambda: _tools(supervisor),
        release=executor.release,
    )
    app.router.routes.append(workflow_route(supervisor.offers))
    app.router.routes.extend(desk.routes())
    if settings.enable_rag and settings.rag_server_url is None:
        app.mount("/rag", lazy_rest(supervisor.knowledge))
    app.router.routes.append(SkillsMount(supervisor.skills, settings))
    return app


def _skills(supervisor: PlatformEngineerDeepAgent) -> list[AgentSkill]:
    agents = [
        AgentSkill(
            id=entry.name,
            name=entry.manifest.title if entry.manifest else entry.name,
            description=supervisor.registry.description(entry.name),
            tags=list(entry.manifest.keywords) if entry.manifest else [entry.name],
            examples=list(entry.manifest.examples) if entry.manifest else [],
        )
        for entry in supervisor.registry.enabled()
    ]
    return [*agents, _KNOWLEDGE_SKILL] if supervisor.settings.enable_rag else agents


async def _tools(supervisor: PlatformEngineerDeepAgent) -> list[Mapping[str, Any]]:
    """The tools of all agents, remote ones as they list them now; one that does not answer is left out."""
    registry = supervisor.registry
    here = [*(entry.name for entry in registry.local()), KNOWLEDGE_BASE]
    local = [row for name in here for row in tool_rows(name, supervisor.mcp)]
    try:
        token = await supervisor.bearer.token()
    except AccessTokenError as error:
        logger.warning("The tools of remote agents cannot be listed: %s", error)
        return local
    remote = await asyncio.gather(
        *(remote_tools(entry, registry.client, timeout=_TOOLS_SECONDS, auth_token=token) for entry in registry.remote())
    )
    listed = zip(registry.remote(), remote, strict=True)
    return [*local, *({**row, "agent": entry.name} for entry, rows in listed for row in rows or ())]


def __getattr__(name: str) -> Any:
    if name == "app":
        return create_app(load_settings())
    raise AttributeError(name)
