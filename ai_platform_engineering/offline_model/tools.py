"""The tools a model is bound with, as immutable values, and the agents that a delegation tool describes."""

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
STEERING_TOOLS = frozenset({DELEGATION_TOOL, PLAN_TOOL, FORM_TOOL, WORKFLOW_TOOL}) | SKILL_TOOLS
"""Tools that steer a run. Each is called for a reason of its own, never because its words go with a question."""
KNOWLEDGE_TOOLS = frozenset({SEARCH_TOOL, READ_TOOL})
"""The knowledge base, where both are bound: one finds places in documents, the other reads a document."""
BESIDE_KNOWLEDGE = frozenset({"list_datasources", "fetch_url"})
"""What else a knowledge base offers."""


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model is told about one tool. `schema` is the JSON schema of its arguments, as JSON text."""

    name: str
    description: str
    schema: str
    read_only: bool = False
    destructive: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call the model wants."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says in one turn: text, tool calls, or both."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    not_done: str | None = None
    """Why nothing of what was asked is done, where an agent ends so."""


@dataclass(frozen=True, slots=True)
class Agent:
    """One line of the delegation tool's description."""

    name: str
    description: str
    keywords: tuple[str, ...] = ()
    no_tools: str | None = None

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").title()


BoundTool = Tool | BaseTool | Mapping[str, Any] | type | Callable[..., Any]


def bound_tools(tools: Iterable[BoundTool]) -> tuple[Tool, ...]:
    return tuple(
        tool if isinstance(tool, Tool) else _from_object(_Identity(tool), getattr(tool, "description", ""))
        for tool in tools
    )


class _Identity:
    """Hashes any object by identity. Deriving a tool's schema is dear, and the same tools are bound for every call."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value


@lru_cache(maxsize=4096)
def _from_object(identity: _Identity, _description: str) -> Tool:
    function = convert_to_openai_tool(identity.value)["function"]
    metadata = getattr(identity.value, "metadata", None) or {}
    return Tool(
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
