"""What the offline model reads out of a list of messages: every call with its own result, however calls are named."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from ai_platform_engineering.offline_model.messages.conversation import parse_conversation
from ai_platform_engineering.utils.summaries import summary_message

Said = tuple[str, str | None]


def turn(*ids: str | None, words: str = "") -> AIMessage:
    """Each call asks for the id it has, and the words of its turn."""
    calls = [{"name": "search", "args": {"query": f"{words}{call_id}"}, "id": call_id} for call_id in ids]
    return AIMessage("", tool_calls=calls)


def result(call_id: str, text: str) -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id)


@pytest.mark.parametrize(
    ("messages", "uses"),
    [
        ([turn("a", "b"), result("b", "2"), result("a", "1")], [("a", "1"), ("b", "2")]),
        (
            [turn("0", words="x"), result("0", "1"), turn("0", words="y"), result("0", "2")],
            [("x0", "1"), ("y0", "2")],
        ),
        ([turn("0", words="x"), turn("0", words="y"), result("0", "2")], [("x0", None), ("y0", "2")]),
        ([turn("0", "0"), result("0", "1"), result("0", "2")], [("0", "1"), ("0", "2")]),
        ([turn(None, None), result("", "1"), result("", "2")], [("None", "1"), ("None", "2")]),
        ([turn("a"), turn("b"), result("b", "2"), result("a", "1")], [("a", "1"), ("b", "2")]),
        ([turn("a"), result("a", "1"), result("a", "2")], [("a", "2")]),
        ([turn("a"), result("b", "2")], [("a", None)]),
    ],
    ids=[
        "in any order",
        "numbered anew in every turn",
        "numbered anew, and one was never answered",
        "one id for all",
        "no id",
        "answered late",
        "answered twice",
        "without a call",
    ],
)
def test_results_belong_to_their_calls(messages: Sequence[BaseMessage], uses: list[Said]) -> None:
    read = parse_conversation([HumanMessage("q"), *messages], may_use_tools=True)
    assert [(use.arguments["query"], use.result) for use in read.current.uses] == uses


def test_a_result_that_is_an_error_says_so() -> None:
    failed = ToolMessage("no", tool_call_id="a", status="error")
    read = parse_conversation([HumanMessage("q"), turn("a", "b"), failed, result("b", "yes")], may_use_tools=True)
    assert [use.failed for use in read.current.uses] == [True, False]


def test_a_summary_of_earlier_turns_is_no_question() -> None:
    summary = summary_message("Deploy argocd was asked.", {"turns": 3}, "m")
    read = parse_conversation([summary, HumanMessage("q"), turn("a"), result("a", "1")], may_use_tools=True)
    assert (read.earlier, read.current.question) == ((), "q")
    last = parse_conversation([summary, HumanMessage("answer now")], may_use_tools=False)
    assert (last.current.question, last.instruction) == ("answer now", "")
