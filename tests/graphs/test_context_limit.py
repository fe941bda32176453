"""Long conversations stay inside the model's context window, against a server that refuses longer prompts."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, AnyMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from ai_platform_engineering.events import Event, Failed, FinalResult, InputRequired, ToolFinished
from ai_platform_engineering.forms.answers import Submitted
from ai_platform_engineering.graphs.agent_graph import Graph, agent_graph
from ai_platform_engineering.llm import chat_model
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import plan_tool
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import GraphRun, Resumption
from ai_platform_engineering.utils.summaries import summary_details
from tests.graphs.provider_rules import check_openai_chat
from tests.injection.stage import delimited_text
from tests.invariants import check, check_task
from tests.llm.openai_server import OpenAIServer, openai_server
from tests.runs.graphs import agent, context, events_of, settings_of, supervisor

WINDOW = 8_000
SUMMARY = "SUMMARY-OF-OLDER-TURNS"
READ_ON = re.compile(r'read_result\(result_id="(\w+)"')
LINE = "2026-01-01T00:00:00Z error in service checkout: connection refused\n"

Body = Mapping[str, Any]


@tool
async def logs(number: int) -> str:
    """Reads the logs."""
    return f"logs {number}\n" + LINE * 60


def tokens(body: Body) -> int:
    return len(json.dumps([body["messages"], body.get("tools", [])])) // 4


def is_summary_request(body: Body) -> bool:
    return "summary of the older part" in str(body["messages"][0]["content"])


def too_long(body: Body, window: int = WINDOW) -> tuple[int, dict[str, Any]] | None:
    check_openai_chat(body["messages"])
    if tokens(body) <= window:
        return None
    message = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens(body)} "
        "tokens. Please reduce the length of the messages or functions."
    )
    error = {"message": message, "type": "invalid_request_error", "param": "messages"}
    return 400, {"error": {**error, "code": "context_length_exceeded"}}


def call(name: str, index: int = 0, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"index": index, "id": f"{name}-{index}", "type": "function", "function": function}]}


def reads_logs(body: Body) -> Sequence[dict[str, Any]]:
    """One call of `logs` for each question, then an answer."""
    if is_summary_request(body):
        return [{"content": SUMMARY}]
    last = body["messages"][-1]
    if last["role"] == "user":
        return [call("logs", number=len(questions(body)))]
    return [{"content": f"Answer to {questions(body)[-1]}"}]


def questions(body: Body) -> list[str]:
    return [str(message["content"]) for message in body["messages"] if message["role"] == "user"]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with openai_server() as running:
        running.part = reads_logs
        running.rules = too_long
        yield running


def model_of(server: OpenAIServer, **environ: str) -> BaseChatModel:
    return chat_model(settings_of(OPENAI_ENDPOINT=server.address, OPENAI_MODEL_NAME="m", **environ))


def graph_of(server: OpenAIServer, tools: Sequence[BaseTool] = (logs,), **environ: str) -> Graph:
    variables = {"LLM_CONTEXT_TOKENS": str(WINDOW), **environ}
    return agent_graph(
        settings_of(**variables),
        model_of(server, **variables),
        tools,
        "You read logs.",
        name="supervisor",
        checkpointer=InMemorySaver(),
    )


async def ask(graph: Graph, number: int) -> list[Event]:
    ctx = context(1)
    return await events_of(graph, f"question {number}", type(ctx)(ctx.context_id, f"task-{number}", ctx.trace_id))


async def stored(graph: Graph) -> list[AnyMessage]:
    state = await graph.aget_state({"configurable": {"thread_id": "context-1"}})
    messages: list[AnyMessage] = state.values["messages"]
    return messages


def requests_of(server: OpenAIServer, *, refused: bool = False) -> list[dict[str, Any]]:
    """The requests for turns of the conversation: those that fit the window, or those that do not."""
    return [
        body for body in server.requests if not is_summary_request(body) and (too_long(body) is not None) == refused
    ]


async def test_a_hundred_turns_with_long_results_stay_inside_the_window(server: OpenAIServer) -> None:
    graph = graph_of(server)
    for number in range(100):
        ending = check(await ask(graph, number))
        assert isinstance(ending, FinalResult), ending
        assert ending.text == f"Answer to question {number}"
    assert 1 < sum(map(is_summary_request, server.requests)) < 50
    assert max(map(tokens, server.requests)) <= WINDOW
    summary, *others = await stored(graph)
    assert summary_details(summary) is not None
    assert all(summary_details(message) is None for message in others), "a summary includes the summary before it"
    assert len(others) < 20


async def test_a_summary_is_not_in_the_stream_and_is_logged_once(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    graph = graph_of(server, LLM_ALWAYS_STREAM="true")
    events: list[Event] = []
    with caplog.at_level(logging.INFO, "ai_platform_engineering.graphs"):
        for number in range(6):
            events += await ask(graph, number)
    (request,) = [body for body in server.requests if is_summary_request(body)]
    assert request["stream"]
    assert not request.get("tools")
    assert SUMMARY in str((await stored(graph))[0].text)
    assert [event.text for event in events if isinstance(event, FinalResult)] == [
        f"Answer to question {number}" for number in range(6)
    ]
    assert all(SUMMARY not in str(event) for event in events)
    (record,) = [record for record in caplog.records if record.name.endswith("context_limit")]
    assert record.levelname == "INFO"
    assert "compacted the conversation" in record.getMessage()


async def test_a_smaller_window_than_configured_is_learned_from_the_first_error(server: OpenAIServer) -> None:
    graph = graph_of(server, LLM_CONTEXT_TOKENS="100000")
    for number in range(15):
        ending = check(await ask(graph, number))
        assert isinstance(ending, FinalResult), ending
    assert len(requests_of(server, refused=True)) == 1
    assert sum(map(is_summary_request, server.requests)) > 1


def reads_until(steps: int) -> Callable[[Body], Sequence[dict[str, Any]]]:
    """Many steps for one question: the prompt grows in the middle of a run. At the end, the first result is read on."""

    def part(body: Body) -> Sequence[dict[str, Any]]:
        if is_summary_request(body):
            return [{"content": SUMMARY}]
        results = [str(message["content"]) for message in body["messages"] if message["role"] == "tool"]
        if len(results) < steps:
            return [call("logs", number=len(results))]
        if len(results) == steps and (note := READ_ON.search(results[0])):
            return [call("read_result", result_id=note[1], offset=0)]
        return [{"content": results[-1]}]

    return part


@pytest.mark.parametrize("window", [str(WINDOW), "100000"], ids=["before the error", "after the error"])
async def test_long_results_of_the_current_turn_are_shortened_and_can_be_read(
    server: OpenAIServer, window: str
) -> None:
    server.part = reads_until(12)
    graph = graph_of(server, LLM_CONTEXT_TOKENS=window)
    events = await ask(graph, 0)
    ending = check(events)
    assert isinstance(ending, FinalResult), ending
    assert delimited_text(ending.text) == "logs 0\n" + LINE * 60
    assert [event.tool for event in events if isinstance(event, ToolFinished)] == [*["logs"] * 12, "read_result"]
    assert not any(map(is_summary_request, server.requests))
    assert len(requests_of(server, refused=True)) == (0 if window == str(WINDOW) else 1)


async def test_a_prompt_that_stays_too_long_fails_after_one_retry(server: OpenAIServer) -> None:
    graph = graph_of(server)
    for number in range(3):
        await ask(graph, number)
    server.requests.clear()
    server.rules = lambda body: None if is_summary_request(body) else too_long(body, window=10)
    ending = check(await ask(graph, 3))
    assert isinstance(ending, Failed)
    assert ending.code == "model"
    assert "LLM_CONTEXT_TOKENS" in ending.message
    assert sum(not is_summary_request(body) for body in server.requests) == 2
    server.rules = too_long
    assert isinstance(check(await ask(graph, 4)), FinalResult), "the next turn is possible again"


async def test_a_message_that_is_larger_than_the_window_is_named(server: OpenAIServer) -> None:
    ending = check(await events_of(graph_of(server), "word " * 10_000))
    assert isinstance(ending, Failed)
    assert ending.message.startswith("One message alone is larger than the context window of m")
    assert "LLM_CONTEXT_TOKENS" in ending.message
    assert len(server.requests) == 1


async def test_older_turns_are_dropped_if_the_summary_fails(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    failure = (400, {"error": {"message": "no", "type": "invalid_request_error", "code": None}})
    server.rules = lambda body: failure if is_summary_request(body) else too_long(body)
    graph = graph_of(server)
    for number in range(20):
        ending = check(await ask(graph, number))
        assert isinstance(ending, FinalResult), ending
    assert not requests_of(server, refused=True)
    note = questions(server.requests[-1])[0]
    assert "turns, no longer fits and was removed" in note
    assert "- question 1\n" in note
    assert "the summary failed" in caplog.text


async def test_a_summary_names_the_plan_and_the_long_results(server: OpenAIServer) -> None:
    plan: dict[str, Any] = {
        "title": "Look at logs",
        "steps": [{"content": "Read logs", "agent": "logger", "status": "in_progress"}],
    }

    def plans_first(body: Body) -> Sequence[dict[str, Any]]:
        asked = questions(body)[-1:] == ["question 0"] and body["messages"][-1]["role"] == "user"
        return [call("write_todos", **plan)] if asked else reads_logs(body)

    server.part = plans_first
    graph = graph_of(server, [logs, plan_tool()], TOOL_RESULT_MAX_CHARS="1500")
    number = 0
    while not any(map(is_summary_request, server.requests)):
        await ask(graph, number)
        number += 1
    summary = str((await stored(graph))[0].text)
    assert "Your plan: Look at logs\n- [in_progress] Read logs (logger)" in summary
    found = READ_ON.search(summary)
    assert found
    assert "- logs: read_result" in summary
    server.part = lambda body: (
        [{"content": str(body["messages"][-1]["content"])}]
        if body["messages"][-1]["role"] == "tool"
        else [call("read_result", result_id=found[1], offset=0)]
    )
    ending = check(await ask(graph, number))
    assert isinstance(ending, FinalResult)
    assert (delimited_text(ending.text) or "").startswith("logs ")


async def test_a_form_stays_open_while_another_agent_compacts(server: OpenAIServer) -> None:
    server.part = reads_until(8)
    reader = agent("reader", model_of(server), [logs], READER_LLM_CONTEXT_TOKENS=str(WINDOW))
    form = {"title": "Which service?", "fields": [{"name": "name"}]}

    def asks(cue: ModelInput) -> Turn:
        return Turn(f"It is {cue.messages[-1].text}") if cue.turn else Turn("", [("request_user_input", form)])

    def delegates(cue: ModelInput) -> Turn:
        if cue.turn:
            return Turn(" ".join(str(message.text) for message in cue.messages if message.type == "tool"))
        agents = ("asker", "reader")
        return Turn("", [("task", {"description": "go", "subagent_type": name}) for name in agents])

    asker = agent("asker", ScriptedChatModel(script=asks))
    graph = supervisor(ScriptedChatModel(script=delegates), {"asker": asker, "reader": reader})
    before = await events_of(graph)
    waiting = check(before)
    assert isinstance(waiting, InputRequired)
    assert READ_ON.search(str(server.requests[-1]["messages"])), "a result was shortened"
    resumption = Resumption(waiting.forms[0], Submitted({"name": "checkout"}), before)
    after = [event async for event in GraphRun(graph, "supervisor", resumption, context()).events()]
    ending = check_task([*before, *after])
    assert isinstance(ending, FinalResult)
    assert "checkout" in ending.text
    assert LINE in ending.text


class DenseModel(ScriptedChatModel):
    """Reports one token per character, far more than the estimate."""

    prompts: list[int] = Field(default_factory=list)

    async def _astream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        tokens = sum(len(str(message.text)) for message in messages)
        self.prompts.append(tokens)
        usage = UsageMetadata(input_tokens=tokens, output_tokens=1, total_tokens=tokens + 1)
        yield ChatGenerationChunk(message=AIMessageChunk(content="", usage_metadata=usage))
        async for chunk in super()._astream(messages, *args, **kwargs):
            yield chunk


async def test_the_tokens_that_a_provider_counts_correct_the_estimate() -> None:
    def answers(cue: ModelInput) -> Turn:
        return Turn(SUMMARY) if "summary of the older part" in str(cue.messages[0].text) else Turn("word " * 200)

    model = DenseModel(script=answers)
    graph = agent_graph(
        settings_of(LLM_CONTEXT_TOKENS=str(WINDOW)), model, [], "You.", name="supervisor", checkpointer=InMemorySaver()
    )
    for number in range(20):
        assert isinstance(check(await ask(graph, number)), FinalResult)
    assert max(model.prompts) <= WINDOW
    assert summary_details((await stored(graph))[0]) is not None
