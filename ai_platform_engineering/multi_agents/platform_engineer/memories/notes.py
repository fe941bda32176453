"""Memories in the supervisor's graph: adds those of the person who asks to each turn's prompt, with the tools.

The owner of a run is the person who asked its question, also when another person answers a form in it. So the owner is
stored in the graph's state, together with the task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, NotRequired, TypedDict

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse, PrivateStateAttr
from langchain.tools import ToolRuntime
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command
from pydantic import BaseModel, Field

from ai_platform_engineering.audit.record import AuditFact
from ai_platform_engineering.compat.agent_middleware import overridden
from ai_platform_engineering.graphs.agent_graph import with_prompt_section
from ai_platform_engineering.graphs.coroutine_tool import CoroutineTool
from ai_platform_engineering.graphs.long_results import tool_name
from ai_platform_engineering.identity.principal import ANONYMOUS
from ai_platform_engineering.multi_agents.platform_engineer.memories.texts import (
    FORGET_MEMORY,
    HIDDEN,
    LIST_MEMORIES,
    MEMORY_TOOLS,
    REMEMBER,
    forgotten_text,
    listed_text,
    prompt_section,
    remembered_text,
)
from ai_platform_engineering.storage.memories.memories import Memories
from ai_platform_engineering.storage.memories.memory import MAX_LENGTH, MemoriesUnavailableError, owner_of
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.errors import ReadableError

OWNER_KEY: Final = "memory_owner"

_READS: Final[Mapping[str, Any]] = {"read_only": True}
_WRITES: Final[Mapping[str, Any]] = {"read_only": False, "destructive": False}
_DELETES: Final[Mapping[str, Any]] = {"read_only": False, "destructive": True}


class NoOwnerError(ReadableError):
    def __init__(self) -> None:
        super().__init__("Memories cannot be used here: it is not known whose they would be.")


class TaskOwner(TypedDict):
    """The owner of the memories in the run of a task."""

    task_id: str
    owner: str


class MemoryChannels(AgentState[Any]):
    memory_owner: NotRequired[Annotated[TaskOwner | None, PrivateStateAttr]]


class _RememberArguments(BaseModel):
    text: str = Field(description=f"What to remember, in one sentence of at most {MAX_LENGTH} characters.")


class _ForgetArguments(BaseModel):
    id: str = Field(description="The id of the memory.")


# With an empty model, LangChain would not pass the runtime.
_NO_ARGUMENTS: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}


class MemoryNotes(AgentMiddleware[MemoryChannels, Any, Any]):
    state_schema = MemoryChannels

    def __init__(self, memories: Memories) -> None:
        super().__init__()
        self._memories = memories
        self.tools = [_remember_tool(memories), _list_tool(memories), _forget_tool(memories)]

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        context: RequestContext | None = request.runtime.context
        asked = _question_id(request.state.get("messages") or ())
        request = overridden(request, messages=without_earlier_results(request.messages, asked))
        owner = run_owner(request.state, context)
        if owner is None:
            offered = [tool for tool in request.tools if tool_name(tool) not in MEMORY_TOOLS]
            return await handler(overridden(request, tools=offered))
        if section := await self._section(owner):
            request = overridden(request, system_message=with_prompt_section(request.system_message, section))
        response = await handler(request)
        current = TaskOwner(task_id=_task_id(context), owner=owner)
        if request.state.get(OWNER_KEY) == current:
            return response
        return ExtendedModelResponse(response, Command(update={OWNER_KEY: current}))

    async def _section(self, owner: str) -> str:
        try:
            return prompt_section(await self._memories.list_all(owner))
        except MemoriesUnavailableError:  # logged when the store failed
            return ""


def memory_notes(memories: Memories | None) -> Iterator[MemoryNotes]:
    """The middleware, if memories are enabled."""
    if memories is not None:
        yield MemoryNotes(memories)


def run_owner(state: Mapping[str, Any], context: RequestContext | None) -> str | None:
    """The owner of the memories in a run; None if it has none.

    A message that was not addressed to the supervisor has none: nothing in it was said to be remembered.
    """
    if context is None:
        return owner_of(ANONYMOUS, None)
    if context.silent_when_unsure:
        return None
    stored: TaskOwner | None = state.get(OWNER_KEY)
    if stored is not None and stored["task_id"] == context.task_id:
        return stored["owner"]
    # The person who answered a form may be another than the one who asked.
    if context.answers_form:
        return None
    return owner_of(context.caller, context.user if context.caller == ANONYMOUS else None)


def without_earlier_results(messages: Sequence[AnyMessage], question_id: str | None) -> list[AnyMessage]:
    """The messages without the memories that earlier questions listed: another person may have asked them."""
    current = next((position for position, message in enumerate(messages) if message.id == question_id), 0)
    return [*map(_hidden, messages[:current]), *messages[current:]]


def _question_id(messages: Sequence[AnyMessage]) -> str | None:
    """The id of the last question. Instructions to the model, which have the same type, are not in the state."""
    return next((message.id for message in reversed(messages) if isinstance(message, HumanMessage)), None)


def _hidden(message: AnyMessage) -> AnyMessage:
    is_result = isinstance(message, ToolMessage) and message.name in MEMORY_TOOLS
    return message.model_copy(update={"content": HIDDEN}) if is_result else message


def _task_id(context: RequestContext | None) -> str:
    return context.task_id if context is not None else ""


def _owner(runtime: ToolRuntime) -> str:
    owner = run_owner(runtime.state, runtime.context)
    if owner is None:
        raise NoOwnerError
    return owner


def _remember_tool(memories: Memories) -> BaseTool:
    async def remember(text: str, runtime: ToolRuntime) -> str:
        owner = _owner(runtime)
        memory = await memories.remember(owner, text)
        return remembered_text(memory, len(await memories.list_all(owner)))

    return CoroutineTool.from_function(
        coroutine=remember,
        name=REMEMBER,
        description="Remember something for the person who asks, in all later conversations. Call it only when the "
        "person explicitly asks you to remember something, never on your own initiative, and never for passwords, "
        "keys or other secrets.",
        args_schema=_RememberArguments,
        infer_schema=False,
        metadata=dict(_WRITES),
    )


def _list_tool(memories: Memories) -> BaseTool:
    async def list_memories(runtime: ToolRuntime) -> str:
        return listed_text(await memories.list_all(_owner(runtime)))

    return CoroutineTool.from_function(
        coroutine=list_memories,
        name=LIST_MEMORIES,
        description="All that you remember for the person who asks, with ids.",
        args_schema=dict(_NO_ARGUMENTS),
        infer_schema=False,
        metadata=dict(_READS),
    )


def _forget_tool(memories: Memories) -> BaseTool:
    async def forget(id: str, runtime: ToolRuntime) -> str:  # noqa: A002 - the name that models see
        owner = _owner(runtime)
        forgotten = forgotten_text(await memories.forget(owner, id))
        if (context := runtime.context) is not None:
            fact = AuditFact("data_deleted", context.caller, task=context.task_id, target=f"memory {id} of {owner}")
            context.audit.record(fact)
        return forgotten

    return CoroutineTool.from_function(
        coroutine=forget,
        name=FORGET_MEMORY,
        description="Forget one memory of the person who asks, when the person asks for it.",
        args_schema=_ForgetArguments,
        infer_schema=False,
        metadata=dict(_DELETES),
    )
