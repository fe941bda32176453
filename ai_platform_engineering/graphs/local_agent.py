"""The graph of an agent that runs here, with its MCP tools: the same inside the supervisor and on its own server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver

from ai_platform_engineering.graphs.agent_graph import Graph, agent_graph
from ai_platform_engineering.graphs.approval_gate import ApprovalGate
from ai_platform_engineering.graphs.approval_policy import ApprovalPolicy
from ai_platform_engineering.graphs.skills import skills
from ai_platform_engineering.graphs.skills_offer import SkillOffers
from ai_platform_engineering.graphs.undone_work import UndoneWork
from ai_platform_engineering.graphs.unfinished_work import UnfinishedWork
from ai_platform_engineering.graphs.whole_turns import WholeTurns
from ai_platform_engineering.graphs.workflow_step import WorkflowStep
from ai_platform_engineering.llm import chat_model, is_offline_model
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog

Models = Callable[[Settings, AgentManifest | None], BaseChatModel]
"""Which model an agent gets; the supervisor's for None."""


def model_for(settings: Settings, manifest: AgentManifest | None) -> BaseChatModel:
    if manifest is None:
        return chat_model(settings)
    return chat_model(settings, manifest.name, manifest.model)


def local_agent_graph(
    settings: Settings,
    manifest: AgentManifest,
    mcp: McpServers,
    models: Models = model_for,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    *,
    sandboxed: bool,
    catalog: SkillCatalog,
    commands: bool = False,
) -> Graph:
    """`sandboxed` says that the agent's tools are those of the sandbox, not of a real backend. With `commands` people
    talk to the agent themselves and may call its skills by name."""
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
            ApprovalGate(manifest.name, policy.judge, title=manifest.title),
            UndoneWork(),
            UnfinishedWork(),
            WorkflowStep(),
            WholeTurns(model, inner=not commands),
            *skills(SkillOffers(catalog, settings, manifest.name, manifest.skills), settings, commands=commands),
        ],
        checkpointer=checkpointer,
    )


def agent_prompt(prompt: str, problem: str | None) -> str:
    """An agent's own prompt, with the truth about its tools when it has none."""
    if problem is None:
        return prompt
    return (
        f"{prompt.rstrip()}\n\nYou have no tools at the moment: {problem} Say so, do not invent results, and say what "
        "would be needed."
    )
