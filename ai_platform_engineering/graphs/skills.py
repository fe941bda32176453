"""Skills in a graph: adds their names and descriptions to each turn's prompt, with tools that read and search skills.

deepagents' own middleware is not used. It stores the list in the conversation's state, so open conversations miss
changes, and it puts every skill into the prompt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import BaseTool, ToolException
from pydantic import BaseModel, Field

from ai_platform_engineering.compat.agent_middleware import overridden
from ai_platform_engineering.graphs.agent_graph import with_prompt_section
from ai_platform_engineering.graphs.coroutine_tool import CoroutineTool
from ai_platform_engineering.graphs.long_results import tool_name
from ai_platform_engineering.graphs.skills_commands import SkillCommand, UnknownCommand, command_of
from ai_platform_engineering.graphs.skills_offer import SkillOffers
from ai_platform_engineering.graphs.skills_text import (
    file_text,
    found_skills,
    instructions_text,
    listed_section,
    searched_section,
    unknown_command,
    unknown_file,
    unknown_skill,
)
from ai_platform_engineering.runs.skill_calls import READ_SKILL, SEARCH_SKILLS, SKILL_TOOLS, plain_name
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.skill import DOCUMENT
from ai_platform_engineering.skills_middleware.sources.source import SkillGoneError, SourceUnavailableError
from ai_platform_engineering.skills_middleware.view import SkillView
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext

_MAX_FOUND: Final = 10
_READS: Final[Mapping[str, Any]] = {"read_only": True}


class _ReadSkillArguments(BaseModel):
    name: str
    file: str = Field("", description="A file of the skill, in place of its instructions.")
    arguments: str = Field("", description="What the skill is to be used for, such as the name of a service.")


class _SearchArguments(BaseModel):
    query: str


class Skills(AgentMiddleware[Any, Any, Any]):
    """Offers skills to the model. With `commands`, a person's message `/name ...` reads that skill first.

    It must be inside the workflow driver, which has to see every question, and outside middleware that adds
    instructions for a last turn.
    """

    def __init__(self, offers: SkillOffers, prompt_max_chars: int, *, commands: bool = False) -> None:
        super().__init__()
        self._offers = offers
        self._prompt_max_chars = prompt_max_chars
        self._commands = commands
        self._section: tuple[SkillView, str | None] | None = None
        self.tools = [_read_tool(offers), _search_tool(offers)]

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        context: RequestContext | None = request.runtime.context
        question = _question(request)
        if question is not None:
            await self._offers.refresh()
        view = self._offers.offer(context).view
        if question is not None and self._takes_commands(context) and view.skills:
            match command_of(str(question.text), view):
                case SkillCommand() as command:
                    return ModelResponse(result=[_read_turn(command)])
                case UnknownCommand(name, near):
                    answer = unknown_command(name, near, view)
                    return ModelResponse(result=[AIMessage(answer, id=f"skills-{uuid4().hex}")])
        return await handler(self._offered(request, view))

    def _takes_commands(self, context: RequestContext | None) -> bool:
        """Messages from a supervisor, and messages between people in a channel, are never commands."""
        return self._commands and not (context is not None and (context.delegated or context.silent_when_unsure))

    def _offered(self, request: ModelRequest[Any], view: SkillView) -> ModelRequest[Any]:
        """The request with the skills in its prompt, and with the tools to read them."""
        if not view.skills or READ_SKILL not in map(tool_name, request.tools):
            return _without(request, SKILL_TOOLS)
        section = self._listed(view)
        if section is not None:
            request = _without(request, {SEARCH_SKILLS})
        else:
            section = searched_section(len(view.skills))
        return overridden(request, system_message=with_prompt_section(request.system_message, section))

    def _listed(self, view: SkillView) -> str | None:
        """The section for a view, which most turns share: it is written again for another view only."""
        if self._section is None or self._section[0] is not view:
            self._section = view, listed_section(view.skills.values(), self._prompt_max_chars)
        return self._section[1]


def skills(offers: SkillOffers, settings: Settings, *, commands: bool) -> Iterator[Skills]:
    """The middleware, if skills are enabled."""
    if settings.enable_skills:
        yield Skills(offers, settings.skills_prompt_max_chars, commands=commands)


def _question(request: ModelRequest[Any]) -> HumanMessage | None:
    """The person's message, if this is the first turn after it. Instructions to the model are not in the state."""
    messages = request.state.get("messages") or ()
    last = messages[-1] if messages else None
    return last if isinstance(last, HumanMessage) else None


def _read_turn(command: SkillCommand) -> AIMessage:
    """The model turn that a command stands for: a call that reads the skill."""
    arguments = {"name": command.skill} | ({"arguments": command.arguments} if command.arguments else {})
    call = {"name": READ_SKILL, "args": arguments, "id": f"call_{uuid4().hex[:24]}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def _without(request: ModelRequest[Any], names: Collection[str]) -> ModelRequest[Any]:
    return overridden(request, tools=[tool for tool in request.tools if tool_name(tool) not in names])


def _read_tool(offers: SkillOffers) -> BaseTool:
    async def read(name: str, runtime: ToolRuntime, file: str = "", arguments: str = "") -> str:
        offer = offers.offer(runtime.context)
        name = plain_name(name)
        skill = offer.view.skills.get(name)
        if skill is None:
            raise ToolException(unknown_skill(name, offer.view.near(name), offer.view))
        try:
            content = await offer.content(skill)
        except SkillGoneError:
            raise ToolException(f"The skill {name!r} has just been changed or removed. Read it again.") from None
        except SourceUnavailableError as error:
            raise ToolException(f"The skill {name!r} cannot be read now: {error}") from None
        if file in {"", DOCUMENT}:
            return instructions_text(skill, content, arguments)
        text = content.files.get(file)
        if text is None:
            near = get_close_matches(file, content.files, cutoff=0.5)
            raise ToolException(unknown_file(skill, file, near, sorted(content.files)))
        return file_text(skill, file, text)

    return CoroutineTool.from_function(
        coroutine=read,
        name=READ_SKILL,
        description="Read the instructions of a skill, or one of its files.",
        args_schema=_ReadSkillArguments,
        infer_schema=False,
        metadata=dict(_READS),
    )


def _search_tool(offers: SkillOffers) -> BaseTool:
    async def search(query: str, runtime: ToolRuntime) -> str:
        view = offers.offer(runtime.context).view
        return found_skills(await asyncio.to_thread(view.search, query, _MAX_FOUND), len(view.skills))

    return CoroutineTool.from_function(
        coroutine=search,
        name=SEARCH_SKILLS,
        description="Skills that fit some words, with their descriptions.",
        args_schema=_SearchArguments,
        infer_schema=False,
        metadata=dict(_READS),
    )
