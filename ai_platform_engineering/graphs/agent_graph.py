"""The graph of one agent: a model, its tools, and the middleware that every agent has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from ai_platform_engineering.compat.agent_middleware import check_delegation_tool
from ai_platform_engineering.compat.hook_traces import trace_hooks_on_demand
from ai_platform_engineering.compat.langgraph import check_nodes
from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.graphs.ask_tool import ask_tool
from ai_platform_engineering.graphs.context_limit import ContextLimit
from ai_platform_engineering.graphs.history import History
from ai_platform_engineering.graphs.last_turn import LastTurn
from ai_platform_engineering.graphs.long_results import STATE_KEY, LongResults
from ai_platform_engineering.graphs.metered_calls import MeteredCalls
from ai_platform_engineering.graphs.recorded_effects import Changes, RecordedEffects
from ai_platform_engineering.graphs.refused_calls import CheckedTurns, RefusedCalls
from ai_platform_engineering.graphs.tool_guard import ToolGuard
from ai_platform_engineering.graphs.tool_schemas import ToolSchemas
from ai_platform_engineering.graphs.untrusted import PROMPT_NOTE, Trusts, UntrustedText, trust_metadata
from ai_platform_engineering.llm import is_offline_model, reads_plain_results
from ai_platform_engineering.llm.context_window import context_window
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.redact import KnownSecrets

Graph = CompiledStateGraph[Any, Any, Any, Any]
Middleware = AgentMiddleware[Any, Any, Any]

PRIVATE_STATE = frozenset({"remaining_steps", STATE_KEY})
"""State keys that the delegation tool must not copy from the supervisor's graph into an agent's graph."""


def agent_graph(  # noqa: PLR0913 - the parts of a graph
    settings: Settings,
    model: BaseChatModel,
    tools: Sequence[BaseTool],
    prompt: str,
    *,
    name: str,
    middleware: Sequence[Middleware] = (),
    agents: Sequence[str] = (),
    changes: Changes | None = None,
    trusts: Trusts = trust_metadata,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
) -> Graph:
    """Compile the graph with its own step limit: LangGraph does not pass a caller's limit on to a graph inside a
    tool. Tool calls for which `changes` is true are recorded, so that a resumed run does not repeat them. `trusts`
    decides which results have no text that others can write."""
    schemas = ToolSchemas()
    delimits = not reads_plain_results(model)
    # The first is the outermost.
    layers: list[Middleware] = [
        RefusedCalls(),
        *middleware,
        *_context_limit(settings, model, name, schemas),
        History(),
        LastTurn(),
        UntrustedText(trusts, has_agents=bool(agents), delimits=delimits),
        LongResults(settings.tool_result_max_chars),
        *([RecordedEffects(name, changes)] if changes else []),
        ToolGuard(agents=agents, secrets=KnownSecrets.of(settings)),
        schemas,
        CheckedTurns(),
        MeteredCalls(),
    ]
    trace_hooks_on_demand()
    graph: Graph = create_agent(
        model,
        [*tools, ask_tool(name)],
        system_prompt=f"{prompt.rstrip()}\n\n{PROMPT_NOTE}" if delimits else prompt,
        middleware=layers,
        context_schema=RequestContext,
        checkpointer=checkpointer,
        name=name,
    )
    check_nodes(graph.nodes)
    if agents:
        check_delegation_tool(tool for layer in layers for tool in getattr(layer, "tools", ()))
    return graph.with_config({"recursion_limit": settings.langgraph_recursion_limit})


def _context_limit(settings: Settings, model: BaseChatModel, name: str, schemas: ToolSchemas) -> Iterator[ContextLimit]:
    """The offline model has no context window."""
    if not is_offline_model(model):
        agent = None if name == SUPERVISOR else name
        yield ContextLimit(name, context_window(settings, agent, model), schemas.chars)


def with_prompt_section(prompt: SystemMessage | None, section: str) -> SystemMessage:
    """The system prompt with one more section, for one call of the model."""
    return SystemMessage(f"{prompt.text}\n\n{section}" if prompt is not None else section)
