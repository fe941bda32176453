"""The conversation that is measured: one question, one agent, one tool, five turns of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from langchain_core.language_models import BaseChatModel

from ai_platform_engineering.llm.scripted import ScriptedChatModel, Turn
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.mcp.tool_server import ToolServer

QUESTION: Final = "show argocd version"
VERSION: Final = "v3.1.8"
TOOL: Final = "version_service__version"
ANSWER_WORDS: Final = 40
MODEL_CALLS: Final = 5
CALLS_UNTIL_AGENT: Final = 3
"""The supervisor's plan, its delegation, and the agent's first call."""

_AGENT: Final = "argocd"
_PROMPT: Final = "You look after {title}. Use your tools and report what they say."
_PLAN: Final = {"title": "Version", "steps": [{"content": "Get the version", "agent": _AGENT}]}
_BARE_PLAN: Final = {"todos": [{"content": "Get the version", "status": "in_progress"}]}

server = ToolServer(_AGENT)


@server.tool
async def version_service__version() -> str:
    """The version of Argo CD."""
    return VERSION


def manifests(count: int) -> list[AgentManifest]:
    """The agent that is asked, and `count` - 1 others of its kind."""
    names = [_AGENT, *(f"service_{number:02}" for number in range(1, count))]
    return [_manifest(name) for name in names]


def supervisor_model(*, bare: bool = False, words: int = ANSWER_WORDS, delay: float = 0.0) -> BaseChatModel:
    """`words` is the length of the answer, `delay` the seconds before each word."""
    return ScriptedChatModel(script=supervisor_part(bare=bare, words=words), delay=delay)


def agent_model() -> BaseChatModel:
    return ScriptedChatModel(script=agent_part())


def supervisor_part(*, bare: bool = False, words: int = ANSWER_WORDS) -> Sequence[Turn]:
    plan: dict[str, Any] = _BARE_PLAN if bare else _PLAN
    return [
        Turn("I will ask Argo CD for its version.", [("write_todos", plan)]),
        Turn("", [("task", {"description": "Get the version of Argo CD.", "subagent_type": _AGENT})]),
        Turn("version " * words),
    ]


def agent_part() -> Sequence[Turn]:
    return [Turn("", [(TOOL, {})]), Turn(f"The version is {VERSION}.")]


def _manifest(name: str) -> AgentManifest:
    title = name.replace("_", " ").title()
    return AgentManifest.model_validate(
        {
            "name": name,
            "title": title,
            "description": f"{title} applications: status, sync, version.",
            "keywords": [name, "version"],
            "prompt": _PROMPT.format(title=title),
            "servers": [{"name": name, "transport": "memory", "module": f"{__name__}:server", "reads": [TOOL]}],
        }
    )
