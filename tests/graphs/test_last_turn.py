"""The turn that must be the answer: at the step limit, after refused calls, after silence."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelResponse
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from ai_platform_engineering.events import FinalResult, TextDelta
from ai_platform_engineering.limits import CUT_SENTENCES, CutReason
from ai_platform_engineering.utils.graphs.agent_graph import agent_graph
from ai_platform_engineering.utils.graphs.last_turn import answer_only, without_tools
from ai_platform_engineering.utils.llm.finish_reasons import cut_reason
from ai_platform_engineering.utils.llm.scripted import Cue, ScriptedChatModel, Turn
from tests.invariants import check
from tests.runs.graphs import agent, context, events_of, settings_of


@tool
def version() -> str:
    """The version."""
    return "v3"


def steps(count: int) -> str:
    """A limit that leaves the model so many turns with tools, each of a model and a tool step, and the last one."""
    return str(2 * count + 2)


async def test_at_the_step_limit_the_answer_is_the_message_that_streamed() -> None:
    offered: list[tuple[str, ...]] = []

    def part(cue: Cue) -> Turn:
        offered.append(tuple(cue.tools))
        if cue.tools:
            return Turn("I look.", [("version", {})])
        assert cue.question.startswith("You have used all the steps you may take.")
        return Turn("It is v3 so far.")

    events = await events_of(
        agent("supervisor", ScriptedChatModel(part=part), [version], LANGGRAPH_RECURSION_LIMIT=steps(2))
    )
    ending = check(events)
    assert isinstance(ending, FinalResult)
    assert (ending.text, ending.limit) == ("It is v3 so far.", "recursion_limit")
    streamed = [event for event in events if isinstance(event, TextDelta) and event.text.startswith("It")]
    assert {event.message_id for event in streamed} == {ending.answer_message_id}
    assert offered[-1] == ()
    assert all("version" in tools for tools in offered[:-1])


@pytest.mark.parametrize(
    ("last", "answer"),
    [
        (
            Turn("", [("version", {})]),
            "The step limit was reached before the work was finished. What was gathered:\n\nv3",
        ),
        (
            Turn("I look again.", [("version", {})]),
            "I look again.\n\nThe step limit was reached before the work was finished. What was gathered:\n\nv3",
        ),
    ],
    ids=["calls", "words and calls"],
)
async def test_a_model_that_calls_tools_to_the_end_is_answered_for(last: Turn, answer: str) -> None:
    def part(cue: Cue) -> Turn:
        return last if not cue.tools else Turn("", [("version", {})])

    ending = check(
        await events_of(
            agent("supervisor", ScriptedChatModel(part=part), [version], LANGGRAPH_RECURSION_LIMIT=steps(2))
        )
    )
    assert isinstance(ending, FinalResult)
    assert ending.text == answer


class WholeMessages(ScriptedChatModel):
    """A model that does not stream, so that only its message has an id."""

    disable_streaming: bool = True


@pytest.mark.parametrize("kind", [ScriptedChatModel, WholeMessages])
async def test_the_conversation_keeps_the_answer_under_the_id_that_people_saw(kind: type[ScriptedChatModel]) -> None:
    def part(cue: Cue) -> Turn:
        return Turn("", [("version", {})]) if cue.tools else Turn("It is v3 so far.")

    settings = settings_of(LANGGRAPH_RECURSION_LIMIT=steps(1))
    graph = agent_graph(
        settings, kind(part=part), [version], "You look.", name="supervisor", checkpointer=InMemorySaver()
    )
    ending = check(await events_of(graph, ctx=context()))
    assert isinstance(ending, FinalResult)
    state = await graph.aget_state({"configurable": {"thread_id": context().context_id}})
    assert (state.values["messages"][-1].text, state.values["messages"][-1].id) == (
        "It is v3 so far.",
        ending.answer_message_id,
    )
    assert ending.answer_message_id.startswith("lc_run"), "the id that the model gave its message"


async def test_silence_before_anything_was_gathered_says_so() -> None:
    ending = check(await events_of(agent("supervisor", ScriptedChatModel(part=[Turn("")]))))
    assert isinstance(ending, FinalResult)
    assert ending.text == "The model wrote no answer of its own. Nothing had been gathered yet."


class Closing(AgentMiddleware[Any, Any, Any]):
    """Makes every turn the last one, as a spent budget does, with words of its own for a missing answer."""

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return answer_only(await handler(without_tools(request, "Answer now.")), lambda: "The budget is spent.")


async def test_a_turn_that_is_the_last_already_is_not_asked_for_again() -> None:
    questions: list[str] = []

    def part(cue: Cue) -> Turn:
        questions.append(cue.question)
        return Turn("")

    graph = agent_graph(
        settings_of(),
        ScriptedChatModel(part=part),
        [version],
        "You answer.",
        name="supervisor",
        middleware=[Closing()],
    )
    ending = check(await events_of(graph))
    assert isinstance(ending, FinalResult)
    assert ending.text == "The budget is spent."
    assert questions == ["Answer now."]


def answer(*messages: AIMessage | ToolMessage, cut: CutReason | None = None) -> AIMessage:
    (message,) = answer_only(ModelResponse(result=list(messages)), lambda: "What was gathered.", cut).result
    assert isinstance(message, AIMessage)
    return message


def test_a_response_without_a_message_of_the_model_is_answered_for() -> None:
    assert answer(ToolMessage("v3", tool_call_id="c")).text == "What was gathered."


def test_an_answer_says_whether_it_was_cut_or_an_earlier_turn_was() -> None:
    whole = AIMessage("It is v3.")
    cut = AIMessage("It is", response_metadata={"finish_reason": "length"})
    assert [cut_reason(answer(whole)), cut_reason(answer(cut))] == [None, "output_length"]
    assert cut_reason(answer(whole, cut="content_filter")) == "content_filter"
    assert cut_reason(answer(cut, cut="content_filter")) == "output_length"
    assert answer(whole).response_metadata == {}


def test_a_model_that_declined_says_so_before_the_results_and_a_cut_one_does_not() -> None:
    declined = AIMessage(" ", response_metadata={"finish_reason": "content_filter"})
    assert answer(declined).text == f"{CUT_SENTENCES['content_filter']}\n\nWhat was gathered."
    cut = AIMessage("", response_metadata={"finish_reason": "length"})
    assert answer(cut).text == "What was gathered."
