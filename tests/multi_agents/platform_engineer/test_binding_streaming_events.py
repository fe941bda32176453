"""What the binding tells about a run: real graphs, scripted models, whole sequences of events."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.tools import ToolException, tool

from ai_platform_engineering.events import (
    AgentFinished,
    AgentStarted,
    Canceled,
    Failed,
    FinalResult,
    MessageEnded,
    PlanUpdated,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import GraphRun
from tests.invariants import check
from tests.runs.graphs import agent, context, events_of, supervisor


@tool
async def version() -> str:
    """The version."""
    return "v2.14.9"


@tool
async def breaks() -> str:
    """Raises something unexpected."""
    raise RuntimeError("password=hunter2secret in /srv/internal")


@tool
async def refuses() -> str:
    """Reports an error of its own."""
    raise ToolException("application 'nosuch' was not found.\nApplications: guestbook")


@tool
async def hangs() -> str:
    """Never ends by itself."""
    await asyncio.sleep(60)
    return "too late"


def delegate(*agents: str) -> Turn:
    return Turn(calls=[("task", {"description": "do it", "subagent_type": name}) for name in agents])


def plan(*steps: tuple[str, str | None]) -> tuple[str, dict[str, object]]:
    return "write_todos", {"title": "Look around", "steps": [{"content": c, "agent": a} for c, a in steps]}


def one_tool_agent(name: str, used: object, words: str = "Done.") -> object:
    model = ScriptedChatModel(script=[Turn("I look it up.", [(used.name, {})]), Turn(words)])  # type: ignore[attr-defined]
    return agent(name, model, [used])  # type: ignore[list-item]


async def test_a_delegation_is_told_with_the_agents_name_and_its_tools() -> None:
    model = ScriptedChatModel(
        script=[
            Turn("I will ask Argo CD.", [plan(("Get the version", "argocd"), ("Answer", None))]),
            delegate("argocd"),
            Turn("Argo CD is **v2.14.9**."),
        ]
    )
    events = await events_of(supervisor(model, {"argocd": one_tool_agent("argocd", version)}))
    ending = check(events)

    assert isinstance(ending, FinalResult)
    assert ending.text == "Argo CD is **v2.14.9**."
    kinds = [type(event).__name__ for event in events if not isinstance(event, TextDelta | MessageEnded)]
    assert kinds == [
        "PlanUpdated",
        "AgentStarted",
        "PlanUpdated",
        "ToolStarted",
        "ToolFinished",
        "AgentFinished",
        "PlanUpdated",
        "PlanUpdated",
        "FinalResult",
    ]
    started = next(event for event in events if isinstance(event, AgentStarted))
    used = next(event for event in events if isinstance(event, ToolStarted))
    assert (started.agent, started.plan_step_id) == ("argocd", "step-1")
    assert (used.agent, used.tool, used.parent_call_id, used.plan_step_id) == (
        "argocd",
        "version",
        started.call_id,
        "step-1",
    )
    plans = [[step.status for step in event.steps] for event in events if isinstance(event, PlanUpdated)]
    assert plans == [
        ["pending", "pending"],
        ["in_progress", "pending"],
        ["completed", "pending"],
        ["completed", "completed"],
    ]


async def test_narration_streams_as_it_is_written_and_before_the_tools_it_announces() -> None:
    model = ScriptedChatModel(script=[Turn("I will ask Argo CD.", [plan(("Look", "argocd"))]), Turn("Nothing to add.")])
    events = await events_of(supervisor(model, {"argocd": one_tool_agent("argocd", version)}))
    check(events)
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert texts == ["I ", "will ", "ask ", "Argo ", "CD.", "Nothing ", "to ", "add."]
    assert isinstance(events[5], MessageEnded)
    assert isinstance(events[6], PlanUpdated)


async def test_agents_words_are_left_out_unless_asked_for() -> None:
    model = ScriptedChatModel(script=[delegate("argocd"), Turn("It is v2.")])
    graph = supervisor(model, {"argocd": one_tool_agent("argocd", version, "The version is v2.")})
    silent = await events_of(graph, ctx=context(1))
    events = await events_of(graph, ctx=context(2, stream_sub_agent_text=True))
    check(silent)
    check(events)
    assert {event.agent for event in silent if isinstance(event, TextDelta)} == {"supervisor"}
    call = next(event for event in events if isinstance(event, AgentStarted))
    words = [event for event in events if isinstance(event, TextDelta) and event.agent == "argocd"]
    assert "".join(event.text for event in words) == "I look it up.The version is v2."
    assert {event.parent_call_id for event in words} == {call.call_id}


async def test_two_parallel_calls_of_one_agent_are_kept_apart() -> None:
    model = ScriptedChatModel(
        script=[Turn("", [plan(("a", "argocd"), ("b", "argocd"))]), delegate("argocd", "argocd"), Turn("Both done.")]
    )
    events = await events_of(supervisor(model, {"argocd": one_tool_agent("argocd", version)}))
    check(events)
    calls = [event for event in events if isinstance(event, AgentStarted)]
    tools = [event for event in events if isinstance(event, ToolStarted)]
    assert len({call.call_id for call in calls}) == 2
    assert [call.plan_step_id for call in calls] == ["step-1", "step-2"]
    assert {event.parent_call_id for event in tools} == {call.call_id for call in calls}


async def test_a_tool_that_raises_fails_alone_and_tells_nothing_internal() -> None:
    both = agent(
        "argocd",
        ScriptedChatModel(script=[Turn("", [("breaks", {}), ("version", {}), ("refuses", {})]), Turn("Half of it.")]),
        [version, breaks, refuses],
    )
    model = ScriptedChatModel(script=[delegate("argocd"), Turn("Half of it worked.")])
    events = await events_of(supervisor(model, {"argocd": both}))
    check(events)
    ends = {event.tool: event for event in events if isinstance(event, ToolFinished)}
    assert ends["version"].ok
    assert ends["refuses"].reason == "application 'nosuch' was not found."
    assert not ends["breaks"].ok
    assert "hunter2" not in repr(events)
    assert "/srv" not in repr(events)
    agents = [event for event in events if isinstance(event, AgentFinished)]
    assert [event.ok for event in agents] == [True], "an agent that reports a failed tool has done its work"


async def test_an_unknown_agent_and_an_unknown_tool_are_failures_the_model_sees() -> None:
    seen: list[str] = []

    def part(cue: ModelInput) -> Turn:
        if cue.turn == 0:
            return Turn(calls=[("task", {"description": "x", "subagent_type": "nosuch"}), ("shell", {"command": "ls"})])
        seen.extend(str(message.text) for message in cue.messages if message.type == "tool")
        return Turn("Neither exists.")

    events = await events_of(supervisor(ScriptedChatModel(script=part), {"argocd": one_tool_agent("argocd", version)}))
    check(events)
    finished = next(event for event in events if isinstance(event, AgentFinished))
    assert (finished.agent, finished.ok, finished.reason) == ("nosuch", False, "there is no such agent")
    assert any(isinstance(e, ToolFinished) and e.tool == "shell" and not e.ok for e in events)
    assert any("argocd" in text for text in seen), "the prompt lists the agents"


async def test_an_agent_whose_model_fails_fails_its_step_and_not_the_run() -> None:
    broken = agent(
        "jira", ScriptedChatModel(script=[Turn("Let me", error=RuntimeError("quota of org-123"))]), [version]
    )
    model = ScriptedChatModel(
        script=[
            Turn("", [plan(("Tickets", "jira"), ("Version", "argocd"))]),
            delegate("jira", "argocd"),
            Turn("Jira did not answer; Argo CD is v2."),
        ]
    )
    graph = supervisor(model, {"jira": broken, "argocd": one_tool_agent("argocd", version)})
    events = await events_of(graph, ctx=context(stream_sub_agent_text=True))
    check(events)
    last_plan = [event for event in events if isinstance(event, PlanUpdated)][-1]
    assert [step.status for step in last_plan.steps] == ["failed", "completed"]
    assert "org-123" not in repr(events)


async def test_a_supervisor_whose_model_fails_ends_with_what_there_is() -> None:
    model = ScriptedChatModel(script=[delegate("argocd"), Turn("Well", error=RuntimeError("sk-verysecretkey"))])
    events = await events_of(supervisor(model, {"argocd": one_tool_agent("argocd", version, "It is v2.14.9.")}))
    ending = check(events)
    assert isinstance(ending, Failed)
    assert ending.partial is not None
    assert "It is v2.14.9." in ending.partial
    assert "sk-very" not in repr(events)


async def test_cancel_closes_what_is_open_and_leaves_the_plan_unfinished() -> None:
    model = ScriptedChatModel(script=[Turn("", [plan(("Wait", "argocd"))]), delegate("argocd"), Turn("Never.")])
    graph = supervisor(model, {"argocd": one_tool_agent("argocd", hangs)})
    run = GraphRun(graph, "supervisor", "q", context())
    events: list[object] = []
    hanging = asyncio.Event()

    async def consume() -> None:
        async for event in run.events():
            events.append(event)
            if isinstance(event, ToolStarted):
                hanging.set()

    task = asyncio.create_task(consume())
    await asyncio.wait_for(hanging.wait(), 90)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    events.extend(run.canceled())
    assert isinstance(check(events), Canceled)  # type: ignore[arg-type]
    assert [type(event).__name__ for event in events[-3:]] == ["ToolFinished", "AgentFinished", "Canceled"]
    last_plan = [event for event in events if isinstance(event, PlanUpdated)][-1]
    assert [step.status for step in last_plan.steps] == ["in_progress"]


async def test_a_cancelled_conversation_goes_on_with_the_next_message() -> None:
    def part(cue: ModelInput) -> Turn:
        return delegate("argocd") if cue.question == "hang" and cue.turn == 0 else Turn(f"About {cue.question}.")

    graph = supervisor(ScriptedChatModel(script=part), {"argocd": one_tool_agent("argocd", hangs)})
    run = GraphRun(graph, "supervisor", "hang", context())

    async def consume() -> None:
        async for event in run.events():
            if isinstance(event, ToolStarted):
                raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await consume()
    events = await events_of(graph, "what now")
    ending = check(events)
    assert isinstance(ending, FinalResult)
    assert ending.text == "About what now."


@pytest.mark.parametrize("limit", [4, 5, 6, 7, 12])
async def test_at_the_step_limit_the_supervisor_answers_with_what_it_has(limit: int) -> None:
    forever = ScriptedChatModel(script=[Turn("", [("version", {})])])
    graph = supervisor(
        forever, {"argocd": one_tool_agent("argocd", version)}, [version], LANGGRAPH_RECURSION_LIMIT=str(limit)
    )
    ending = check(await events_of(graph))
    assert isinstance(ending, FinalResult)
    assert ending.limit == "recursion_limit"
    assert "limit" in ending.text
    assert limit < 6 or "v2.14.9" in ending.text


async def test_at_the_step_limit_of_an_agent_the_run_goes_on() -> None:
    runaway = agent(
        "argocd", ScriptedChatModel(script=[Turn("", [("version", {})])]), [version], LANGGRAPH_RECURSION_LIMIT="9"
    )
    model = ScriptedChatModel(script=[delegate("argocd"), Turn("That is what Argo CD said.")])
    events = await events_of(supervisor(model, {"argocd": runaway}))
    ending = check(events)
    assert isinstance(ending, FinalResult)
    assert ending.text == "That is what Argo CD said."
    assert ending.limit == "recursion_limit"
    assert 1 <= len([event for event in events if isinstance(event, ToolStarted)]) <= 4
    assert all(event.ok for event in events if isinstance(event, AgentFinished))


async def test_the_last_turn_is_the_models_own_when_it_answers() -> None:
    def part(cue: ModelInput) -> Turn:
        return Turn("", [("version", {})]) if cue.tools else Turn("Version v2.14.9; the rest is not finished.")

    graph = supervisor(
        ScriptedChatModel(script=part),
        {"argocd": one_tool_agent("argocd", version)},
        [version],
        LANGGRAPH_RECURSION_LIMIT="8",
    )
    ending = check(await events_of(graph))
    assert isinstance(ending, FinalResult)
    assert ending.text == "Version v2.14.9; the rest is not finished."


@pytest.mark.long
async def test_nothing_of_one_conversation_appears_in_another() -> None:
    def part(cue: ModelInput) -> Turn:
        return delegate("argocd") if cue.turn == 0 else Turn(f"Answer to {cue.question}.")

    graph = supervisor(ScriptedChatModel(script=part, delay=0.001), {"argocd": one_tool_agent("argocd", version)})
    runs = await asyncio.gather(*(events_of(graph, f"token-{n}-x", context(n)) for n in range(32)))
    for number, events in enumerate(runs):
        check(events)
        text = repr(events)
        assert f"token-{number}-x" in text
        assert all(f"token-{other}-x" not in text for other in range(32) if other != number)
