"""The parts of a graph's stream as events, with parts as LangGraph gives them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage

from ai_platform_engineering.events import (
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    Failed,
    FinalResult,
    Form,
    FormField,
    InputRequired,
    MessageEnded,
    PlanStep,
    PlanUpdated,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.forms.questions import question_data
from ai_platform_engineering.llm.guarded_call import RetryNotice
from ai_platform_engineering.runs.failures import failure_of
from ai_platform_engineering.runs.translation import Part, RemoteEvent, Translation


def inside(call_id: str) -> tuple[str, ...]:
    """The namespace of the graph that a delegation runs."""
    return (f"tools:{call_id}",)


def started(call_id: str, tool: str, ns: tuple[str, ...] = (), **arguments: Any) -> Part:
    call = {"tool_call": {"name": tool, "args": arguments}}
    return {"type": "tasks", "ns": ns, "data": {"id": call_id, "name": "tools", "triggers": (), "input": call}}


def delegated(call_id: str, agent: str) -> Part:
    return started(call_id, "task", subagent_type=agent)


def ended(call_id: str, text: str = "done", ns: tuple[str, ...] = (), **facts: Any) -> Part:
    result = {"messages": [ToolMessage(text, tool_call_id=call_id, **facts)]}
    return {"type": "tasks", "ns": ns, "data": {"id": call_id, "name": "tools", "result": result}}


def crashed(call_id: str) -> Part:
    return {"type": "tasks", "ns": (), "data": {"id": call_id, "name": "tools", "error": "boom", "result": None}}


def token(text: str, message_id: str = "m1", ns: tuple[str, ...] = (), task: str = "turn") -> Part:
    metadata = {"langgraph_node": "model", "langgraph_checkpoint_ns": f"model:{task}"}
    return {"type": "messages", "ns": ns, "data": (AIMessageChunk(text, id=message_id), metadata)}


def turn(*messages: AIMessage, ns: tuple[str, ...] = (), **more: Any) -> Part:
    result = {"messages": list(messages), **more}
    return {"type": "tasks", "ns": ns, "data": {"id": "turn", "name": "model", "result": result}}


def said(data: Any, ns: tuple[str, ...] = ()) -> Part:
    return {"type": "custom", "ns": ns, "data": data}


def plan(call_id: str, *steps: dict[str, Any], title: str | None = None) -> list[Part]:
    return [started(call_id, "write_todos", title=title, steps=list(steps)), ended(call_id)]


def fed(translation: Translation, *parts: Part) -> list[Event]:
    return [event for part in parts for event in translation.feed(part)]


def shown(events: Iterable[Event]) -> list[list[str]]:
    """The status of every step, for each plan that is shown."""
    return [[step.status for step in event.steps] for event in events if isinstance(event, PlanUpdated)]


def test_whose_words_are_emitted() -> None:
    parts = (delegated("d", "jira"), token("own"), token("theirs", "m2", inside("d"), "other"))
    assert [event.text for event in fed(Translation("supervisor"), *parts) if isinstance(event, TextDelta)] == ["own"]
    everything = fed(Translation("supervisor", own_text=False, agent_text=True), *parts)
    assert everything == [AgentStarted("jira", "d"), TextDelta("jira", "m2", "theirs", "d")]


def test_words_of_an_unknown_delegation_have_an_unknown_agent() -> None:
    events = fed(Translation("supervisor", agent_text=True), token("Hello.", ns=inside("gone")))
    assert events == [TextDelta("unknown", "m1", "Hello.", "gone")]


def test_messages_of_one_turn_are_kept_apart_by_their_ids() -> None:
    events = fed(Translation("supervisor"), token("First.", "a"), token("Second.", "b"), turn(AIMessage("Second.")))
    assert [event.message_id for event in events if isinstance(event, TextDelta)] == ["a", "b"]
    assert [event.message_id for event in events if isinstance(event, MessageEnded)] == ["b", "a"]


def test_words_that_turn_out_to_be_thinking_are_a_message_of_their_own() -> None:
    """Some servers leave the opening tag out, so that only the closing one tells."""
    translation = Translation("supervisor")
    assert fed(
        translation, token("Hmm. "), token("</think>It is"), token(" v3."), turn(AIMessage("It is v3.", id="m1"))
    ) == [
        TextDelta("supervisor", "m1", "Hmm. "),
        MessageEnded("supervisor", "m1"),
        TextDelta("supervisor", "m1-1", "It is"),
        TextDelta("supervisor", "m1-1", " v3."),
        MessageEnded("supervisor", "m1-1"),
    ]
    assert [*translation.conclude()] == [FinalResult("It is v3.", "m1-1")]


def test_a_delegation_that_ends_closes_its_own_messages_first() -> None:
    translation = Translation("supervisor", agent_text=True)
    fed(translation, delegated("d", "jira"), token("own"), token("theirs", "m2", inside("d"), "other"))
    assert fed(translation, ended("d")) == [MessageEnded("jira", "m2", "d"), AgentFinished("jira", "d", True)]
    assert fed(translation, turn(AIMessage("own", id="m1"))) == [MessageEnded("supervisor", "m1")]


@pytest.mark.parametrize("call", [{"name": "search", "args": {}}, {"tool_call": {"name": "search", "args": {}}}])
@pytest.mark.parametrize("listed", [False, True])
def test_every_shape_of_a_tool_call(call: dict[str, Any], listed: bool) -> None:
    data = {"id": "t", "name": "tools", "triggers": (), "input": [call] if listed else call}
    events = fed(Translation("supervisor"), {"type": "tasks", "ns": (), "data": data})
    assert events == [ToolStarted("supervisor", "search", "t")]


@pytest.mark.parametrize("nothing", [[], None, {"tool_call": "search"}, "name"])
def test_a_task_without_a_call_is_none(nothing: Any) -> None:
    data = {"id": "t", "name": "tools", "triggers": (), "input": nothing}
    assert fed(Translation("supervisor"), {"type": "tasks", "ns": (), "data": data}) == []


@pytest.mark.parametrize("name", ["task", "write_todos"])
def test_only_the_supervisor_plans_and_delegates(name: str) -> None:
    assert fed(Translation("jira"), started("t", name)) == [ToolStarted("jira", name, "t")]
    translation = Translation("supervisor")
    fed(translation, delegated("d", "jira"))
    assert fed(translation, started("t", name, inside("d"))) == [ToolStarted("jira", name, "t", "d")]


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (crashed("t"), "it stopped unexpectedly"),
        (ended("t", "Not **found**.\nDetails", status="error"), "Not found."),
        (ended("t", " ", status="error"), "it reported an error"),
        (ended("t", "Not found.", status="error", artifact={"reason": "`x` is gone"}), "x is gone"),
        (ended("t", "Not found.", status="error", artifact={"rows": 3}), "Not found."),
        (ended("t", "Not found.", status="error", artifact="raw"), "Not found."),
    ],
)
def test_why_a_tool_failed(end: Part, reason: str) -> None:
    events = fed(Translation("supervisor"), started("t", "search"), end)
    assert events[-1] == ToolFinished("supervisor", "search", "t", False, reason)


def test_a_tool_that_ends_without_a_message_has_done_its_work() -> None:
    translation = Translation("supervisor")
    for call_id, result in (("t", None), ("u", "text"), ("v", {"messages": []})):
        fed(translation, started(call_id, "search"))
        data = {"id": call_id, "name": "tools", "result": result}
        assert fed(translation, {"type": "tasks", "ns": (), "data": data}) == [
            ToolFinished("supervisor", "search", call_id, True)
        ]


def test_a_plan_has_the_models_title_and_steps_follow_the_delegations() -> None:
    translation = Translation("supervisor")
    search, read = {"content": "Search", "agent": "jira"}, {"content": "Read", "agent": "jira"}
    (first,) = fed(translation, *plan("p", search, read))
    assert first == PlanUpdated(
        (PlanStep("step-1", "Search", "pending", 0, "jira"), PlanStep("step-2", "Read", "pending", 1, "jira")), ""
    )
    (second,) = fed(translation, *plan("q", search, read, title="Find it"))
    assert isinstance(second, PlanUpdated)
    assert second.title == "Find it"
    events = fed(translation, delegated("d", "jira"), ended("d", "Found."))
    assert shown(events) == [["in_progress", "pending"], ["completed", "pending"]]
    assert AgentFinished("jira", "d", True, None, None, "step-1") in events
    claimed = fed(
        translation,
        *plan("r", search, {**read, "status": "completed"}, title="Find it"),
        turn(AIMessage("It is done.")),
    )
    assert shown(claimed) == [], "one delegation has served both steps, which counts with the answer"
    assert shown(translation.conclude()) == [["completed", "completed"]]


def test_a_plan_that_the_tool_refused_is_not_shown() -> None:
    refused = ended("p", "no", status="error")
    assert fed(Translation("supervisor"), plan("p", {"content": "Search"})[0], refused) == []


def test_a_step_of_its_own_is_done_after_a_tool_of_its_own() -> None:
    def statuses(*parts: Part) -> list[list[str]]:
        translation = Translation("supervisor")
        fed(translation, *parts)
        return shown(fed(translation, *plan("p", {"content": "Look", "status": "completed"})))

    search = started("t", "search")
    assert statuses(search, ended("t")) == [["completed"]]
    assert statuses(search, ended("t", status="error")) == [["pending"]]
    in_an_agent = (delegated("d", "jira"), started("t", "search", inside("d")), ended("t", ns=inside("d")))
    assert statuses(*in_an_agent) == [["pending"]]


def test_a_run_that_ends_without_an_answer_has_what_its_agents_gave() -> None:
    translation = Translation("supervisor")
    fed(translation, delegated("d", "jira"), ended("d", "Three tickets."))
    fed(translation, delegated("e", "argocd"), ended("e", "In sync."), delegated("f", "github"))
    fed(translation, ended("f", "Broken.", status="error"), started("t", "search"))
    partial = "**Jira**\n\nThree tickets.\n\n**Argocd**\n\nIn sync."
    assert [*translation.conclude()] == [
        ToolFinished("supervisor", "search", "t", False, "stopped"),
        Failed("empty_answer", "The model ended without an answer.", partial),
    ]


def test_a_run_that_raises_closes_its_calls_and_fails_their_steps() -> None:
    translation = Translation("supervisor")
    fed(translation, *plan("p", {"content": "Search", "agent": "jira"}), delegated("d", "jira"))
    *events, ending = translation.fail(TimeoutError())
    assert events[0] == AgentFinished("jira", "d", False, "stopped", None, "step-1")
    assert shown(events) == [["failed"]]
    assert ending == Failed("timeout", failure_of(TimeoutError()).sentence)


def test_a_run_that_is_canceled_leaves_its_steps_unfinished() -> None:
    translation = Translation("supervisor")
    fed(translation, *plan("p", {"content": "Search", "agent": "jira"}), delegated("d", "jira"))
    assert [*translation.cancel()] == [AgentFinished("jira", "d", False, "canceled", None, "step-1"), Canceled("user")]
    assert [*Translation("supervisor").cancel("ops")] == [Canceled("ops")]


@pytest.mark.parametrize(("messages", "message_id"), [([AIMessage("", id="m1")], "m1-answer"), ([], "answer")])
def test_a_structured_answer_is_a_message_of_its_own(messages: list[AIMessage], message_id: str) -> None:
    translation = Translation("supervisor")
    assert fed(translation, turn(*messages, structured_response={"answer": "It is v3."})) == [
        TextDelta("supervisor", message_id, "It is v3."),
        MessageEnded("supervisor", message_id),
    ]
    assert [*translation.conclude()] == [FinalResult("It is v3.", message_id)]


def test_a_notice_is_a_message_of_the_agent_whose_model_gave_it() -> None:
    translation = Translation("supervisor", agent_text=True)
    fed(translation, delegated("d", "jira"))
    notice = RetryNotice("Trying again.", "n1")
    assert fed(translation, said(notice)) == [
        TextDelta("supervisor", "n1", "Trying again."),
        MessageEnded("supervisor", "n1"),
    ]
    assert fed(translation, said(notice, inside("d"))) == [
        TextDelta("jira", "n1", "Trying again.", "d"),
        MessageEnded("jira", "n1", "d"),
    ]


def test_events_of_a_remote_agent_stand_below_its_delegation() -> None:
    translation = Translation("supervisor", agent_text=True)
    fed(translation, *plan("p", {"content": "Search", "agent": "jira"}), delegated("d", "jira"))

    def placed(event: Event) -> list[Event]:
        return fed(translation, said(RemoteEvent(event, "d")))

    assert placed(ToolStarted("jira", "search", "t")) == [ToolStarted("jira", "search", "t", "d", "step-1")]
    assert placed(AgentStarted("helper", "a", "t")) == [AgentStarted("helper", "a", "t", "step-1")]
    assert placed(AgentFinished("helper", "a", True)) == [AgentFinished("helper", "a", True, None, "t", "step-1")]
    assert placed(ToolFinished("jira", "search", "t", False, "no rights")) == [
        ToolFinished("jira", "search", "t", False, "no rights", "d", "step-1")
    ]
    assert placed(TextDelta("jira", "m9", "Found.")) == [TextDelta("jira", "m9", "Found.", "d")]
    assert placed(MessageEnded("jira", "m9")) == [MessageEnded("jira", "m9", "d")]
    assert fed(translation, said(RemoteEvent(ToolStarted("jira", "search", "u"), "gone"))) == []


def test_a_text_that_a_remote_agent_writes_again_supersedes_the_first_one_here_too() -> None:
    cut, again = TextDelta("jira", "m1", "Fou", "d"), TextDelta("jira", "m2", "Found ", "d", supersedes="m1")
    begun = [AgentStarted("jira", "d"), cut, MessageEnded("jira", "m1", "d")]
    rest = [TextDelta("jira", "m2", "it.", "d"), MessageEnded("jira", "m2", "d"), TextDelta("jira", "m3", "Bye.", "d")]
    # The agent sends the whole stream again to a supervisor that was restarted.
    for history, emitted in ((begun, [again, *rest]), ([*begun, again], rest)):
        translation = Translation("supervisor", agent_text=True, history=history)
        sent = [event for delta in (again, *rest) for event in fed(translation, said(RemoteEvent(delta, "d")))]
        assert sent == emitted


STEPS = (PlanStep("step-1", "Search", "in_progress", 0, "jira"), PlanStep("step-2", "Sum up", "pending", 1))


@pytest.mark.parametrize(
    ("history", "statuses"),
    [
        ([AgentStarted("jira", "d", None, "step-1")], ["in_progress", "pending"]),
        (
            [AgentStarted("jira", "d", None, "step-1"), AgentFinished("jira", "d", False, "no", None, "step-1")],
            ["failed", "pending"],
        ),
        (
            [AgentStarted("jira", "d", None, "step-1"), AgentFinished("jira", "d", True, None, None, "step-1")],
            ["completed", "pending"],
        ),
        ([ToolFinished("supervisor", "search", "t", True)], ["in_progress", "completed"]),
        ([ToolFinished("supervisor", "search", "t", False, "no")], ["in_progress", "pending"]),
        ([ToolFinished("jira", "search", "t", True, None, "d")], ["in_progress", "pending"]),
    ],
    ids=["under way", "failed", "done", "own tool", "failed tool", "tool of an agent"],
)
def test_a_run_that_goes_on_knows_the_truth_about_its_steps(history: list[Event], statuses: list[str]) -> None:
    """The model calls every step completed."""
    translation = Translation("supervisor", history=[PlanUpdated(STEPS, "Find it"), *history])
    claimed = [{"content": step.title, "agent": step.agent, "status": "completed"} for step in STEPS]
    (plan_again,) = fed(translation, *plan("p", *claimed, title="Found it"))
    assert shown([plan_again]) == [statuses]


def test_a_run_that_goes_on_ends_what_was_begun_before() -> None:
    history = [
        PlanUpdated(STEPS, "Find it"),
        AgentStarted("jira", "d", None, "step-1"),
        ToolStarted("jira", "ask", "t", "d"),
    ]
    translation = Translation("supervisor", history=history)
    assert fed(translation, delegated("d", "jira"), started("t", "ask", inside("d"))) == []
    events = fed(translation, ended("t", ns=inside("d")), ended("d", "Found."))
    assert events[:2] == [
        ToolFinished("jira", "ask", "t", True, None, "d"),
        AgentFinished("jira", "d", True, None, None, "step-1"),
    ]
    assert events[2] == PlanUpdated((PlanStep("step-1", "Search", "completed", 0, "jira"), STEPS[1]), "Find it")


def test_a_tool_call_of_an_agent_has_the_skill_it_reads_and_the_step_it_works_on() -> None:
    translation = Translation("supervisor")
    fed(translation, *plan("p", {"content": "Search", "agent": "jira"}), delegated("d", "jira"))
    assert fed(translation, started("t", "read_skill", inside("d"), name="triage")) == [
        ToolStarted("jira", "read_skill", "t", "d", "step-1", "triage")
    ]
    assert fed(translation, started("u", "search", inside("gone"))) == [ToolStarted("unknown", "search", "u", "gone")]


def test_a_text_that_is_not_what_streamed_is_sent_as_another_message() -> None:
    translation = Translation("supervisor", agent_text=True)
    fed(translation, delegated("d", "jira"))
    ns = inside("d")
    events = fed(translation, token("Draft.", ns=ns), turn(AIMessage("The end.", id="m1"), ns=ns))
    assert events == [
        TextDelta("jira", "m1", "Draft.", "d"),
        MessageEnded("jira", "m1", "d"),
        TextDelta("jira", "m1-final", "The end.", "d"),
        MessageEnded("jira", "m1-final", "d"),
    ]


def test_the_rest_of_a_text_is_sent_with_the_message_that_began_it() -> None:
    translation = Translation("supervisor", agent_text=True)
    fed(translation, delegated("d", "jira"))
    ns = inside("d")
    events = fed(translation, token("The ", ns=ns), turn(AIMessage("The end.", id="other"), ns=ns))
    assert events == [
        TextDelta("jira", "m1", "The ", "d"),
        TextDelta("jira", "m1", "end.", "d"),
        MessageEnded("jira", "m1", "d"),
    ]
    assert isinstance([*translation.conclude()][-1], Failed), "words of an agent are no answer of the run"


def test_of_two_beginnings_the_last_one_became_the_message_unless_the_id_says_otherwise() -> None:
    twice = (token("The", "a"), token("The ", "b"))
    for message_id, expected in (("c", "b"), ("a", "a")):
        translation = Translation("supervisor")
        fed(translation, *twice, turn(AIMessage("The end.", id=message_id)))
        assert [*translation.conclude()] == [FinalResult("The end.", expected)]
    translation = Translation("supervisor")
    assert fed(translation, turn(AIMessage("The end.", id="m7")))[0] == TextDelta("supervisor", "m7", "The end.")


def test_words_before_a_call_are_no_answer() -> None:
    call = {"name": "search", "args": {}, "id": "c"}
    translation = Translation("supervisor")
    fed(translation, turn(AIMessage("I look.", id="m1", tool_calls=[call])))
    assert isinstance([*translation.conclude()][-1], Failed)


def test_an_answer_that_the_provider_cut_says_so() -> None:
    translation = Translation("supervisor")
    fed(translation, turn(AIMessage("It is", id="m1", response_metadata={"finish_reason": "length"})))
    (ending,) = translation.conclude()
    assert isinstance(ending, FinalResult)
    assert ending.limit is not None


def test_a_turn_that_failed_leaves_no_answer() -> None:
    translation = Translation("supervisor")
    failed = {"id": "turn", "name": "model", "error": "boom", "result": {"messages": [AIMessage("Half", id="m1")]}}
    assert fed(translation, {"type": "tasks", "ns": (), "data": failed}) == []
    assert isinstance([*translation.conclude()][-1], Failed)


def test_a_form_that_was_open_comes_back_as_it_was_with_its_asker() -> None:
    form = Form("i", "Which name?", (FormField("name", value="demo"),), agent="jira")
    question = {"id": "i", "value": question_data(replace(form, agent=None, fields=(FormField("name"),)))}
    data = {"id": "t", "name": "tools", "interrupts": [question], "result": None}
    history = [AgentStarted("jira", "d"), InputRequired((form,))]
    again = Translation("supervisor", history=history)
    fed(again, {"type": "tasks", "ns": inside("d"), "data": data})
    assert [*again.conclude()] == [InputRequired((form,))]
    fresh = Translation("supervisor", history=history[:1])
    fed(fresh, {"type": "tasks", "ns": inside("d"), "data": data})
    (asked,) = fresh.conclude()
    assert isinstance(asked, InputRequired)
    assert asked.forms[0].agent == "jira"
