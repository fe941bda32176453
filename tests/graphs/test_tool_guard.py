"""Tool calls that fail, in a graph: the model gets a result it can act on, people get a sentence."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver

from ai_platform_engineering.events import AgentFinished, FinalResult, ToolFinished
from ai_platform_engineering.graphs.agent_graph import agent_graph
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.mcp.errors import ToolFailed
from ai_platform_engineering.storage.event_log.event_log import SupersededError
from ai_platform_engineering.utils.a2a_common.request_context import RecordedEffect
from tests.invariants import check
from tests.runs.graphs import agent, context, events_of, settings_of, supervisor

SECRET = "key-of-the-provider-0123"


class EffectRecorder:
    """The ledger of effects of a run."""

    def __init__(self) -> None:
        self.results: list[str] = []

    async def begin(self, call_id: str) -> RecordedEffect | None:
        return None

    async def finish(self, call_id: str, result: str) -> None:
        self.results.append(result)


@tool
def count_pods(namespace: str, limit: int) -> str:
    """Counts pods."""
    return f"{limit} pods in {namespace}"


@tool
def break_down() -> str:
    """Fails with an error that was not written to be read."""
    raise KeyError("sk-secret-value")


@tool
def refuse() -> str:
    """Fails with a sentence."""
    raise ToolException("There is no application 'x'.")


@tool
def reject() -> str:
    """Fails with an answer for the model and a reason for people."""
    raise ToolFailed("401 Unauthorized: token t-1 has expired", "the credentials were rejected")


@tool
def lose() -> str:
    """Finds that another process has claimed the run."""
    raise SupersededError("t")


@tool
def judge(call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Gives an error that has a reason of its own."""
    return ToolMessage("No.", tool_call_id=call_id, status="error", artifact={"reason": "its owner refused"})


async def call(name: str, arguments: dict[str, Any], *tools: BaseTool) -> tuple[ToolFinished, ToolMessage]:
    """How the call ended, and the result that the model got."""
    results: list[ToolMessage] = []

    def part(cue: ModelInput) -> Turn:
        results.extend(message for message in cue.messages if isinstance(message, ToolMessage))
        return Turn("Done.") if results else Turn("", [(name, arguments)])

    events = await events_of(agent("supervisor", ScriptedChatModel(script=part), tools))
    assert isinstance(check(events), FinalResult)
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    return finished, results[0]


async def test_a_result_without_an_error_is_left_alone() -> None:
    finished, result = await call("count_pods", {"namespace": "shop", "limit": 3}, count_pods)
    assert (finished.ok, finished.reason) == (True, None)
    assert (result.text, result.status, result.artifact) == ("3 pods in shop", "success", None)


@tool
def leak(how: str) -> Any:
    """Answers with the key of this process."""
    match how:
        case "text":
            return f"OPENAI_API_KEY: {SECRET}"
        case "blocks":
            return [{"type": "text", "text": f"the key is {SECRET}"}]
        case _:
            raise ToolFailed(f"401 for {SECRET}", f"{SECRET} has expired")


@pytest.mark.parametrize("how", ["text", "blocks", "error"])
async def test_a_secret_of_this_process_reaches_no_model_event_ledger_or_conversation(how: str) -> None:
    prompts, recorded = [], EffectRecorder()

    def part(cue: ModelInput) -> Turn:
        prompts.append(str(cue.messages))
        return Turn("Done.") if len(prompts) > 1 else Turn("", [("leak", {"how": how})])

    graph = agent_graph(
        settings_of(OPENAI_API_KEY=SECRET),
        ScriptedChatModel(script=part),
        [leak],
        "You look.",
        name="supervisor",
        changes=lambda _tool, _arguments: True,
        checkpointer=InMemorySaver(),
    )
    events = await events_of(graph, ctx=context(effects=recorded))
    stored = await graph.aget_state({"configurable": {"thread_id": "context-1"}})
    assert len(prompts) == 2
    assert "***" in prompts[1]
    assert "leak" in str(stored.values)
    assert recorded.results
    for text in (*prompts, str(events), str(stored.values), str(recorded.results)):
        assert SECRET not in text


async def test_arguments_that_do_not_fit_are_named_to_the_model_and_not_shown() -> None:
    finished, result = await call("count_pods", {"namespace": "t0ken", "limit": "many"}, count_pods)
    assert (finished.ok, finished.reason) == (False, "its arguments were not valid")
    assert "limit" in result.text
    assert result.status == "error"


@pytest.mark.parametrize(
    ("failing", "content", "reason"),
    [
        (
            break_down,
            "Something went wrong inside (KeyError). The log has the details.",
            "Something went wrong inside (KeyError). The log has the details.",
        ),
        (refuse, "There is no application 'x'.", "There is no application 'x'."),
        (reject, "401 Unauthorized: token t-1 has expired", "the credentials were rejected"),
        (judge, "No.", "its owner refused"),
    ],
    ids=lambda given: given.name if isinstance(given, BaseTool) else "",
)
async def test_a_failing_tool_gives_the_model_a_result_and_people_a_reason(
    failing: BaseTool, content: str, reason: str
) -> None:
    finished, result = await call(failing.name, {}, failing)
    assert (finished.tool, finished.ok, finished.reason) == (failing.name, False, reason)
    assert (result.text, result.status) == (content, "error")


async def test_a_failure_is_logged_under_the_name_of_the_tool_with_the_reason_for_people(
    caplog: pytest.LogCaptureFixture,
) -> None:
    await call("reject", {}, reject)
    assert "reject: the credentials were rejected" in caplog.messages
    assert "t-1" not in caplog.text


async def test_a_run_that_another_process_has_claimed_ends_without_a_result() -> None:
    with pytest.raises(SupersededError):
        await events_of(agent("supervisor", ScriptedChatModel(script=[Turn("", [("lose", {})])]), [lose]))


async def test_a_tool_that_does_not_exist() -> None:
    finished, result = await call("drop_pods", {}, count_pods)
    assert (finished.tool, finished.ok, finished.reason) == ("drop_pods", False, "there is no such tool")
    assert (result.text, result.name) == ("There is no tool named 'drop_pods'.", "drop_pods")


async def test_an_agent_that_does_not_exist_is_answered_with_those_there_are() -> None:
    results: list[str] = []

    def part(cue: ModelInput) -> Turn:
        results.extend(str(message.text) for message in cue.messages if isinstance(message, ToolMessage))
        return Turn("Done.") if results else Turn("", [("task", {"subagent_type": "jirra", "description": "Look."})])

    silent = ScriptedChatModel(script=[Turn("Nothing to say.")])
    graph = supervisor(ScriptedChatModel(script=part), {name: agent(name, silent) for name in ("jira", "argocd")})
    events = await events_of(graph)
    assert isinstance(check(events), FinalResult)
    assert results == ["There is no agent named 'jirra'. Agents: argocd, jira."]
    assert [event.reason for event in events if isinstance(event, AgentFinished)] == ["there is no such agent"]


async def test_without_agents_a_tool_of_the_delegations_name_is_a_tool() -> None:
    @tool
    def task(subagent_type: str) -> str:
        """A tool."""
        return f"did {subagent_type}"

    part = [Turn("", [("task", {"subagent_type": "anything"})]), Turn("Done.")]
    graph = agent("supervisor", ScriptedChatModel(script=part), [task])
    events = await events_of(graph)
    assert isinstance(check(events), FinalResult)
    assert [event.ok for event in events if isinstance(event, AgentFinished)] == [True]
