"""The conversation that is measured: one question, one agent, one tool, five turns of the model."""

from __future__ import annotations

from typing import Any

from fastmcp import FastMCP
from langchain_core.language_models import BaseChatModel

from ai_platform_engineering.agents.manifest import AgentManifest
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.llm.scripted import ScriptedChatModel, Turn

QUESTION = "show argocd version"
VERSION = "v3.1.8"
AGENT_PROMPT = "You look after Argo CD. Use your tools and report what they say."
ANSWER = "Argo CD runs version v3.1.8, built from a clean tree. " * 4

MANIFEST = AgentManifest.model_validate(
    {
        "name": "argocd",
        "title": "Argo CD",
        "description": "Argo CD applications: status, sync, version.",
        "keywords": ["argocd"],
        "prompt": AGENT_PROMPT,
        "servers": [{"name": "argocd", "transport": "memory", "module": "benchmarks.scenario:server"}],
    }
)

server = FastMCP("argocd")


@server.tool
async def version_service__version() -> str:
    """The version of Argo CD."""
    return VERSION


def supervisor_model(*, plan: dict[str, Any]) -> BaseChatModel:
    return ScriptedChatModel(
        part=[
            Turn("I will ask Argo CD for its version.", [("write_todos", plan)]),
            Turn("", [("task", {"description": "Get the version of Argo CD.", "subagent_type": "argocd"})]),
            Turn(ANSWER),
        ]
    )


def agent_model() -> BaseChatModel:
    return ScriptedChatModel(part=[Turn("", [("version_service__version", {})]), Turn(f"The version is {VERSION}.")])


def models(settings: Settings, manifest: AgentManifest | None) -> BaseChatModel:
    """The scripted models in the places where the product puts its own."""
    if manifest is not None:
        return agent_model()
    return supervisor_model(plan={"title": "Version", "steps": [{"content": "Get the version", "agent": "argocd"}]})
