"""The graph of one agent: a model, its tools, and the middlewares every agent has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from ai_platform_engineering.graphs.ask_tool import ask_tool
from ai_platform_engineering.graphs.history import History
from ai_platform_engineering.graphs.joined_hooks import JoinedHooks, Member
from ai_platform_engineering.graphs.last_turn import LastTurn
from ai_platform_engineering.graphs.long_results import STATE_KEY, LongResults
from ai_platform_engineering.graphs.refused_calls import CheckedTurns, RefusedCalls
from ai_platform_engineering.graphs.tool_guard import ToolGuard
from ai_platform_engineering.graphs.tool_schemas import ToolSchemas
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext

Graph = CompiledStateGraph[Any, Any, Any, Any]

PRIVATE_STATE = frozenset({"remaining_steps", STATE_KEY})
"""What a graph keeps to itself when it hands work to another."""


def agent_graph(
    settings: Settings,
    model: BaseChatModel,
    tools: Sequence[BaseTool],
    prompt: str,
    *,
    name: str,
    middleware: Sequence[Member] = (),
    agents: Sequence[str] = (),
    checkpointer: BaseCheckpointSaver[Any] | None = None,
) -> Graph:
    """Compile the graph with its own step limit: the limit a caller passes does not reach a graph inside a tool."""
    graph: Graph = create_agent(
        model,
        [*tools, ask_tool(name)],
        system_prompt=prompt,
        middleware=[
            JoinedHooks(
                [
                    RefusedCalls(),
                    *middleware,
                    History(),
                    LastTurn(),
                    LongResults(settings.tool_result_max_chars),
                    ToolGuard(agents=agents),
                    ToolSchemas(),
                    CheckedTurns(),
                ]
            ),
        ],
        context_schema=RequestContext,
        checkpointer=checkpointer,
        name=name,
    )
    return graph.with_config({"recursion_limit": settings.langgraph_recursion_limit})
