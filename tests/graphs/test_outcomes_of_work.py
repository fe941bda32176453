"""How an agent's work ends: a step of a workflow, work that was not done, and work that broke off. In a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp

from ai_platform_engineering.final_results import CUT_SENTENCES
from ai_platform_engineering.graphs.agent_graph import Graph, Middleware, agent_graph
from ai_platform_engineering.graphs.work_failures import (
    CompletedToolsNote,
    NotDoneError,
    SuccessCheck,
    UnfinishedWorkError,
)
from ai_platform_engineering.graphs.workflow_step import StepFailedError, WorkflowStep, since_question
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.mcp.errors import ToolFailed
from ai_platform_engineering.utils.errors import ReadableError
from tests.runs.graphs import context, settings_of


@tool
def restart(name: str = "") -> str:
    """Restarts. Fails for `broken`, and says nothing for `silent`."""
    if name == "broken":
        raise ToolFailed("500 from the backend at 10.0.0.1", "the backend is down")
    return "" if name == "silent" else f"Restarted {name}."


@tool
def look(name: str = "") -> str:
    """Looks."""
    if name == "broken":
        raise ToolException("It cannot be seen.")
    return f"Saw {name}."


@tool
def read_skill(name: str = "") -> str:
    """Reads instructions."""
    if name == "broken":
        raise ToolException("There is no such skill.")
    return "Be careful."


TOOLS: Sequence[BaseTool] = (restart, look, read_skill)
Call = tuple[str, Mapping[str, Any]]
BROKEN: Mapping[str, Any] = {"name": "broken"}


def calls(*made: Call) -> Turn:
    return Turn("", made)


def graph(middleware: Middleware, *turns: Turn, tools: Sequence[BaseTool] = TOOLS) -> Graph:
    return agent_graph(
        settings_of(),
        ScriptedChatModel(script=turns),
        tools,
        "You work.",
        name="worker",
        middleware=[middleware],
        checkpointer=InMemorySaver(),
    )


async def work(graph: Graph, step: Any = None, *earlier: Any) -> str:
    given = {"messages": [*earlier, HumanMessage("go")], "step": step}
    config: Any = {"configurable": {"thread_id": "t"}}
    state = await graph.ainvoke({k: v for k, v in given.items() if v is not None}, config, context=context())
    assert "step" not in state
    return str(state["messages"][-1].text)


# What an agent did before it was asked to `go`, which says nothing about the work in hand.
EARLIER = (
    HumanMessage("before"),
    AIMessage("", tool_calls=[{"id": "z", "name": "restart", "args": {}}]),
    ToolMessage("Failed.", tool_call_id="z", name="restart", status="error"),
    AIMessage("It failed."),
)
SUCCEEDED = (
    HumanMessage("before"),
    AIMessage("", tool_calls=[{"id": "z", "name": "restart", "args": {}}]),
    ToolMessage("Restarted.", tool_call_id="z", name="restart"),
    AIMessage("Done."),
)


def no_turn(_cue: ModelInput) -> Turn:
    raise AssertionError("a step that names a tool needs no model")


def test_the_work_for_a_question_is_all_that_came_after_it() -> None:
    assert since_question(EARLIER) == EARLIER[1:]
    assert since_question([*EARLIER, HumanMessage("go"), *EARLIER[1:]]) == [*EARLIER[1:]]
    assert since_question(EARLIER[1:]) == EARLIER[1:]
    assert not since_question([*EARLIER, HumanMessage("go")])


class TestStepThatNamesATool:
    @pytest.mark.parametrize(
        ("step", "answer"),
        [
            ({"tool": "restart", "arguments": {"name": "pods"}}, "Restarted pods."),
            ({"tool": "restart"}, "Restarted ."),
            ({"tool": "restart", "arguments": None}, "Restarted ."),
            ({"tool": "restart", "arguments": {"name": "silent"}}, "Done."),
        ],
    )
    async def test_the_result_is_the_answer(self, step: Mapping[str, Any], answer: str) -> None:
        direct = agent_graph(
            settings_of(),
            ScriptedChatModel(script=no_turn),
            TOOLS,
            "You work.",
            name="worker",
            middleware=[WorkflowStep()],
        )
        assert await work(direct, step, *EARLIER) == answer

    async def test_the_turn_that_calls_the_tool_says_nothing(self) -> None:
        given = {"messages": [HumanMessage("go")], "step": {"tool": "look"}}
        config: Any = {"configurable": {"thread_id": "t"}}
        state = await graph(WorkflowStep()).ainvoke(given, config, context=context())
        _, called, result, _ = state["messages"]
        assert (called.text, called.tool_calls[0]["id"]) == ("", "step-1")
        assert result.tool_call_id == "step-1"

    async def test_a_failing_tool_fails_the_step_with_the_reason_for_people(self) -> None:
        with pytest.raises(StepFailedError) as failed:
            await work(graph(WorkflowStep()), {"tool": "restart", "arguments": BROKEN})
        assert str(failed.value) == "the backend is down"

    async def test_a_tool_that_does_not_exist_fails_the_step(self) -> None:
        with pytest.raises(StepFailedError) as failed:
            await work(graph(WorkflowStep()), {"tool": "drop"})
        assert (str(failed.value), failed.value.code) == ("There is no tool named 'drop' here.", "agent")


class TestStepInWords:
    STEP: Mapping[str, Any] = {"words": "Restart it."}

    @pytest.mark.parametrize(
        ("turns", "answer"),
        [
            ([calls(("restart", {})), Turn("Done.")], "Done."),
            ([calls(("restart", BROKEN)), calls(("restart", {"name": "pods"})), Turn("Done.")], "Done."),
            ([calls(("read_skill", BROKEN)), Turn("Done.")], "Done."),
            ([Turn("Nothing to do.")], "Nothing to do."),
        ],
        ids=["succeeded", "made good", "without a skill", "without tools"],
    )
    async def test_the_answer_is_the_models(self, turns: Sequence[Turn], answer: str) -> None:
        assert await work(graph(WorkflowStep(), *turns), self.STEP, *EARLIER) == answer

    @pytest.mark.parametrize(
        ("turns", "reason"),
        [
            ([calls(("restart", BROKEN)), Turn("Done.")], "the backend is down"),
            ([calls(("restart", {})), calls(("restart", BROKEN)), Turn("Done.")], "the backend is down"),
            ([calls(("restart", BROKEN)), calls(("look", {"name": "pods"})), Turn("Done.")], "the backend is down"),
            ([calls(("restart", BROKEN), ("look", BROKEN)), Turn("Done.")], "It cannot be seen."),
            ([calls(("look", BROKEN), ("restart", BROKEN)), Turn("Done.")], "the backend is down"),
            (
                [calls(("look", BROKEN), ("restart", BROKEN)), calls(("look", BROKEN)), Turn("Done.")],
                "It cannot be seen.",
            ),
        ],
        ids=["failed", "failed at last", "another succeeded", "the last", "the last reversed", "failed again"],
    )
    async def test_a_failure_that_was_not_made_good_fails_the_step(self, turns: Sequence[Turn], reason: str) -> None:
        with pytest.raises(StepFailedError) as failed:
            await work(graph(WorkflowStep(), *turns), self.STEP)
        assert str(failed.value) == reason

    async def test_work_that_is_no_step_may_fail(self) -> None:
        turns = [calls(("restart", BROKEN)), Turn("It failed.")]
        assert await work(graph(WorkflowStep(), *turns)) == "It failed."

    @pytest.mark.parametrize(
        ("result", "reason"),
        [
            (ToolMessage("No.", tool_call_id="a", status="error", artifact={"reason": "refused"}), "refused"),
            (ToolMessage("No.", tool_call_id="a", status="error", artifact={"reason": ""}), "No."),
            (ToolMessage("No.", tool_call_id="a", status="error", artifact={"other": "refused"}), "No."),
            (ToolMessage("No.", tool_call_id="a", status="error", artifact="reason"), "No."),
            (ToolMessage("", tool_call_id="a", status="error"), "The tool failed without saying why."),
        ],
    )
    async def test_the_reason_is_the_sentence_for_people_or_what_the_tool_said(
        self, result: ToolMessage, reason: str
    ) -> None:
        class Answering(WorkflowStep):
            async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
                return result.model_copy(update={"tool_call_id": request.tool_call["id"]})

        with pytest.raises(StepFailedError) as failed:
            await work(graph(Answering()), {"tool": "look"})
        assert str(failed.value) == reason


class TestUndoneWork:
    async def undone(self, *turns: Turn, earlier: Sequence[Any] = (), tools: Sequence[BaseTool] = TOOLS) -> str:
        with pytest.raises(NotDoneError) as undone:
            await work(graph(SuccessCheck(), *turns, tools=tools), None, *earlier)
        assert isinstance(undone.value, ReadableError)
        assert undone.value.code == "agent"
        return str(undone.value)

    async def test_an_agent_whose_calls_all_failed_has_failed_with_its_answer(self) -> None:
        turns = [calls(("restart", BROKEN), ("look", BROKEN)), Turn(" Neither worked. ")]
        assert await self.undone(*turns, earlier=SUCCEEDED) == "Neither worked."

    @pytest.mark.parametrize(
        "turns",
        [
            [calls(("restart", BROKEN), ("look", {})), Turn("One worked.")],
            [Turn("One worked.")],
            [calls(("read_skill", BROKEN)), Turn("One worked.")],
            [calls(("read_result", {"result_id": "none"})), Turn("One worked.")],
        ],
        ids=["one succeeded", "no calls", "only instructions", "only reading on"],
    )
    async def test_one_with_a_success_or_without_work_has_not(self, turns: Sequence[Turn]) -> None:
        assert await work(graph(SuccessCheck(), *turns), None, *EARLIER) == "One worked."

    async def test_instructions_that_were_read_are_no_success(self) -> None:
        turns = [calls(("read_skill", {}), ("restart", BROKEN)), Turn("It failed.")]
        assert await self.undone(*turns) == "It failed."

    async def test_a_model_that_says_so_has_not_done_it(self) -> None:
        turn = Turn("Not possible. ", metadata={"not_done": "no such thing"})
        assert await self.undone(calls(("look", {})), turn) == "Not possible."

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("I began. ", f"{CUT_SENTENCES['content_filter']} I began."),
            (f"{CUT_SENTENCES['content_filter']} So.", f"{CUT_SENTENCES['content_filter']} So."),
        ],
    )
    async def test_a_model_that_declines_has_not_done_it(self, text: str, said: str) -> None:
        declines = Turn(text, metadata={"finish_reason": "content_filter"})
        assert await self.undone(calls(("look", {})), declines) == said

    async def test_a_turn_that_was_cut_off_for_its_length_is_an_answer(self) -> None:
        turn = Turn("It is", metadata={"finish_reason": "length"})
        assert await work(graph(SuccessCheck(), turn)) == "It is"


class TestUnfinishedWork:
    async def broken(self, *turns: Turn, earlier: Sequence[Any] = ()) -> Exception:
        with pytest.raises(Exception) as broken:  # noqa: PT011 - the error is checked by the caller
            await work(graph(CompletedToolsNote(), *turns), None, *earlier)
        return broken.value

    async def test_it_says_which_tools_had_completed(self) -> None:
        error = ReadableError("The model is not available.")
        error.code = "model"
        turns = [
            calls(("restart", {}), ("read_skill", {}), ("look", BROKEN)),
            calls(("look", {}), ("restart", {})),
            Turn("", error=error),
        ]
        failed = await self.broken(*turns)
        assert isinstance(failed, UnfinishedWorkError)
        assert str(failed) == (
            "The model is not available. Completed before: restart, look. Check before asking again."
        )
        assert failed.code == "model"
        assert failed.__cause__ is error

    @pytest.mark.parametrize(
        "turns", [[], [calls(("restart", BROKEN))], [calls(("read_skill", {}))]], ids=["none", "failed", "instructions"]
    )
    async def test_where_nothing_had_the_error_is_left_alone(self, turns: Sequence[Turn]) -> None:
        error = ReadableError("The model is not available.")
        assert await self.broken(*turns, Turn("", error=error), earlier=SUCCEEDED) is error

    async def test_what_stops_a_graph_is_no_failure(self) -> None:
        stop = GraphBubbleUp()
        assert await self.broken(calls(("restart", {})), Turn("", error=stop)) is stop

    async def test_work_that_goes_well_is_left_alone(self) -> None:
        assert await work(graph(CompletedToolsNote(), calls(("restart", {})), Turn("Done."))) == "Done."
