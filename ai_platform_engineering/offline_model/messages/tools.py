"""Bound tools, planned calls and replies as immutable values, and the agents listed by the delegation tool."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

DELEGATION_TOOL = "task"
PLAN_TOOL = "write_todos"
FORM_TOOL = "request_user_input"
WORKFLOW_TOOL = "start_workflow"
SEARCH_TOOL = "search"
READ_TOOL = "fetch_document"
READ_SKILL_TOOL = "read_skill"
SEARCH_SKILLS_TOOL = "search_skills"
SKILL_TOOLS = frozenset({READ_SKILL_TOOL, SEARCH_SKILLS_TOOL})
REMEMBER_TOOL = "remember"
LIST_MEMORIES_TOOL = "list_memories"
FORGET_TOOL = "forget_memory"
MEMORY_TOOLS = frozenset({REMEMBER_TOOL, LIST_MEMORIES_TOOL, FORGET_TOOL})
CONTROL_TOOLS = frozenset({DELEGATION_TOOL, PLAN_TOOL, FORM_TOOL, WORKFLOW_TOOL}) | SKILL_TOOLS | MEMORY_TOOLS
"""Tools that control a run. Code calls them for specific reasons; they are never selected by matching words."""
KNOWLEDGE_TOOLS = frozenset({SEARCH_TOOL, READ_TOOL})
"""The knowledge base is available when both are bound: one searches documents, the other reads one."""
OTHER_KNOWLEDGE_TOOLS = frozenset({"list_datasources", "fetch_url"})
"""Further tools of the knowledge base."""


@dataclass(frozen=True, slots=True)
class BoundTool:
    """One tool as the model sees it. `schema` is the JSON schema of its arguments, as JSON text."""

    name: str
    description: str
    schema: str
    read_only: bool = False
    destructive: bool = False


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A tool call that the model decided to make."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The model's output in one turn: text, tool calls, or both."""

    text: str = ""
    calls: tuple[PlannedCall, ...] = ()
    not_done: str | None = None
    """Why an agent did nothing of the request; None when it did something."""


@dataclass(frozen=True, slots=True)
class Agent:
    """One line of the delegation tool's description. `no_tools` is the reason why the agent has no tools."""

    name: str
    description: str
    keywords: tuple[str, ...] = ()
    no_tools: str | None = None

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").title()


ToolLike = BoundTool | BaseTool | Mapping[str, Any] | type | Callable[..., Any]


def bound_tools(tools: Iterable[ToolLike]) -> tuple[BoundTool, ...]:
    return tuple(
        tool if isinstance(tool, BoundTool) else _from_object(_Identity(tool), getattr(tool, "description", ""))
        for tool in tools
    )


class _Identity:
    """Hash any object by identity. Deriving a tool's schema is slow, and the same tools are bound for every call."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value


@lru_cache(maxsize=4096)
def _from_object(identity: _Identity, _description: str) -> BoundTool:
    function = convert_to_openai_tool(identity.value)["function"]
    metadata = getattr(identity.value, "metadata", None) or {}
    return BoundTool(
        name=function["name"],
        description=function.get("description", ""),
        schema=json.dumps(function.get("parameters") or {}),
        read_only=bool(metadata.get("read_only")),
        destructive=bool(metadata.get("destructive")),
    )


_AGENT_LINE = re.compile(
    r"^- (?P<name>[A-Za-z][\w-]*): (?P<description>.*?)"
    r"(?: \(keywords: (?P<keywords>[^)]*)\))?(?: \[no tools: (?P<no_tools>.*)\])?$"
)


@lru_cache(maxsize=256)
def described_agents(delegation_description: str) -> tuple[Agent, ...]:
    """The agents listed at the end of the delegation tool's description."""
    found = [
        Agent(
            name=line["name"],
            description=line["description"],
            keywords=tuple(word.strip() for word in (line["keywords"] or "").split(",") if word.strip()),
            no_tools=line["no_tools"],
        )
        for line in map(_AGENT_LINE.match, map(str.rstrip, delegation_description.splitlines()))
        if line
    ]
    return tuple({agent.name: agent for agent in found}.values())
