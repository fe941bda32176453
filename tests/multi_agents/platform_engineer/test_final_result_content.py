"""The answer: never empty, once, and the same in the stream and in the final result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic import BaseModel

from ai_platform_engineering.events import Failed, FinalResult, MessageEnded, TextDelta
from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.runs.answers import gathered_text, structured_text
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from tests.invariants import check
from tests.runs.graphs import agent, context, events_of


class ResponseFormat(BaseModel):
    content: str
    is_task_complete: bool = True


class Findings(BaseModel):
    version: str
    healthy: bool


class NotStreaming(ScriptedChatModel):
    """A model that can only give its whole message at once."""

    disable_streaming: bool = True


@pytest.mark.parametrize("model_class", [ScriptedChatModel, NotStreaming])
async def test_the_answer_is_streamed_once_and_is_the_final_result(model_class: type[ScriptedChatModel]) -> None:
    events = await events_of(agent("supervisor", model_class(script=[Turn("All is well.")])))
    ending = check(events)
    assert isinstance(ending, FinalResult)
    assert ending.text == "All is well."
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "All is well."


@pytest.mark.parametrize(
    ("response_format", "arguments", "answer"),
    [
        (ResponseFormat, {"content": "Argo CD is v2.14.9."}, "Argo CD is v2.14.9."),
        (Findings, {"version": "v2.14.9", "healthy": True}, '{"version": "v2.14.9", "healthy": true}'),
    ],
)
async def test_a_structured_answer_is_sent_as_one_piece_and_as_the_final_result(
    response_format: type[BaseModel], arguments: dict[str, Any], answer: str
) -> None:
    model = ScriptedChatModel(script=[Turn("", [(response_format.__name__, arguments)])])
    graph = create_agent(model, [], response_format=response_format, context_schema=RequestContext, name="supervisor")
    events = await events_of(graph)
    ending = check(events)
    assert isinstance(ending, FinalResult)
    assert ending.text == answer
    assert [event.text for event in events if isinstance(event, TextDelta)] == [answer]


async def test_a_model_that_writes_nothing_is_asked_once_more() -> None:
    def part(cue: ModelInput) -> Turn:
        return Turn("Here it is.") if cue.question.startswith("You have not written anything") else Turn("")

    ending = check(await events_of(agent("supervisor", ScriptedChatModel(script=part))))
    assert isinstance(ending, FinalResult)
    assert ending.text == "Here it is."


async def test_a_model_that_never_writes_still_gives_an_answer() -> None:
    ending = check(await events_of(agent("supervisor", ScriptedChatModel(script=[Turn("")]))))
    assert isinstance(ending, FinalResult)
    assert "wrote no answer" in ending.text


async def test_a_foreign_graph_that_ends_without_an_answer_fails_plainly() -> None:
    graph = create_agent(ScriptedChatModel(script=[Turn("")]), [], context_schema=RequestContext, name="supervisor")
    ending = check(await events_of(graph))
    assert isinstance(ending, Failed)
    assert ending.code == "empty_answer"


@pytest.mark.parametrize("kind", [ScriptedChatModel, NotStreaming])
async def test_words_that_nobody_sees_are_not_told_and_all_else_is_the_same(kind: type[ScriptedChatModel]) -> None:
    @tool
    def version() -> str:
        """The version."""
        return "v3"

    def graph() -> Graph:
        return agent("argocd", kind(script=[Turn("I look.", [("version", {})]), Turn("It is v3.")]), [version])

    streamed = await events_of(graph())
    quiet = await events_of(graph(), ctx=replace(context(), stream_text=False))
    of_text = {TextDelta, MessageEnded}
    assert of_text <= {type(event) for event in streamed}
    assert [type(event) for event in quiet] == [type(event) for event in streamed if type(event) not in of_text]
    assert [event.text for event in quiet if isinstance(event, FinalResult)] == ["It is v3."]


async def test_only_the_text_of_content_blocks_is_shown() -> None:
    class Blocks(ScriptedChatModel):
        disable_streaming: bool = True

        async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
            content: list[str | dict[str, Any]] = [
                {"type": "reasoning", "reasoning": "secret thoughts"},
                {"type": "text", "text": "Seen "},
                {"type": "text", "text": "by people."},
            ]
            return ChatResult(generations=[ChatGeneration(message=AIMessage(content=content))])

    events = await events_of(agent("supervisor", Blocks(script=[])))
    ending = check(events)
    assert isinstance(ending, FinalResult)
    assert ending.text == "Seen by people."
    assert "secret thoughts" not in repr(events)


def test_structured_text_prefers_the_words() -> None:
    assert structured_text({"answer": "yes", "score": 1}) == "yes"
    assert structured_text({"content": " ", "score": 1}) == '{"content": " ", "score": 1}'
    assert structured_text("plain") == "plain"
    assert structured_text(["a", 1]) == '["a", 1]'
    assert structured_text({"größe": Path("ä")}) == '{"größe": "ä"}'


def test_structured_text_takes_models_and_dataclasses() -> None:
    class Release(BaseModel):
        day: date

    @dataclass
    class Version:
        answer: str

    assert structured_text(Release(day=date(2026, 4, 8))) == '{"day": "2026-04-08"}'
    assert structured_text(Version("v3")) == "v3"
    assert "Version" in structured_text(Version), "a class is no answer of its own"


def test_gathered_text_is_of_the_last_request_without_failures_and_repeats() -> None:
    messages = [
        HumanMessage("first"),
        ToolMessage("old", tool_call_id="1"),
        HumanMessage("second"),
        ToolMessage("new", tool_call_id="2"),
        ToolMessage("new", tool_call_id="3"),
        ToolMessage("broken", tool_call_id="4", status="error"),
    ]
    assert gathered_text(messages) == "new"
    more = [ToolMessage(" ", tool_call_id="5"), ToolMessage("other", tool_call_id="6")]
    skills = [ToolMessage("Do this.", name=name, tool_call_id=name) for name in ("read_skill", "search_skills")]
    assert gathered_text([*messages, *more, *skills]) == "new\n\nother"
