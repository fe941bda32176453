from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool

from ai_platform_engineering.events import FinalResult, ToolFinished
from ai_platform_engineering.graphs.long_results import LongResults, part, tool_name
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from tests.invariants import check
from tests.runs.graphs import agent, context, events_of, supervisor

TEXT = "".join(f"line {number:05}\n" for number in range(600))
NEXT = re.compile(r'read_result\(result_id="(\w+)", offset=(\d+)\)')


@tool
async def logs() -> str:
    """More than anybody wants in a prompt."""
    return TEXT


@tool
async def short() -> str:
    """A few words."""
    return "short"


def reads_on(cue: ModelInput) -> Turn:
    """Calls `logs`, then reads on for as long as there is more, and says what it has seen."""
    results = [str(message.text) for message in cue.messages if message.type == "tool"]
    if not results:
        assert "read_result" not in cue.tools, "nothing to read yet"
        return Turn("", [("logs", {})])
    assert "read_result" in cue.tools
    assert all(len(result) < 1_300 for result in results), "a part is no longer than the limit and its note"
    if more := NEXT.search(results[-1]):
        return Turn("", [("read_result", {"result_id": more[1], "offset": int(more[2])})])
    return Turn("".join(re.sub(r"\n\[Output truncated.*\]$", "", result) for result in results))


async def test_a_long_result_is_read_in_parts_and_nothing_of_it_is_lost() -> None:
    events = await events_of(
        agent("supervisor", ScriptedChatModel(script=reads_on), [logs], TOOL_RESULT_MAX_CHARS="1000")
    )
    ending = check(events)
    assert isinstance(ending, FinalResult)
    assert ending.text == TEXT
    assert [event.tool for event in events if isinstance(event, ToolFinished)] == ["logs", *["read_result"] * 6]
    assert all(event.ok for event in events if isinstance(event, ToolFinished))


async def test_what_one_agent_has_read_stays_with_it() -> None:
    def asks(cue: ModelInput) -> Turn:
        assert "read_result" not in cue.tools, "the agent's long result is not the supervisor's"
        if cue.turn == 0:
            return Turn("", [("task", {"description": "read the logs", "subagent_type": "reader"})])
        return Turn("Read.")

    reader = agent("reader", ScriptedChatModel(script=reads_on), [logs], TOOL_RESULT_MAX_CHARS="1000")
    assert isinstance(
        check(await events_of(supervisor(ScriptedChatModel(script=asks), {"reader": reader}))), FinalResult
    )


async def test_wrong_ids_and_places_are_errors_the_model_sees() -> None:
    seen: list[str] = []

    def part_of(cue: ModelInput) -> Turn:
        results = [str(message.text) for message in cue.messages if message.type == "tool"]
        if not results:
            return Turn("", [("logs", {}), ("short", {})])
        if len(results) == 2:
            found = NEXT.search(results[0])
            assert found
            wrong = [{"result_id": "nosuch"}, {"result_id": found[1], "offset": 999_999}]
            return Turn("", [("read_result", arguments) for arguments in wrong])
        seen.extend(results[2:])
        return Turn("Neither worked.")

    model = ScriptedChatModel(script=part_of)
    check(await events_of(agent("supervisor", model, [logs, short], TOOL_RESULT_MAX_CHARS="1000")))
    assert "no result 'nosuch'" in seen[0]
    assert f"{len(TEXT)} characters" in seen[1]


def test_the_last_part_has_no_note() -> None:
    assert part("abcdef", "id", 4, 10) == "ef"
    assert part("abcdef", "id", 0, 4).startswith("abcd\n[Output truncated at character 4 of 6.")


async def calls_of(
    *tools: BaseTool, limit: int = 1000, calls: Sequence[tuple[str, dict[str, Any]]]
) -> list[ToolMessage]:
    """The results of these calls, one turn for each."""

    def part_of(cue: ModelInput) -> Turn:
        return Turn("", [calls[cue.turn]]) if cue.turn < len(calls) else Turn("Done.")

    graph = agent("supervisor", ScriptedChatModel(script=part_of), tools, TOOL_RESULT_MAX_CHARS=str(limit))
    state = await graph.ainvoke({"messages": [HumanMessage("q")]}, context=context())
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]


def saying(text: str, name: str = "say") -> BaseTool:
    @tool(name)
    async def say() -> str:
        """Says it."""
        return text

    return say


async def test_a_result_is_cut_only_where_it_is_longer_than_the_limit() -> None:
    fits, cut = saying("f" * 1000, "fits"), saying("c" * 1001, "cut")
    whole, shown = await calls_of(fits, cut, calls=[("fits", {}), ("cut", {})])
    assert whole.text == "f" * 1000
    found = NEXT.search(str(shown.text))
    assert found is not None
    assert str(shown.text) == (
        f"{'c' * 1000}\n[Output truncated at character 1000 of 1001. "
        f'read_result(result_id="{found[1]}", offset=1000) gives the next part.]'
    )
    assert (shown.name, shown.status, len(found[1])) == ("cut", "success", 8)


async def test_a_result_is_read_from_its_start_by_default_and_up_to_its_last_character() -> None:
    text = "a" * 1000 + "z"
    first = (await calls_of(saying(text), calls=[("say", {})]))[0]
    found = NEXT.search(str(first.text))
    assert found is not None
    result_id = found[1]
    reads = [{}, {"offset": 1000}, {"offset": 1001}, {"offset": -1}]
    calls = [("say", {}), *(("read_result", {"result_id": result_id, **read}) for read in reads)]
    _, start, last, behind, before = await calls_of(saying(text), calls=calls)
    assert start.text == first.text
    assert last.text == "z"
    sentence = f"Result '{result_id}' has 1001 characters; offset must be below that."
    assert [(wrong.text, wrong.status) for wrong in (behind, before)] == [(sentence, "error")] * 2


async def test_an_unknown_result_is_answered_with_those_there_are() -> None:
    long = saying("l" * 1001), saying("o" * 1001, "other")
    calls = [("say", {}), ("other", {}), ("read_result", {"result_id": "nosuch"})]
    first, second, unknown = await calls_of(*long, calls=calls)
    known = [found[1] for result in (first, second) if (found := NEXT.search(str(result.text)))]
    assert unknown.text == f"There is no result 'nosuch'. Results: {', '.join(known)}."
    [none] = await calls_of(calls=[("read_result", {"result_id": "nosuch"})])
    assert none.text == "There is no result 'nosuch'. Results: none."


async def test_half_of_a_character_does_not_break_a_long_result() -> None:
    [shown] = await calls_of(saying("\ud800" * 1001), calls=[("say", {})])
    assert "Output truncated at character 1000 of 1001." in str(shown.text)


def test_the_model_reads_how_to_read_on() -> None:
    [read] = LongResults(1000).tools
    assert (read.name, read.description) == ("read_result", "The next part of a tool result that was truncated.")
    arguments = read.tool_call_schema.model_json_schema()
    assert arguments["required"] == ["result_id"]
    assert {name: given["description"] for name, given in arguments["properties"].items()} == {
        "result_id": "The id in the note at the end of the truncated result.",
        "offset": "The character to read on from.",
    }


def test_a_tool_that_the_provider_runs_has_a_name_too() -> None:
    assert [tool_name(logs), tool_name({"type": "web_search", "name": "search"})] == ["logs", "search"]
