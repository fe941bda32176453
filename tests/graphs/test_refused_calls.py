"""Calls that must not run: how a turn is checked, and what becomes of its calls in a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from ai_platform_engineering.compat.langchain_openai import RAW_ARGUMENTS
from ai_platform_engineering.events import FinalResult, ToolFinished
from ai_platform_engineering.graphs.agent_graph import agent_graph
from ai_platform_engineering.graphs.approval_gate import ApprovalGate
from ai_platform_engineering.graphs.approval_policy import ApprovalRequired
from ai_platform_engineering.graphs.refused_calls import REFUSED, checked, refused_turns
from tests.invariants import check
from tests.runs.graphs import agent, context, events_of, settings_of


class Turns(BaseChatModel):
    """Gives these messages, one for each turn."""

    turns: list[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "turns"

    def bind_tools(self, tools: Sequence[Any], **_more: Any) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=tools)

    def _generate(
        self, _messages: list[BaseMessage], _stop: list[str] | None = None, _manager: Any = None, **_given: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.turns.pop(0))])


async def test_a_call_that_was_cut_off_needs_no_approval() -> None:
    deleted: list[str] = []

    @tool
    def delete_application(name: str) -> str:
        """Deletes an application."""
        deleted.append(name)
        return "deleted"

    cut = AIMessage(
        "",
        tool_calls=[{"name": "delete_application", "args": {"name": "guestbook-stag"}, "id": "a"}],
        response_metadata={"finish_reason": "length"},
    )
    graph = agent_graph(
        settings_of(),
        Turns(turns=[cut, AIMessage("Nothing was deleted.")]),
        [delete_application],
        "You delete.",
        name="supervisor",
        middleware=[ApprovalGate("supervisor", lambda _tool, _args: ApprovalRequired("destructive"))],
        checkpointer=InMemorySaver(),
    )
    events = await events_of(graph)
    ending = check(events)
    assert isinstance(ending, FinalResult)
    assert deleted == []
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert finished.reason == "not executed: the model's turn was cut off by its output limit"


CALL: dict[str, Any] = {"name": "sync", "args": {"app": "shop"}, "id": "a", "type": "tool_call"}
INVALID: dict[str, Any] = {"name": "sync", "args": '{"app": ', "id": "b", "error": None, "type": "invalid_tool_call"}
CUT = {"finish_reason": "length"}


def refused(message: AIMessage) -> Any:
    return message.response_metadata.get(REFUSED)


def test_a_whole_turn_stays_as_it_is_without_the_text_of_its_arguments() -> None:
    words = AIMessage("Done.", response_metadata={"finish_reason": "stop"}, id="m")
    assert checked(words) is words
    beside = {"tool_calls": [{"id": "a", "function": {"name": "sync", "arguments": "{}"}}], RAW_ARGUMENTS: {"0": "{}"}}
    whole = AIMessage("", tool_calls=[CALL], id="m").model_copy(update={"additional_kwargs": beside})
    result = checked(whole)
    assert result.model_copy(update={"additional_kwargs": beside}) == whole
    assert result.additional_kwargs == {"tool_calls": beside["tool_calls"]}


def test_a_turn_that_was_cut_off_says_so_and_refuses_all_its_calls() -> None:
    assert checked(AIMessage("It is", response_metadata=CUT)).response_metadata == {**CUT, "cut_off": "output_length"}
    result = checked(AIMessage("I sync.", tool_calls=[CALL, {**CALL, "id": "b"}], response_metadata=CUT, id="m"))
    assert refused(result) == {"a": "output_length", "b": "output_length"}
    assert result.response_metadata["cut_off"] == "output_length"
    assert (result.text, result.id) == ("I sync.", "m")
    assert result.tool_calls == [CALL, {**CALL, "id": "b"}]


def test_arguments_that_are_no_json_refuse_their_call_alone() -> None:
    result = checked(AIMessage("", tool_calls=[CALL], invalid_tool_calls=[INVALID]))
    assert result.tool_calls == [CALL, {"name": "sync", "args": {}, "id": "b", "type": "tool_call"}]
    assert (result.invalid_tool_calls, refused(result)) == ([], {"b": "invalid_arguments"})
    nameless = checked(AIMessage("", invalid_tool_calls=[{**INVALID, "name": None, "id": None}]))
    [call] = nameless.tool_calls
    assert (call["name"], call["args"]) == ("unnamed_tool", {})
    assert refused(nameless) == {call["id"]: "invalid_arguments"}


@pytest.mark.parametrize("taken", ["a", None, ""])
def test_an_id_that_is_missing_or_was_used_before_becomes_a_new_one(taken: str | None) -> None:
    earlier: list[AnyMessage] = [HumanMessage("q"), AIMessage("", tool_calls=[CALL])]
    result = checked(AIMessage("", tool_calls=[{**CALL, "id": taken}], id="m"), earlier)
    [call] = result.tool_calls
    assert call["id"] not in {"a", "", None}
    assert call == {**CALL, "id": call["id"]}
    assert str(call["id"]).startswith("call_")
    assert len(str(call["id"])) == 29
    assert (refused(result), result.id) == (None, "m")


def test_an_id_that_a_turn_has_twice_is_new_the_second_time() -> None:
    first, second = checked(AIMessage("", tool_calls=[CALL, CALL])).tool_calls
    assert first == CALL
    assert second["id"] != "a"


def test_content_blocks_follow_the_calls() -> None:
    text = {"type": "text", "text": "I sync."}
    block = {"type": "tool_use", "id": "a", "name": "sync", "input": {"app": "shop"}}
    broken = {"type": "tool_use", "id": "b", "name": "sync", "input": {}, "partial_json": '{"app": '}
    turn = AIMessage([text, block, broken], tool_calls=[CALL, {**CALL, "id": "b", "args": {}}])
    result = checked(turn, [AIMessage("", tool_calls=[CALL])])
    new = result.tool_calls[0]["id"]
    assert result.content == [
        text,
        {**block, "id": new},
        {"type": "tool_use", "id": "b", "name": "sync", "input": {}},
    ]
    assert refused(result) == {"b": "invalid_arguments"}
    # A whole call under its own id is not rewritten.
    kept = checked(turn)
    assert isinstance(kept.content, list)
    assert kept.content[1] is turn.content[1]


def test_signatures_by_call_id_follow_and_an_older_form_of_the_calls_goes() -> None:
    beside = {
        "tool_calls": [{"id": "a", "function": {"name": "sync", "arguments": "{}"}}],
        "signatures": {"a": "s", "other": "o"},
        "others": {"z": 1},
        "note": "n",
    }
    turn = AIMessage("", tool_calls=[CALL]).model_copy(update={"additional_kwargs": beside})
    result = checked(turn, [AIMessage("", tool_calls=[CALL])])
    new = result.tool_calls[0]["id"]
    assert result.additional_kwargs == {
        "signatures": {"a": "s", "other": "o", new: "s"},
        "others": {"z": 1},
        "note": "n",
    }


def test_the_reasons_of_the_latest_turns_in_which_every_call_was_refused() -> None:
    def turn(*reasons: str | None) -> AIMessage:
        calls = [{**CALL, "id": str(number)} for number in range(len(reasons))]
        recorded = {str(number): reason for number, reason in enumerate(reasons) if reason}
        return AIMessage("", tool_calls=calls, response_metadata={REFUSED: recorded})

    result = ToolMessage("No.", tool_call_id="0")
    cut, invalid, partly = turn("output_length", "refusal"), turn("invalid_arguments"), turn("refusal", None)
    question = HumanMessage("q")
    assert refused_turns([question, cut, result, invalid, result]) == ["invalid_arguments", "output_length"]
    assert refused_turns([cut, question, invalid]) == ["invalid_arguments"]
    assert refused_turns([cut, partly, invalid]) == ["invalid_arguments"]
    assert refused_turns([cut, AIMessage("Words."), invalid]) == ["invalid_arguments"]
    assert refused_turns([cut, AIMessage("", tool_calls=[CALL])]) == []
    assert refused_turns([cut, AIMessage("", tool_calls=[CALL], response_metadata={REFUSED: "strange"})]) == []
    assert refused_turns([]) == []


@pytest.mark.parametrize(
    ("turn", "content", "reason"),
    [
        (
            AIMessage("", tool_calls=[CALL], response_metadata={"finish_reason": "content_filter"}),
            "This call was not executed: a content filter stopped your turn. Make the call again without the filtered "
            "content, or answer without it.",
            "not executed: the content filter stopped the model's turn",
        ),
        (
            AIMessage("", invalid_tool_calls=[{**INVALID, "id": "a"}]),
            "This call was not executed: its arguments were not valid JSON. Make the call again with one JSON object "
            "as arguments.",
            "not executed: its arguments were not valid JSON",
        ),
    ],
)
async def test_a_refused_call_is_answered_and_the_others_run(turn: AIMessage, content: str, reason: str) -> None:
    ran: list[str] = []

    @tool
    def sync(app: str) -> str:
        """Syncs."""
        ran.append(app)
        return "synced"

    turns = [turn, AIMessage("", tool_calls=[{**CALL, "id": "z"}]), AIMessage("Done.")]
    state = await agent("jira", Turns(turns=turns), [sync]).ainvoke(
        {"messages": [HumanMessage("q")]}, context=context()
    )
    first, second = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    assert (first.text, first.name, first.tool_call_id, first.status) == (content, "sync", "a", "error")
    assert first.artifact == {"reason": reason}
    assert (second.text, second.status, ran) == ("synced", "success", ["shop"])


class Unreadable(BaseModel):
    number: int


class RaisesOnce(Turns):
    """Raises for its first turn, as LangChain's class for OpenAI Responses does for arguments that are no object."""

    def _generate(self, *given: Any, **more: Any) -> ChatResult:
        if len(self.turns) > 1:
            self.turns.pop(0)
            Unreadable.model_validate({"number": "none"})
        return super()._generate(*given, **more)


async def test_a_turn_that_cannot_be_read_is_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    model = RaisesOnce(turns=[AIMessage("never"), AIMessage("Done.")])
    ending = check(await events_of(agent("supervisor", model)))
    assert isinstance(ending, FinalResult)
    assert ending.text == "Done."
    assert "The model's turn could not be read" in caplog.messages
