"""Runs that wait for people: what is asked, and how they go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.tools import BaseTool, tool
from langgraph.types import interrupt

from ai_platform_engineering.events import (
    AgentFinished,
    AgentStarted,
    Event,
    Failed,
    FinalResult,
    Form,
    InputRequired,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.forms.answers import Answer, Dismissed, Submitted
from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import GraphRun, Resumption
from tests.invariants import check, check_task
from tests.runs.graphs import agent, context, supervisor


def asking(title: str, *names: str) -> Turn:
    return Turn("", [("request_user_input", {"title": title, "fields": [{"name": name} for name in names]})])


def repeats(cue: ModelInput) -> Turn:
    """Answers with what the last tool gave."""
    return Turn(f"Got {cue.messages[-1].text}")


def asker(title: str, *names: str, times: int = 1) -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda cue: asking(title, *names) if cue.turn < times else repeats(cue))


def delegating(*agents: str) -> ScriptedChatModel:
    calls = [("task", {"description": "do it", "subagent_type": name}) for name in agents]
    return ScriptedChatModel(script=lambda cue: Turn("I ask them.", calls) if cue.turn == 0 else Turn("All is done."))


async def run(graph: Graph, work: str | Resumption, **options: Any) -> list[Event]:
    return [event async for event in GraphRun(graph, "supervisor", work, context(**options)).events()]


async def answer(graph: Graph, history: list[Event], form: Form, said: Answer) -> list[Event]:
    return [*history, *await run(graph, Resumption(form, said, history))]


def open_forms(history: list[Event]) -> Mapping[str, Form]:
    ending = history[-1]
    assert isinstance(ending, InputRequired)
    return {form.agent or "": form for form in ending.forms}


async def test_a_form_then_its_values() -> None:
    graph = supervisor(delegating("jira"), {"jira": agent("jira", asker("Which?", "name"))})
    history = await run(graph, "q")
    check(history)
    form = open_forms(history)["jira"]
    assert (form.title, [field.field_name for field in form.fields]) == ("Which?", ["name"])
    history = await answer(graph, history, form, Submitted({"name": "demo", "count": 3}))
    check_task(history)
    assert [type(event) for event in history if not isinstance(event, InputRequired)].count(ToolStarted) == 1
    (asked,) = [event for event in history if isinstance(event, ToolFinished)]
    assert asked.ok
    (delegation,) = [event for event in history if isinstance(event, AgentFinished)]
    assert delegation.ok
    assert isinstance(history[-1], FinalResult)


async def test_the_model_learns_that_a_form_was_canceled() -> None:
    graph = supervisor(delegating("jira"), {"jira": agent("jira", asker("Which?", "name"))})
    history = await run(graph, "q", stream_sub_agent_text=True)
    history = await answer(graph, history, open_forms(history)["jira"], Dismissed("wrong window"))
    check_task(history)
    assert isinstance(history[-1], FinalResult)


async def test_several_agents_ask_at_once_and_are_answered_in_any_order() -> None:
    worked: list[str] = []

    @tool
    def work() -> str:
        """Work."""
        worked.append("x")
        return "done"

    tools: list[BaseTool] = [work]
    worker = agent("github", ScriptedChatModel(script=[Turn("", [("work", {})]), Turn("Worked.")]), tools)
    graph = supervisor(
        delegating("jira", "argocd", "github"),
        {
            "jira": agent("jira", asker("Ticket?", "name")),
            "argocd": agent("argocd", asker("App?", "name", times=2)),
            "github": worker,
        },
    )
    history = await run(graph, "q")
    check(history)
    assert [*open_forms(history)] == ["jira", "argocd"]
    assert worked == ["x"]
    history = await answer(graph, history, open_forms(history)["argocd"], Submitted({"name": "1"}))
    first = open_forms(history)
    assert [*first] == ["jira", "argocd"]
    history = await answer(graph, history, first["jira"], Submitted({"name": "2"}))
    assert open_forms(history) == {"argocd": first["argocd"]}
    history = await answer(graph, history, first["argocd"], Submitted({"name": "3"}))
    check_task(history)
    assert worked == ["x"]
    starts = [event for event in history if isinstance(event, AgentStarted | ToolStarted)]
    assert len(starts) == len({event.call_id for event in starts}) == 3 + 4
    assert isinstance(history[-1], FinalResult)


async def test_an_agent_asks_one_thing_at_a_time() -> None:
    both = Turn("", [*asking("First?", "name").calls, *asking("Second?", "name").calls])
    model = ScriptedChatModel(script=[both, Turn("Thanks.")])
    graph = supervisor(delegating("jira"), {"jira": agent("jira", model)})
    history = await run(graph, "q")
    assert open_forms(history)["jira"].title == "First?"
    history = await answer(graph, history, open_forms(history)["jira"], Submitted({"name": "1"}))
    assert open_forms(history)["jira"].title == "Second?"
    history = await answer(graph, history, open_forms(history)["jira"], Submitted({"name": "2"}))
    check_task(history)


async def test_an_answer_to_a_closed_form_fails_with_a_sentence() -> None:
    graph = supervisor(delegating("jira"), {"jira": agent("jira", asker("Which?", "name"))})
    history = await run(graph, "q")
    form = open_forms(history)["jira"]
    other = supervisor(delegating("jira"), {"jira": agent("jira", asker("Which?", "name"))})
    history = await answer(other, history, form, Submitted({"name": "demo"}))
    check_task(history)
    assert isinstance(history[-1], Failed)
    assert "Ask again" in history[-1].message


async def test_a_question_asked_again_in_the_same_place_is_another_form() -> None:
    """A tool that asks twice has one interrupt; an answer to the first must not answer the second."""

    @tool
    def twice() -> str:
        """Asks twice."""
        return f"{interrupt('One?')} {interrupt('Two?')}"

    model = ScriptedChatModel(script=[Turn("", [("twice", {})]), Turn("Done.")])
    graph = supervisor(model, {"jira": agent("jira", asker("Which?", "name"))}, [twice])
    history = await run(graph, "q")
    first = open_forms(history)["supervisor"]
    history = await answer(graph, history, first, Submitted({"response": "1"}))
    second = open_forms(history)["supervisor"]
    assert first.form_id != second.form_id
    history = await answer(graph, history, second, Submitted({"response": "2"}))
    check_task(history)
    assert isinstance(history[-1], FinalResult)
