"""An MCP server made of Python functions: what they take is read from their annotations, what they say is their result.

Called directly by whoever is in the same process; `protocol` puts one behind MCP for everybody else.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from mcp.types import Tool, ToolAnnotations
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_json

from ai_platform_engineering.mcp.json_schemas import inlined, untitled

logger = logging.getLogger(__name__)

Function = TypeVar("Function", bound=Callable[..., Any])
Lifespan = Callable[[], AbstractAsyncContextManager[object]]
"""What is open for as long as a server is in use."""
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class ToolError(Exception):
    """A tool says no. The text is told to the model as it is; of every other exception it only learns that there was
    one.
    """


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool says: a text for whoever reads it and, for programs, the same as an object."""

    text: str
    structured: Mapping[str, Any] | None = None
    failed: bool = False


class ToolServer:
    """Tools under one name. A tool is a function or a bound method whose arguments are annotated for pydantic.

    It may be a coroutine function; any other runs in a thread. It returns a text, a dict, which is told as JSON, or a
    `ToolResult`. Whatever else it returns is told as JSON too, but only as text.
    """

    def __init__(self, name: str, instructions: str | None = None, lifespan: Lifespan | None = None) -> None:
        self.name = name
        self.instructions = instructions
        self._lifespan = lifespan
        self._tools: dict[str, _FunctionTool] = {}

    def tool(
        self, function: Function, *, annotations: ToolAnnotations | None = None, output: type[BaseModel] | None = None
    ) -> Function:
        """Offers the function under its own name, described by its docstring. `output` is what its object looks like.

        Also a decorator, of functions about which there is nothing more to say.
        """
        self._tools[function.__name__] = _FunctionTool(function, annotations, output)
        return function

    def running(self) -> AbstractAsyncContextManager[object]:
        """To be entered by whoever uses the server, for as long as tools are called."""
        return nullcontext() if self._lifespan is None else self._lifespan()

    def list_tools(self) -> list[Tool]:
        return [tool.description for tool in self._tools.values()]

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """What the tool says, or why it says nothing."""
        tool = self._tools.get(name)
        if tool is None:
            return ToolResult(f"There is no tool named {name}.", failed=True)
        try:
            return _result(await tool.call(arguments))
        except ToolError as error:
            return ToolResult(str(error), failed=True)
        except Exception:
            logger.exception("The tool %s of %s raised something other than a tool error", name, self.name)
            return ToolResult(f"{name} failed unexpectedly.", failed=True)


class _FunctionTool:
    """A function, and what pydantic makes of its annotations: not before it is listed or called, and once."""

    def __init__(
        self, function: Callable[..., Any], annotations: ToolAnnotations | None, output: type[BaseModel] | None
    ) -> None:
        self._function = function
        self._annotations = annotations
        self._output = output
        self._is_async = inspect.iscoroutinefunction(function)

    @functools.cached_property
    def description(self) -> Tool:
        return Tool(
            name=self._function.__name__,
            title=self._annotations.title if self._annotations else None,
            description=inspect.getdoc(self._function),
            inputSchema=inlined(untitled(self._arguments.json_schema())),
            outputSchema=inlined(self._output.model_json_schema()) if self._output else None,
            annotations=self._annotations,
        )

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        try:
            positional, named = self._arguments.validate_python(arguments)
        except ValidationError as error:
            raise ToolError(wrong_arguments(self._function.__name__, error)) from None
        if self._is_async:
            return await self._function(*positional, **named)
        return await asyncio.to_thread(_call_in_thread, self._function, positional, named)

    @functools.cached_property
    def _arguments(self) -> TypeAdapter[Arguments]:
        def given(*positional: Any, **named: Any) -> Arguments:
            return positional, named

        # Pydantic calls what it checks the arguments of: not the function itself, so that what it raises is not taken
        # for a wrong argument, and so that it can be called in a thread.
        signed: Any = functools.update_wrapper(given, self._function)
        return TypeAdapter(signed)


def _call_in_thread(function: Callable[..., Any], positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
    try:
        return function(*positional, **named)
    except StopIteration as error:
        # The one exception that whoever waits for a thread is never told of.
        raise RuntimeError("the tool wanted more than there was") from error


def wrong_arguments(tool: str, error: ValidationError) -> str:
    """What is wrong with the arguments of a call, for the model that made it."""
    problems = (
        f"{'.'.join(str(part) for part in detail['loc']) or 'arguments'}: {detail['msg']}"
        for detail in error.errors(include_url=False, include_input=False, include_context=False)
    )
    return f"{tool} was called with wrong arguments: {'; '.join(problems)}."


def _result(returned: Any) -> ToolResult:
    match returned:
        case ToolResult():
            return returned
        case str():
            return ToolResult(returned)
        case None:
            return ToolResult("")
        case dict():
            return ToolResult(_json(returned), returned)
        case _:
            return ToolResult(_json(returned))


def _json(value: object) -> str:
    return to_json(value, fallback=str).decode()
