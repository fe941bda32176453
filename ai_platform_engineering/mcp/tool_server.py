"""An MCP server made of Python functions. Annotations define the arguments, the return value is the result.

Callers in the same process call it directly; `protocol.py` serves it over MCP.
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
"""Opens the resources of a server while it is in use."""
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class ToolError(Exception):
    """An error for the model, which gets the text unchanged. It never sees the text of other exceptions."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's result as text and, for programs, as an object."""

    text: str
    structured: Mapping[str, Any] | None = None
    failed: bool = False


class ToolServer:
    """A named set of tools. A tool is a function or a bound method whose arguments are annotated for pydantic.

    A coroutine function runs in the event loop, any other in a thread. A tool returns a `ToolResult`, a text, or a
    dict, which becomes JSON text and structured content. Other values become JSON text only.
    """

    def __init__(self, name: str, instructions: str | None = None, lifespan: Lifespan | None = None) -> None:
        self.name = name
        self.instructions = instructions
        self._lifespan = lifespan
        self._tools: dict[str, _FunctionTool] = {}

    def tool(
        self, function: Function, *, annotations: ToolAnnotations | None = None, output: type[BaseModel] | None = None
    ) -> Function:
        """Add the function under its own name, described by its docstring. `output` is the model of its dict.

        Can be used as a decorator without arguments.
        """
        self._tools[function.__name__] = _FunctionTool(function, annotations, output)
        return function

    def running(self) -> AbstractAsyncContextManager[object]:
        """The context in which tools may be called."""
        return nullcontext() if self._lifespan is None else self._lifespan()

    def list_tools(self) -> list[Tool]:
        return [tool.description for tool in self._tools.values()]

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """The result of the tool, or the error as a failed result."""
        tool = self._tools.get(name)
        if tool is None:
            return ToolResult(f"There is no tool named {name}.", failed=True)
        try:
            return _result(await tool.call(arguments))
        except ToolError as error:
            return ToolResult(str(error), failed=True)
        except Exception:
            logger.exception("The tool %s of %s raised an unexpected exception", name, self.name)
            return ToolResult(f"{name} failed unexpectedly.", failed=True)


class _FunctionTool:
    """A function with its pydantic validator and schema, which are built once, on first use."""

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
        def collect(*positional: Any, **named: Any) -> Arguments:
            return positional, named

        # Pydantic calls the function whose arguments it validates. This stand-in only returns them, so that errors of
        # the real function are not treated as invalid arguments, and the real function can run in a thread.
        signature: Any = functools.update_wrapper(collect, self._function)
        return TypeAdapter(signature)


def _call_in_thread(function: Callable[..., Any], positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
    try:
        return function(*positional, **named)
    except StopIteration as error:
        # A future cannot raise StopIteration, so the caller would wait forever.
        raise RuntimeError("the tool raised StopIteration") from error


def wrong_arguments(tool: str, error: ValidationError) -> str:
    """The error message for the model about invalid arguments of its call."""
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
