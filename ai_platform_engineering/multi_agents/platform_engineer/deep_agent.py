"""The multi-agent system: builds the supervisor's graph from the registry.

Every enabled agent becomes one sub-agent of the graph: in-process with its MCP tools, or a node that calls its remote
A2A server. The graph is rebuilt when an agent's tools or description change; conversations are in the checkpointer, so
they continue. No code of an agent is imported here: manifests name it and the MCP layer loads it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

from deepagents.backends import StateBackend
from deepagents.middleware.subagents import CompiledSubAgent, SubAgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from pydantic import BaseModel, ConfigDict, Field

from ai_platform_engineering.compat.agent_middleware import AGENT_ARGUMENT, DELEGATION_TOOL
from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.graphs.agent_graph import PRIVATE_STATE, Graph, agent_graph
from ai_platform_engineering.graphs.agent_models import ModelFactory, UnstreamedTurns, model_for
from ai_platform_engineering.graphs.approval_gate import ApprovalGate
from ai_platform_engineering.graphs.approval_policy import CallAllowed
from ai_platform_engineering.graphs.coroutine_tool import CoroutineTool
from ai_platform_engineering.graphs.local_agent import LocalAgent, local_agent_graph
from ai_platform_engineering.graphs.remote_agent import RemoteAgent
from ai_platform_engineering.graphs.requester import current_requester
from ai_platform_engineering.graphs.skills import skills
from ai_platform_engineering.graphs.skills_offer import SkillOffers
from ai_platform_engineering.graphs.untrusted import UntrustedRules
from ai_platform_engineering.knowledge_bases.rag.knowledge_base import KnowledgeBase
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.multi_agents.agent_checks import offline_warning
from ai_platform_engineering.multi_agents.agent_registry import AgentEntry, AgentRegistry
from ai_platform_engineering.multi_agents.placement import is_distributed, parse_distributed
from ai_platform_engineering.multi_agents.platform_engineer.channel_instructions import ChannelInstructions
from ai_platform_engineering.multi_agents.platform_engineer.knowledge_budget import KnowledgeBudget
from ai_platform_engineering.multi_agents.platform_engineer.memories.notes import OWNER_KEY, memory_notes
from ai_platform_engineering.multi_agents.platform_engineer.prompts import (
    AgentLine,
    delegation_description,
    supervisor_prompt,
)
from ai_platform_engineering.multi_agents.platform_engineer.rag_tools import (
    KNOWLEDGE_BASE,
    KNOWLEDGE_SERVER,
    is_product_text,
    knowledge_servers,
    limit_tools,
)
from ai_platform_engineering.multi_agents.platform_engineer.workflows.driver import WorkflowDriver
from ai_platform_engineering.multi_agents.platform_engineer.workflows.loader import (
    known_workflows,
    ready_workflows,
    workflow_lines,
    workflow_offers,
)
from ai_platform_engineering.multi_agents.platform_engineer.workflows.progress import WORKFLOW_KEY
from ai_platform_engineering.policy.decisions import PrincipalPolicy
from ai_platform_engineering.policy.loading import load_policy
from ai_platform_engineering.runs.plan import PLAN_TOOL
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.storage.memories.memories import Memories
from ai_platform_engineering.utils.a2a_common.a2a_remote_agent_connect import A2ARemoteAgentConnectTool
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.access_tokens import OwnBearer
from ai_platform_engineering.utils.checkpointer import MemorySaver

logger = logging.getLogger(__name__)


def _get_distributed_agents(settings: Settings | None = None) -> set[str]:
    """The agents that `DISTRIBUTED_AGENTS` or `DISTRIBUTED_MODE` places remotely; `{"__all__"}` for all of them."""
    settings = settings or load_settings()
    return set(parse_distributed(settings.distributed_agents, settings.distributed_mode))


def _agent_is_distributed(name: str, distributed: Iterable[str]) -> bool:
    return is_distributed(name, distributed)


class PlanItem(BaseModel):
    model_config = ConfigDict(extra="ignore")

    content: str = Field(min_length=1, max_length=200, description="What is done in this step, a few words.")
    agent: str | None = Field(None, description="The agent that does it; left out for your own work.")
    status: Literal["pending", "in_progress", "completed", "failed"] = "pending"


class PlanArguments(BaseModel):
    title: str = Field("", max_length=120, description="The whole request in a few words.")
    steps: list[PlanItem] = Field(min_length=1, max_length=20, description="All steps, in order.")


def plan_tool() -> BaseTool:
    """The tool with which the supervisor's model writes its plan. `runs/plan` turns its calls into plan events."""
    return CoroutineTool.from_function(
        coroutine=_write_todos,
        name=PLAN_TOOL,
        description="Write the plan, or write it again as a whole when it changes. People see it while you work.",
        args_schema=PlanArguments,
    )


async def _write_todos(title: str, steps: list[PlanItem]) -> str:
    return f"The plan has {len(steps)} step{'s' if len(steps) != 1 else ''}. Go on with the work."


@dataclass(frozen=True, slots=True)
class SupervisorView:
    """The agents and workflows that some callers do not see."""

    hidden_agents: frozenset[str] = frozenset()
    hidden_workflows: frozenset[str] = frozenset()


_ALL: Final = SupervisorView()
_MAX_VIEWS: Final = 100
"""Views with a graph in memory, besides that of everything. Building a graph takes milliseconds."""


class PlatformEngineerDeepAgent:
    """The supervisor and its agents. Call `start` before use and `aclose` after."""

    def __init__(
        self,
        settings: Settings,
        registry: AgentRegistry | None = None,
        *,
        models: ModelFactory = model_for,
    ) -> None:
        self.settings = settings
        self.registry = registry or AgentRegistry.load(settings)
        self.distributed_mode = bool(self.registry.remote())
        self.offers = workflow_offers(known_workflows(settings), self.registry.entries)
        self.workflows = ready_workflows(self.offers)
        self.knowledge = KnowledgeBase(settings)
        self.policy = load_policy(settings)
        self.skills = SkillCatalog(settings, policy=self.policy)
        self.mcp = McpServers(
            settings, requester=current_requester, factory_arguments={KNOWLEDGE_SERVER: self.knowledge}
        )
        self.bearer = OwnBearer(settings)
        self._models = models
        self._checkpointer: BaseCheckpointSaver[Any] | None = None
        self._memories: Memories | None = None
        self._connections: dict[str, A2ARemoteAgentConnectTool] = {}
        self._sub_agents: dict[str, CompiledSubAgent] = {}
        self._graphs: dict[SupervisorView, Graph] = {}
        self._watch: asyncio.Task[None] | None = None

    @property
    def graph(self) -> Graph:
        """The current graph with all agents and workflows. A run keeps the graph it started with."""
        return self.graph_for(None)

    def graph_for(self, context: RequestContext | None) -> Graph:
        """The current graph with what the caller may see. Callers who see the same agents and workflows share one."""
        if not self._graphs:
            raise RuntimeError("the supervisor has not been started")
        view = _ALL if context is None or context.policy is None else self._view(context.policy)
        graph = self._graphs.get(view)
        if graph is None:
            if len(self._graphs) > _MAX_VIEWS:
                self._graphs = {_ALL: self._graphs[_ALL]}
            graph = self._graphs[view] = self._build(view)
        return graph

    def _view(self, policy: PrincipalPolicy) -> SupervisorView:
        agents = policy.hidden("agents", (entry.name for entry in self.registry.enabled()))
        workflows = frozenset(
            name
            for name, workflow in self.workflows.items()
            if not policy.sees("workflows", name) or agents & {step.agent for step in workflow.steps}
        )
        return SupervisorView(agents, workflows)

    async def start(
        self, checkpointer: BaseCheckpointSaver[Any] | None = None, memories: Memories | None = None
    ) -> None:
        """Start the agents. Without a checkpointer, conversations are in memory; without memories, they are off."""
        if checkpointer is None and not self.settings.langgraph_dev:
            checkpointer = MemorySaver(self.settings.event_log_max_tasks)
        self._checkpointer = checkpointer
        self._memories = memories
        if warning := offline_warning(self.settings, self.registry.local()):
            logger.warning("%s", warning)
        servers = {entry.name: entry.servers() for entry in self.registry.local()} | knowledge_servers(self.settings)
        await asyncio.gather(
            self.mcp.start(servers, deadline=self.settings.mcp_start_timeout),
            self.registry.check(),
            self.skills.start(),
        )
        self._replace_graphs()
        self.mcp.on_change(self._rebuild)
        self._watch = asyncio.create_task(self.registry.watch(self._rebuild), name="registry-watch")

    async def aclose(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch
        await self.registry.aclose()
        await self.mcp.aclose()
        await self.knowledge.aclose()
        await self.skills.aclose()
        for connection in self._connections.values():
            await connection.aclose()

    async def cancel_remote(self, tasks: Iterable[tuple[str, str]], context: RequestContext) -> None:
        """Cancel tasks of remote agents, given as (agent, task id)."""
        known = [(self._connections[agent], task_id) for agent, task_id in tasks if agent in self._connections]
        await asyncio.gather(*(connection.cancel(task_id, context) for connection, task_id in known))

    def _rebuild(self, agent: str) -> None:
        logger.info("%s: changed; the next request uses the new graph", agent)
        self._replace_graphs()

    def _replace_graphs(self) -> None:
        self._sub_agents = {entry.name: self._sub_agent(entry) for entry in self.registry.enabled()}
        self._graphs = {_ALL: self._build(_ALL)}

    def _build(self, view: SupervisorView) -> Graph:
        entries = [entry for entry in self.registry.enabled() if entry.name not in view.hidden_agents]
        workflows = {name: each for name, each in self.workflows.items() if name not in view.hidden_workflows}
        lines = [self._line(entry) for entry in entries]
        sub_agents = [self._sub_agents[entry.name] for entry in entries]
        knowledge = limit_tools(self.mcp.tools(KNOWLEDGE_BASE), self.settings)
        model = self._models(self.settings, None)
        return agent_graph(
            self.settings,
            model,
            [plan_tool(), *knowledge],
            supervisor_prompt(lines, workflow_lines(workflows.values()), knowledge, self.mcp.problem(KNOWLEDGE_BASE)),
            name=SUPERVISOR,
            middleware=[
                *self._delegation(lines, sub_agents),
                # The supervisor's own tools only read, or change the memories of the person who asks. They need
                # approval only after untrusted text. The gate stores the approvals for the rest of a conversation.
                ApprovalGate(
                    SUPERVISOR,
                    lambda _tool, _args: CallAllowed(),
                    title="The supervisor",
                    untrusted=UntrustedRules.of(self.settings),
                ),
                WorkflowDriver(workflows),
                UnstreamedTurns(model, inner=False),
                *skills(SkillOffers(self.skills, self.settings, SUPERVISOR), self.settings, commands=True),
                *memory_notes(self._memories),
                KnowledgeBudget({tool.name: tool.max_calls for tool in knowledge}),
                ChannelInstructions(),
            ],
            agents=[entry.name for entry in entries],
            trusts=self._trusts,
            checkpointer=self._checkpointer,
        )

    def _trusts(self, request: ToolCallRequest, text: str) -> bool:
        name, arguments = request.tool_call["name"], request.tool_call["args"]
        if name != DELEGATION_TOOL:
            return is_product_text(name, arguments, text)
        entry = self.registry.entry(str(arguments.get(AGENT_ARGUMENT)))
        if entry is None or entry.where == "in-process":
            return entry is None or entry.sandboxed
        # The card of an agent is its own statement, so this process must expect the sandbox, too.
        connection = self._connections.get(entry.name)
        has_sandbox = entry.manifest is not None and entry.manifest.sandbox is not None
        return self.registry.sandbox_on and has_sandbox and connection is not None and connection.is_sandbox

    def _delegation(self, lines: list[AgentLine], sub_agents: list[CompiledSubAgent]) -> Iterator[SubAgentMiddleware]:
        if sub_agents:
            delegation = SubAgentMiddleware(
                backend=StateBackend(),
                subagents=sub_agents,
                task_description=delegation_description(lines),
                private_state_keys=PRIVATE_STATE | {WORKFLOW_KEY, OWNER_KEY},
            )
            delegation.tools = [
                CoroutineTool.of(tool) if isinstance(tool, StructuredTool) else tool for tool in delegation.tools
            ]
            yield delegation

    def _sub_agent(self, entry: AgentEntry) -> CompiledSubAgent:
        runnable = self._remote(entry) if entry.where == "remote" else self._local(entry)
        return {"name": entry.name, "description": self.registry.description(entry.name), "runnable": runnable}

    def _local(self, entry: AgentEntry) -> LocalAgent:
        if entry.manifest is None:
            raise ValueError(f"{entry.name} has no manifest and cannot run in-process")
        graph = local_agent_graph(
            self.settings, entry.manifest, self.mcp, self._models, sandboxed=entry.sandboxed, catalog=self.skills
        )
        return LocalAgent(graph)

    def _remote(self, entry: AgentEntry) -> RemoteAgent:
        connection = self._connections.get(entry.name)
        if connection is None:
            connection = A2ARemoteAgentConnectTool(
                entry.name,
                entry.address or "",
                self.settings,
                self.bearer,
                needs_user_token=entry.manifest is not None and entry.manifest.exchanges_tokens,
            )
            self._connections[entry.name] = connection
        names = entry.manifest.skills if entry.manifest else ()
        return RemoteAgent(connection, SkillOffers(self.skills, self.settings, entry.name, names) if names else None)

    def _line(self, entry: AgentEntry) -> AgentLine:
        keywords = tuple(entry.manifest.keywords) if entry.manifest else ()
        problem = self.mcp.problem(entry.name) if entry.where == "in-process" else None
        return AgentLine(entry.name, self.registry.description(entry.name), keywords, problem)


AIPlatformEngineerMAS = PlatformEngineerDeepAgent
