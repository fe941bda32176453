"""The turn that must be the answer: at the step limit, after refused calls, after silence."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from ai_platform_engineering.events import FinalResult, TextDelta
from ai_platform_engineering.final_results import CUT_SENTENCES, CutReason
from ai_platform_engineering.graphs.agent_graph import agent_graph
from ai_platform_engineering.graphs.last_turn import answer_only, without_tools
from ai_platform_engineering.llm.finish_reasons import cut_reason
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
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

    def part(cue: ModelInput) -> Turn:
        offered.append(tuple(cue.tools))
        if cue.tools:
            return Turn("I look.", [("version", {})])
        assert cue.question.startswith("You have used all the steps you may take.")
        return Turn("It is v3 so far.")

    events = await events_of(
        agent("supervisor", ScriptedChatModel(script=part), [version], LANGGRAPH_RECURSION_LIMIT=steps(2))
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
    def part(cue: ModelInput) -> Turn:
        return last if not cue.tools else Turn("", [("version", {})])

    ending = check(
        await events_of(
            agent("supervisor", ScriptedChatModel(script=part), [version], LANGGRAPH_RECURSION_LIMIT=steps(2))
        )
    )
    assert isinstance(ending, FinalResult)
    assert ending.text == answer


class WholeMessages(ScriptedChatModel):
    """A model that does not stream, so that only its message has an id."""

    disable_streaming: bool = True


@pytest.mark.parametrize("kind", [ScriptedChatModel, WholeMessages])
async def test_the_conversation_keeps_the_answer_under_the_id_that_people_saw(kind: type[ScriptedChatModel]) -> None:
    def part(cue: ModelInput) -> Turn:
        return Turn("", [("version", {})]) if cue.tools else Turn("It is v3 so far.")

    settings = settings_of(LANGGRAPH_RECURSION_LIMIT=steps(1))
    graph = agent_graph(
        settings, kind(script=part), [version], "You look.", name="supervisor", checkpointer=InMemorySaver()
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
    ending = check(await events_of(agent("supervisor", ScriptedChatModel(script=[Turn("")]))))
    assert isinstance(ending, FinalResult)
    assert ending.text == "The model wrote no answer of its own. Nothing had been gathered yet."


class Closing(AgentMiddleware[Any, Any, Any]):
    """Makes every turn the last one, as a spent budget does, with words of its own for a missing answer."""

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return answer_only(await handler(without_tools(request, "Answer now.")), lambda: "The budget is spent.")


async def test_a_turn_that_is_the_last_already_is_not_asked_for_again() -> None:
    questions: list[str] = []

    def part(cue: ModelInput) -> Turn:
        questions.append(cue.question)
        return Turn("")

    graph = agent_graph(
        settings_of(),
        ScriptedChatModel(script=part),
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


async def answer_of(part: Any, **environ: str) -> FinalResult:
    graph = agent("supervisor", ScriptedChatModel(script=part), [version], **environ)
    ending = check(await events_of(graph))
    assert isinstance(ending, FinalResult)
    return ending


class Recorded:
    """A part that gives these turns and keeps what the model was sent."""

    def __init__(self, *turns: Turn) -> None:
        self._turns = [*turns]
        self.cues: list[ModelInput] = []

    def __call__(self, cue: ModelInput) -> Turn:
        self.cues.append(cue)
        return self._turns.pop(0)

    @property
    def sent(self) -> list[tuple[str, bool]]:
        """The beginning of the last message of each turn, and whether there were tools."""
        return [(str(cue.messages[-1].text)[:30], bool(cue.tools)) for cue in self.cues]


MALFORMED = {"finish_reason": "malformed_function_call"}
CALLS = Turn("", [("version", {})])
UNREADABLE = "Your tool call could not be read. Make it again with valid JSON arguments, or write the answer."[:30]
NOTHING = "You have not written anything. Write the answer now from what you have gathered above."[:30]
REFUSED = "Your last tool calls could not be executed. Do not call any tool."[:30]


async def test_a_call_that_the_provider_dropped_is_asked_for_again() -> None:
    part = Recorded(Turn("I look.", metadata=MALFORMED), CALLS, Turn("It is v3."))
    assert (await answer_of(part)).text == "It is v3."
    assert part.sent == [("q", True), (UNREADABLE, True), ("v3", True)]
    assert str(part.cues[1].messages[-1].text).endswith("or write the answer.")


async def test_one_that_is_dropped_twice_leaves_only_words() -> None:
    part = Recorded(Turn("I look.", metadata=MALFORMED), Turn("Again.", metadata=MALFORMED), Turn("No version."))
    assert (await answer_of(part)).text == "No version."
    assert part.sent == [("q", True), (UNREADABLE, True), (NOTHING, False)]


async def test_silence_after_work_is_answered_for_with_what_was_gathered() -> None:
    part = Recorded(CALLS, Turn(" "), Turn(""))
    assert (await answer_of(part)).text == "The model wrote no answer of its own. What was gathered:\n\nv3"
    assert part.sent == [("q", True), ("v3", True), (NOTHING, False)]


async def test_a_model_that_declines_without_words_is_not_asked_again() -> None:
    part = Recorded(CALLS, Turn("", metadata={"finish_reason": "content_filter"}))
    ending = await answer_of(part)
    assert (ending.text, ending.limit) == (f"{CUT_SENTENCES['content_filter']}\n\nv3", "content_filter")
    assert len(part.cues) == 2


CUT_CALL = Turn("", [("version", {})], metadata={"finish_reason": "length"})


async def test_after_three_turns_of_refused_calls_only_words_are_left() -> None:
    part = Recorded(CALLS, CUT_CALL, CUT_CALL, CUT_CALL, Turn("It is v3."))
    ending = await answer_of(part)
    assert (ending.text, ending.limit) == ("It is v3.", "output_length")
    assert [tools for _, tools in part.sent] == [True, True, True, True, False]
    assert part.sent[-1][0] == REFUSED
    silent = Recorded(CALLS, CUT_CALL, CUT_CALL, CUT_CALL, Turn(""))
    assert (await answer_of(silent)).text.startswith("The model's tool calls could not be executed. What was gathered:")
    twice = Recorded(CUT_CALL, CUT_CALL, CALLS, Turn("It is v3."))
    ending = await answer_of(twice)
    assert (ending.text, ending.limit) == ("It is v3.", None)


async def test_the_last_turn_is_the_one_after_which_no_round_fits() -> None:
    rounds = [CALLS] * 3
    assert (await answer_of(Recorded(*rounds, Turn("It is v3.")), LANGGRAPH_RECURSION_LIMIT=steps(3))).limit == (
        "recursion_limit"
    )
    assert (await answer_of(Recorded(*rounds, Turn("It is v3.")), LANGGRAPH_RECURSION_LIMIT=steps(4))).limit is None


async def test_the_last_turn_of_another_is_not_repeated_for_a_dropped_call() -> None:
    part = Recorded(Turn("I look.", metadata=MALFORMED))
    graph = agent_graph(
        settings_of(),
        ScriptedChatModel(script=part),
        [version],
        "You answer.",
        name="supervisor",
        middleware=[Closing()],
    )
    ending = check(await events_of(graph))
    assert isinstance(ending, FinalResult)
    assert ending.text == "I look."


def test_a_last_turn_has_no_tools_and_nothing_that_demands_them() -> None:
    request: ModelRequest[Any] = ModelRequest(
        model=ScriptedChatModel(script=[]), messages=[], tools=[version], tool_choice="any", response_format=dict
    )
    last = without_tools(request, "Answer now.")
    assert (last.tools, last.tool_choice, last.response_format) == ([], None, None)
    assert [(message.type, message.text) for message in last.messages] == [("human", "Answer now.")]
