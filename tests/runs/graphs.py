"""Small real graphs with scripted models, for tests of the translation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deepagents.backends import StateBackend
from deepagents.middleware.subagents import SubAgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from ai_platform_engineering.events import Event
from ai_platform_engineering.graphs.agent_graph import PRIVATE_STATE, Graph, agent_graph
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import plan_tool
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import GraphRun
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext


def settings_of(**environ: str) -> Settings:
    return load_settings(environ, env_file=None)


def agent(name: str, model: BaseChatModel, tools: Sequence[BaseTool] = (), **environ: str) -> Graph:
    return agent_graph(settings_of(**environ), model, tools, f"You are {name}.", name=name)


def supervisor(
    model: BaseChatModel, agents: Mapping[str, Any], tools: Sequence[BaseTool] = (), **environ: str
) -> Graph:
    sub_agents = [{"name": name, "description": name, "runnable": graph} for name, graph in agents.items()]
    delegation = SubAgentMiddleware(
        backend=StateBackend(),
        subagents=sub_agents,  # type: ignore[arg-type]
        task_description="{available_agents}",
        private_state_keys=PRIVATE_STATE,
    )
    return agent_graph(
        settings_of(**environ),
        model,
        [plan_tool(), *tools],
        "You supervise.",
        name="supervisor",
        middleware=[delegation],
        agents=list(agents),
        checkpointer=InMemorySaver(),
    )


def context(number: int = 1, **options: Any) -> RequestContext:
    return RequestContext(f"context-{number}", f"task-{number}", f"trace-{number}", **options)


async def events_of(graph: Graph, question: str = "q", ctx: RequestContext | None = None) -> list[Event]:
    run = GraphRun(graph, "supervisor", question, ctx or context())
    return [event async for event in run.events()]
