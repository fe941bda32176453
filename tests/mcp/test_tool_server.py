"""Servers made of functions: called directly, and behind MCP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import pytest
from mcp.types import Tool, ToolAnnotations
from pydantic import BaseModel, BeforeValidator, Field

from ai_platform_engineering.mcp.tool_server import ToolError, ToolResult, ToolServer


class Window(BaseModel):
    """From when to when."""

    begin: int
    end: int = 24


class Folder(BaseModel):
    name: str
    folders: list[Folder] = []


def upper(given: Any) -> Any:
    if given == "?":
        raise ToolError("Which one?")
    return str(given).upper()


def offering(*functions: Any) -> ToolServer:
    server = ToolServer("demo")
    for function in functions:
        server.tool(function)
    return server


def listed(function: Any, **more: Any) -> Tool:
    server = ToolServer("demo")
    server.tool(function, **more)
    (tool,) = server.list_tools()
    return tool


async def called(function: Any, **arguments: Any) -> ToolResult:
    return await offering(function).call_tool(function.__name__, arguments)


async def place(
    title: Annotated[str, Field(description="What it is called.")],
    kind: Annotated[Literal["A", "B"], BeforeValidator(upper)] = "A",
    windows: list[Window] | None = None,
) -> dict[str, Any]:
    """Place something.

    Where there is room.
    """
    return {"title": title, "kind": kind, "hours": sum(window.end - window.begin for window in windows or [])}


class TestDescription:
    def test_what_a_model_is_shown(self) -> None:
        tool = listed(place)
        assert (tool.name, tool.description) == ("place", "Place something.\n\nWhere there is room.")
        window = {
            "description": "From when to when.",
            "properties": {"begin": {"type": "integer"}, "end": {"default": 24, "type": "integer"}},
            "required": ["begin"],
            "type": "object",
        }
        assert tool.inputSchema == {
            "additionalProperties": False,
            "properties": {
                "title": {"description": "What it is called.", "type": "string"},
                "kind": {"default": "A", "enum": ["A", "B"], "type": "string"},
                "windows": {"anyOf": [{"items": window, "type": "array"}, {"type": "null"}], "default": None},
            },
            "required": ["title"],
            "type": "object",
        }
        assert tool.outputSchema is None

    def test_a_model_within_itself_is_referred_to(self) -> None:
        async def file(into: Folder) -> str:
            return into.name

        schema = listed(file).inputSchema
        assert schema["properties"]["into"] == {"$ref": "#/$defs/Folder"}
        assert schema["$defs"]["Folder"]["properties"]["folders"]["items"] == {"$ref": "#/$defs/Folder"}

    def test_values_are_left_as_they_are(self) -> None:
        async def label(labels: dict[str, str] = {"title": "none"}) -> str:  # noqa: B006 - shown, never changed
            return str(labels)

        assert listed(label).inputSchema["properties"]["labels"]["default"] == {"title": "none"}

    def test_what_else_is_known_of_it(self) -> None:
        annotations = ToolAnnotations(title="Place it", destructiveHint=True)
        tool = listed(place, annotations=annotations, output=Window)
        assert (tool.title, tool.annotations) == ("Place it", annotations)
        assert tool.outputSchema == Window.model_json_schema()

    def test_of_a_method_the_object_is_no_argument(self) -> None:
        class Desk:
            def ask(self, what: str) -> str:
                return what

        assert list(listed(Desk().ask).inputSchema["properties"]) == ["what"]


class TestArguments:
    async def test_they_are_what_the_annotations_say(self) -> None:
        result = await called(place, title="x", kind="b", windows=[{"begin": "8", "end": 18}, {"begin": 20}])
        assert result.structured == {"title": "x", "kind": "B", "hours": 14}

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            ({}, "title: Missing required argument"),
            ({"title": "x", "kind": "c"}, "kind: Input should be 'A' or 'B'"),
            (
                {"title": "x", "windows": [{"begin": "early"}], "size": 1},
                "windows.0.begin: Input should be a valid integer, unable to parse string as an integer; "
                "size: Unexpected keyword argument",
            ),
        ],
    )
    async def test_wrong_ones_are_named(self, arguments: dict[str, Any], problem: str) -> None:
        message = f"place was called with wrong arguments: {problem}."
        assert await called(place, **arguments) == ToolResult(message, failed=True)

    async def test_a_check_may_say_it_in_its_own_words(self) -> None:
        assert await called(place, title="x", kind="?") == ToolResult("Which one?", failed=True)

    async def test_a_tool_that_is_not_there(self) -> None:
        assert await offering(place).call_tool("move", {}) == ToolResult("There is no tool named move.", failed=True)


class TestResults:
    @pytest.mark.parametrize(
        ("returned", "result"),
        [
            ("done", ToolResult("done")),
            (None, ToolResult("")),
            ([], ToolResult("[]")),
            (7, ToolResult("7")),
            ({"größe": [1, None]}, ToolResult('{"größe":[1,null]}', {"größe": [1, None]})),
            (Window(begin=1), ToolResult('{"begin":1,"end":24}')),
            (ToolResult("one", {"n": 1}), ToolResult("one", {"n": 1})),
        ],
    )
    async def test_what_a_tool_returns_is_told(self, returned: Any, result: ToolResult) -> None:
        async def give() -> Any:
            return returned

        assert await called(give) == result

    async def test_what_json_has_no_word_for(self) -> None:
        async def now() -> dict[str, Any]:
            return {"at": datetime(2026, 1, 2, tzinfo=UTC), "of": object}

        assert (await called(now)).text == '{"at":"2026-01-02T00:00:00Z","of":"<class \'object\'>"}'


class TestFailures:
    async def test_a_tool_error_is_told_as_it_is(self) -> None:
        async def refuse() -> str:
            raise ToolError("Not today.")

        assert await called(refuse) == ToolResult("Not today.", failed=True)

    @pytest.mark.parametrize("trouble", [ValueError, TimeoutError, StopIteration])
    async def test_everything_else_is_only_in_the_log(
        self, trouble: type[Exception], caplog: pytest.LogCaptureFixture
    ) -> None:
        def crash() -> str:
            raise trouble("the password is hunter2")

        async def crash_here() -> str:
            return crash()

        for function in (crash, crash_here):
            result = await asyncio.wait_for(called(function), 90)
            assert result == ToolResult(f"{function.__name__} failed unexpectedly.", failed=True)
            record = caplog.records.pop()
            assert record.message == f"The tool {function.__name__} of demo raised an unexpected exception"
            assert "hunter2" in (record.exc_text or "")
        assert caplog.records == []

    async def test_a_wrong_value_inside_a_tool_is_no_wrong_argument(self, caplog: pytest.LogCaptureFixture) -> None:
        async def measure() -> str:
            return str(Window.model_validate({"begin": "early"}))

        assert (await called(measure)).text == "measure failed unexpectedly."


class TestRunning:
    async def test_a_function_runs_in_a_thread_and_sees_its_caller(self) -> None:
        user: ContextVar[str] = ContextVar("user")
        user.set("ann")
        going = threading.Event()

        def wait() -> str:
            # This is set only if the event loop keeps running.
            return f"{going.wait(60)} for {user.get()}"

        call = asyncio.create_task(called(wait))
        await asyncio.sleep(0.01)
        going.set()
        assert (await call).text == "True for ann"

    async def test_a_coroutine_is_cancelled_with_its_caller(self) -> None:
        began, ended = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            began.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()

        call = asyncio.create_task(called(wait))
        await began.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert ended.is_set()

    async def test_a_caller_does_not_wait_for_a_thread(self) -> None:
        going = threading.Event()

        def wait() -> None:
            going.wait(60)

        call = asyncio.create_task(called(wait))
        await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(call, 30)
        going.set()

    async def test_a_lifespan_is_run_by_who_uses_the_server(self) -> None:
        seen: list[str] = []

        @asynccontextmanager
        async def lifespan() -> AsyncIterator[None]:
            seen.append("open")
            yield
            seen.append("closed")

        async with ToolServer("demo", lifespan=lifespan).running():
            assert seen == ["open"]
        assert seen == ["open", "closed"]
        async with ToolServer("demo").running():
            pass
