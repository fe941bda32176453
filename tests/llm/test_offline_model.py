"""The offline model as a chat model: streaming, identity, tools in every form they are bound in."""

from __future__ import annotations

import json
import time
from functools import reduce
from operator import add

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool as make_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field

from ai_platform_engineering.llm.scripted import ScriptedChatModel, Turn
from ai_platform_engineering.offline_model import OfflineChatModel
from tests.counted_threads import CountedThreads
from tests.llm.offline_world import APPLICATIONS, argocd_tools, calls_of, jira_tools, run_supervisor, supervisor_tools

MODEL = OfflineChatModel()
QUESTION = [HumanMessage("compare the guestbook and the checkout apps")]


def merged(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    whole = reduce(add, chunks)
    assert isinstance(whole, AIMessageChunk)
    return whole


@pytest.mark.parametrize("question", ["hi", "compare Jira and GitHub issues", "list my Jira tickets"])
async def test_streaming_gives_the_same_message_as_a_single_call(question: str) -> None:
    model = MODEL.bind_tools(supervisor_tools())
    messages = [HumanMessage(question)]
    whole = await model.ainvoke(messages)
    synchronous = [chunk for chunk in model.stream(messages) if isinstance(chunk, AIMessageChunk)]
    asynchronous = [chunk async for chunk in model.astream(messages) if isinstance(chunk, AIMessageChunk)]
    for chunks in (synchronous, asynchronous):
        streamed = merged(chunks)
        assert streamed.text == whole.text
        assert streamed.tool_calls == whole.tool_calls
        assert streamed.usage_metadata == whole.usage_metadata
        assert streamed.response_metadata == whole.response_metadata
    assert model.invoke(messages).tool_calls == whole.tool_calls


@pytest.mark.parametrize("model", [OfflineChatModel(), ScriptedChatModel(script=[Turn("Hello, I am here.")])])
async def test_a_whole_answer_takes_no_thread(model: BaseChatModel) -> None:
    threads = CountedThreads()
    assert (await model.ainvoke("hello")).text
    assert threads.calls == 0


def test_text_streams_word_by_word_and_calls_come_last() -> None:
    chunks = list(MODEL.bind_tools(supervisor_tools()).stream(QUESTION))
    *words, last = [chunk for chunk in chunks if isinstance(chunk, AIMessageChunk)]
    assert [chunk.text for chunk in words][:4] == ["I'll ", "ask ", "Argocd ", "to "]
    assert all(len(str(chunk.text).split()) == 1 and not chunk.tool_call_chunks for chunk in words)
    assert [chunk["name"] for chunk in last.tool_call_chunks] == ["write_todos"]


def test_markdown_keeps_its_white_space_when_streamed() -> None:
    messages = run_supervisor(MODEL, "which applications are out of sync?")[:-1]
    model = MODEL.bind_tools(supervisor_tools())
    streamed = "".join(str(chunk.text) for chunk in model.stream(messages))
    assert streamed == model.invoke(messages).text
    assert "|\n| --- |" in streamed


def test_the_same_turn_has_the_same_call_ids_and_every_call_its_own() -> None:
    once, again = run_supervisor(MODEL, QUESTION[0].text), run_supervisor(MODEL, QUESTION[0].text)
    ids = [call["id"] for message in once if isinstance(message, AIMessage) for call in message.tool_calls]
    assert ids == [call["id"] for message in again if isinstance(message, AIMessage) for call in message.tool_calls]
    twice = run_supervisor(MODEL, QUESTION[0].text, once)
    all_ids = [call["id"] for message in twice if isinstance(message, AIMessage) for call in message.tool_calls]
    assert len(ids) == 3
    assert len(set(all_ids)) == len(all_ids) == 6


def test_the_reply_depends_on_nothing_but_messages_and_tools() -> None:
    history = run_supervisor(MODEL, "which applications are out of sync?")
    question = [*history, HumanMessage("sync the first one")]
    alone = OfflineChatModel().bind_tools(supervisor_tools()).invoke(question)
    for other in ("list my Jira tickets", "hi", "sync it"):
        run_supervisor(MODEL, other)
    assert MODEL.bind_tools(supervisor_tools()).invoke(question).tool_calls == alone.tool_calls


async def test_a_delay_is_waited_for_between_words() -> None:
    started = time.perf_counter()
    chunks = [chunk async for chunk in OfflineChatModel(delay=0.003).astream([HumanMessage("hi")])]
    words = [chunk for chunk in chunks if chunk.text]
    assert len(words) > 10
    assert time.perf_counter() - started >= 0.003 * len(words)


def test_tools_may_be_bound_as_objects_as_dictionaries_and_as_functions() -> None:
    question = [HumanMessage("show the guestbook app")]
    expected = [("get_application", {"application": "guestbook"})]
    dictionaries = [convert_to_openai_tool(item) for item in argocd_tools()]
    assert calls_of([MODEL.bind_tools(argocd_tools()).invoke(question)]) == expected
    assert calls_of([MODEL.bind_tools(dictionaries).invoke(question)]) == expected
    assert calls_of([MODEL.bind(tools=dictionaries).invoke(question)]) == expected

    def get_application(application: str) -> str:
        """One application."""
        return application

    assert calls_of([MODEL.bind_tools([get_application]).invoke(question)]) == expected


def test_a_tool_whose_description_changes_is_read_again() -> None:
    (todos, delegation) = supervisor_tools()
    question = [HumanMessage("what is the weather in Paris?")]
    assert MODEL.bind_tools([todos, delegation]).invoke(question).tool_calls == []
    delegation.description += "\n- weather: The weather in any place. (keywords: weather, rain)"
    assert MODEL.bind_tools([todos, delegation]).invoke(question).tool_calls != []


def test_without_annotations_the_name_tells_whether_a_tool_changes_things() -> None:
    tools = [convert_to_openai_tool(item) for item in jira_tools()]
    read = MODEL.bind_tools(tools).invoke([HumanMessage("show the comments on SHOP-118")])
    assert calls_of([read]) == [("get_issue", {"issue_key": "SHOP-118"})]
    write = MODEL.bind_tools(tools).invoke([HumanMessage("move SHOP-118 to Done")])
    assert calls_of([write]) == [("transition_issue", {"issue_key": "SHOP-118", "status": "Done"})]


class Verdict(BaseModel):
    """The verdict."""

    content: str = Field(description="The answer")
    complete: bool
    mood: str = Field(json_schema_extra={"enum": ["calm", "alarmed"]})


def test_an_answer_of_a_given_form() -> None:
    verdict = MODEL.with_structured_output(Verdict).invoke([HumanMessage("hello")])
    assert isinstance(verdict, Verdict)
    assert verdict.content == "I have no tools at the moment, so I cannot look anything up or change anything."
    assert (verdict.complete, verdict.mood) == (True, "calm")


def test_a_tool_choice_of_none_is_kept() -> None:
    reply = MODEL.bind_tools(argocd_tools(), tool_choice="none").invoke([HumanMessage("show argocd version")])
    assert reply.tool_calls == []


def test_a_named_tool_is_called_only_when_the_turn_would_end_otherwise() -> None:
    tools = [*argocd_tools(), Verdict]
    first = MODEL.bind_tools(tools, tool_choice="any").invoke([HumanMessage("show the guestbook app")])
    assert calls_of([first]) == [("get_application", {"application": "guestbook"})]
    result = ToolMessage(json.dumps(APPLICATIONS[1]), tool_call_id=str(first.tool_calls[0]["id"]))
    last = MODEL.bind_tools(tools, tool_choice="any").invoke([HumanMessage("show the guestbook app"), first, result])
    ((name, arguments),) = calls_of([last])
    assert name == "Verdict"
    assert arguments["content"].startswith("Application **guestbook**:")


async def test_it_drives_a_real_agent_graph_to_an_answer() -> None:
    graph = create_agent(MODEL, argocd_tools(), system_prompt="You look after Argo CD.")
    state = await graph.ainvoke({"messages": [HumanMessage("sync the guestbook app")]})
    messages: list[BaseMessage] = state["messages"]
    assert calls_of(messages) == [("sync_application", {"application": "guestbook"})]
    assert str(messages[-1].text).startswith("Done: sync application **guestbook**.")


async def test_its_words_stream_through_a_graph() -> None:
    @make_tool
    def version() -> str:
        """Version of the server."""
        return "v3.1.8"

    graph = create_agent(MODEL, [version])
    words = [
        str(chunk.text)
        async for chunk, _ in graph.astream({"messages": [HumanMessage("version?")]}, stream_mode="messages")
        if isinstance(chunk, AIMessageChunk) and chunk.text
    ]
    assert words == ["v3.1.8"]


def test_what_identifies_it() -> None:
    assert MODEL._llm_type == "offline"
    assert OfflineChatModel(delay=0.1)._identifying_params == {"model_name": "offline", "delay": 0.1}
