"""The graph of an agent that runs in this process with its MCP tools: inside the supervisor or on its own server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from ai_platform_engineering.graphs.agent_graph import Graph, agent_graph
from ai_platform_engineering.graphs.agent_models import ModelFactory, UnstreamedTurns, model_for
from ai_platform_engineering.graphs.approval_gate import ApprovalGate
from ai_platform_engineering.graphs.approval_policy import ApprovalPolicy
from ai_platform_engineering.graphs.skills import skills
from ai_platform_engineering.graphs.skills_offer import SkillOffers
from ai_platform_engineering.graphs.untrusted import UntrustedRules, trust_all, trust_metadata
from ai_platform_engineering.graphs.visible_tools import VisibleTools
from ai_platform_engineering.graphs.work_failures import CompletedToolsNote, SuccessCheck
from ai_platform_engineering.graphs.workflow_step import WorkflowStep
from ai_platform_engineering.llm import is_offline_model
from ai_platform_engineering.llm.finish_reasons import cut_reason
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.runs.answers import with_cut_note
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog


class LocalAgent(Runnable[Any, Any]):
    """An in-process agent as a sub-agent of the supervisor. Implements only what the delegation tool calls."""

    def __init__(self, graph: Graph) -> None:
        self.name = graph.name
        self._graph = graph

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        result: Mapping[str, Any] = await self._graph.ainvoke(input, config)
        messages = result["messages"]
        last = messages[-1] if messages else None
        if not isinstance(last, AIMessage) or (cut := cut_reason(last)) is None:
            return result
        return {**result, "messages": [*messages[:-1], AIMessage(with_cut_note(str(last.text), cut), id=last.id)]}

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> NoReturn:  # noqa: A002
        raise NotImplementedError(f"The {self.name} agent can only be awaited: call ainvoke.")


def local_agent_graph(
    settings: Settings,
    manifest: AgentManifest,
    mcp: McpServers,
    models: ModelFactory = model_for,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    *,
    sandboxed: bool,
    catalog: SkillCatalog,
    commands: bool = False,
) -> Graph:
    """`sandboxed`: the tools are those of the sandbox, not of a real backend. `commands`: people send messages to the
    agent directly, so `/name` calls a skill."""
    model = models(settings, manifest)
    policy = ApprovalPolicy.of(settings, manifest, sandboxed=sandboxed, offline=is_offline_model(model))
    tools = mcp.tools(manifest.name)
    problem = None if tools else mcp.problem(manifest.name) or "its tool servers have not started yet."
    return agent_graph(
        settings,
        model,
        tools,
        agent_prompt(manifest.prompt, problem),
        name=manifest.name,
        middleware=[
            ApprovalGate(
                manifest.name,
                policy.judge,
                title=manifest.title,
                effect_of=policy.effect,
                # The sandbox is simulated: nothing real changes, and its text is the product's own.
                untrusted=None if sandboxed else UntrustedRules.of(settings),
            ),
            SuccessCheck(),
            CompletedToolsNote(),
            VisibleTools(manifest.name),
            WorkflowStep(),
            UnstreamedTurns(model, inner=not commands),
            *skills(SkillOffers(catalog, settings, manifest.name, manifest.skills), settings, commands=commands),
        ],
        changes=policy.changes,
        trusts=trust_all if sandboxed else trust_metadata,
        checkpointer=checkpointer,
    )


def agent_prompt(prompt: str, problem: str | None) -> str:
    """The prompt of an agent; if it has no tools, the prompt says why."""
    if problem is None:
        return prompt
    return (
        f"{prompt.rstrip()}\n\nYou have no tools at the moment: {problem} Say so, do not invent results, and say what "
        "would be needed."
    )
