"""What people read while a run goes on, and when it has ended: narration as it comes, no echo of an agent's report,
and the answer once, whatever was streamed of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ai_platform_engineering.events import (
    SUPERVISOR,
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    Failed,
    FinalResult,
    MessageEnded,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Rating, Retry, StartStream
from ai_platform_engineering.integrations.slack_bot.thread_view.planner import is_done
from ai_platform_engineering.integrations.slack_bot.thread_view.reducer import StopRequested
from ai_platform_engineering.utils.a2a_common.codec.labels import display
from tests.integrations.slack_bot.scenes import Scene, answers, begins, plan, reports, says, uses, works, writes
from tests.recordings.record import HERE, runs

READING = ["search", "fetch_document", "list_datasources", "fetch_url", "read_skill"]
RECORDINGS = sorted(HERE.glob("*.jsonl"))


# Parsing: from the wire to the thread


def test_what_was_sent_is_what_is_heard() -> None:
    scene = Scene()
    events: list[Event] = [
        *says("m1", "Let me look."),
        plan(("Ask Argo CD", "argocd", "in_progress")),
        *works("argocd", "c1", "s0"),
        *answers("m2", "All is well."),
    ]
    scene.hear(*events)
    assert scene.heard == events


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_a_recorded_run_is_told_once_and_names_everybody_who_worked(recording: Path) -> None:
    for events in runs(recording.read_text()):
        scene = Scene()
        for event in events:
            scene.hear(event, then=0.3)
        scene.driver.finish()

        assert scene.heard == events
        assert is_done(scene.driver.state)
        if isinstance(events[-1], FinalResult):
            assert scene.text.count(events[-1].text.strip()) == 1
        for event in events:
            if isinstance(event, AgentStarted):
                assert f"Calling Agent {display(event.agent)}..." in scene.model.words
        assert "in_progress" not in scene.statuses.values()
        assert not any(shown.streaming for shown in scene.model.messages)


def test_narration_and_answer_of_a_recorded_run_are_in_order() -> None:
    lines = [json.loads(line) for line in (HERE / "one-agent.jsonl").read_text().splitlines()]
    narration = next(line["text"] for line in lines if line["event"] == "text_delta")
    answer = next(line["text"] for line in lines if line["event"] == "final_result")
    (events,) = runs((HERE / "one-agent.jsonl").read_text())
    scene = Scene()
    scene.hear(*events)
    scene.driver.finish()
    assert scene.text == f"{narration}\n\n{answer}"


# Narration, as it is written


def test_narration_is_seen_before_the_tool_it_announces_ends() -> None:
    scene = Scene()
    scene.hear(writes("m1", "Let me look "), writes("m1", "that up."), MessageEnded(SUPERVISOR, "m1"))
    scene.hear(ToolStarted(SUPERVISOR, "search", "c1"))
    assert scene.text == "Let me look that up."
    assert scene.statuses == {"Knowledge base": "in_progress"}
    scene.hear(ToolFinished(SUPERVISOR, "search", "c1", True))
    assert scene.statuses == {"Knowledge base": "complete"}


def test_the_first_word_does_not_wait_for_a_second() -> None:
    scene = Scene()
    scene.hear(writes("m1", "Let"), then=0.0)
    assert scene.text == "Let"
    assert scene.model.statuses == ["is working on it..."]
    assert len(scene.done(StartStream)) == 1


def test_text_between_two_agents_is_not_shown() -> None:
    scene = Scene()
    scene.hear(*says("m1", "First Argo CD."), *works("argocd"))
    scene.hear(*says("m2", "Argo CD runs 3.1."), begins("jira"))
    assert scene.text == "First Argo CD."
    scene.hear(reports("jira"), *answers("m3", "Argo CD runs 3.1, and Jira is quiet."))
    assert scene.text == "First Argo CD.\n\nArgo CD runs 3.1, and Jira is quiet."


def test_a_message_that_goes_on_while_an_agent_reports_is_not_torn() -> None:
    scene = Scene()
    scene.hear(begins("argocd"), writes("m1", "While that runs, "), reports("argocd"))
    scene.hear(writes("m1", "a word of warning."), MessageEnded(SUPERVISOR, "m1"))
    assert scene.text == "While that runs, a word of warning."


def test_a_second_message_waits_until_the_first_has_ended() -> None:
    scene = Scene()
    scene.hear(writes("m1", "one "), writes("m2", "three"))
    scene.hear(writes("m1", "two"))
    assert scene.text == "one two"
    scene.hear(MessageEnded(SUPERVISOR, "m1"))
    assert scene.text == "one two\n\nthree"


def test_what_agents_write_among_themselves_is_not_shown() -> None:
    scene = Scene()
    scene.hear(begins("argocd"), TextDelta("argocd", "a1", "raw report", "argocd"))
    scene.hear(MessageEnded("argocd", "a1", "argocd"), reports("argocd"), *answers("m1", "All is well."))
    assert scene.text == "All is well."


# The echo of an agent's report


def test_what_follows_an_agents_report_is_held_back_until_the_answer() -> None:
    scene = Scene()
    scene.hear(*says("m1", "Asking Argo CD."), *works("argocd"))
    scene.hear(writes("m2", "Argo CD says: "), then=30.0)
    assert scene.text == "Asking Argo CD."
    scene.hear(writes("m2", "3.1"), MessageEnded(SUPERVISOR, "m2"), *answers("m3", "You run Argo CD 3.1."))
    assert scene.paragraphs == ["Asking Argo CD.", "You run Argo CD 3.1."]


def test_an_answer_that_was_held_back_is_told_when_it_is_final() -> None:
    scene = Scene()
    scene.hear(*works("argocd"), *says("m1", "You run 3.1."), then=30.0)
    assert scene.text == ""
    scene.hear(FinalResult("You run 3.1.", "m1"))
    assert scene.text == "You run 3.1."


def test_an_agent_that_failed_is_held_back_as_well() -> None:
    scene = Scene()
    scene.hear(begins("argocd"), reports("argocd", ok=False), *says("m1", "Error: it did not answer."))
    assert scene.text == ""
    assert "Argocd failed: it did not answer" in scene.model.words


def test_the_tools_of_an_agent_do_not_end_it() -> None:
    scene = Scene()
    scene.hear(*works("argocd"), begins("jira"), reports("argocd", "other"))
    scene.hear(writes("m1", "An echo."), *uses("jql_search", "jira", within="jira"))
    assert scene.text == ""


@pytest.mark.parametrize(
    "next_one",
    [ToolStarted(SUPERVISOR, "fetch_url", "c9"), ToolStarted(SUPERVISOR, "get_time", "c9")],
    ids=["a knowledge tool", "another tool"],
)
def test_holding_back_ends_when_a_tool_of_the_supervisor_begins(next_one: Event) -> None:
    scene = Scene()
    scene.hear(*works("argocd"), *says("m1", "Next I look elsewhere."))
    assert scene.text == ""
    scene.hear(next_one, then=0.8)
    scene.hear(writes("m2", "And meanwhile this."))
    assert scene.text == "Next I look elsewhere.\n\nAnd meanwhile this."


def test_holding_back_ends_when_another_step_begins() -> None:
    scene = Scene()
    scene.hear(plan(("Ask", "argocd", "in_progress"), ("Sum up", "", "pending")), *works("argocd", step="s0"))
    scene.hear(plan(("Ask", "argocd", "completed"), ("Sum up", "", "pending")), writes("m1", "Summing up."))
    assert scene.text == ""
    scene.hear(plan(("Ask", "argocd", "completed"), ("Sum up", "", "in_progress")))
    assert scene.text == "Summing up."


def test_a_plan_that_only_says_what_is_done_does_not_end_it() -> None:
    scene = Scene()
    both = plan(("Ask", "argocd", "in_progress"), ("Ask", "jira", "in_progress"))
    scene.hear(both, begins("argocd", "c1", "s0"), begins("jira", "c2", "s1"), reports("argocd", "c1", "s0"))
    scene.hear(plan(("Ask", "argocd", "completed"), ("Ask", "jira", "in_progress")), writes("m1", "An echo."))
    assert scene.text == ""


# The knowledge base and skills


@pytest.mark.parametrize("tool", READING)
def test_what_follows_a_document_or_a_skill_streams_through(tool: str) -> None:
    scene = Scene()
    scene.hear(*uses(tool), writes("m1", "The runbook says: "))
    assert scene.text == "The runbook says: "
    scene.hear(writes("m1", "restart it."), MessageEnded(SUPERVISOR, "m1"))
    assert scene.text == "The runbook says: restart it."
    scene.hear(FinalResult("The runbook says: restart it.", "m1"))
    assert scene.text == "The runbook says: restart it."


@pytest.mark.parametrize("tool", READING)
def test_it_does_so_also_after_an_agent_in_an_earlier_step(tool: str) -> None:
    scene = Scene()
    scene.hear(plan(("Ask", "argocd", "in_progress"), ("Read", "", "pending")), *works("argocd", step="s0"))
    scene.hear(*uses(tool), writes("m1", "The runbook says: restart it."))
    assert scene.text == "The runbook says: restart it."


def test_narration_before_a_skill_is_read_stays_and_the_card_names_the_skill() -> None:
    scene = Scene()
    scene.hear(*says("m1", "I'll read the skill first."), *uses("read_skill", skill="incident-triage"))
    scene.hear(*says("m2", "Its first step is the list of incidents."), *works("pagerduty"))
    scene.hear(*answers("m3", "There are none."))
    assert scene.text == ("I'll read the skill first.\n\nIts first step is the list of incidents.\n\nThere are none.")
    assert scene.statuses["Skill incident-triage"] == "complete"


def test_an_agent_after_the_knowledge_base_is_held_back_again() -> None:
    scene = Scene()
    scene.hear(*uses("search"), *says("m1", "The runbook says: restart it."), *works("argocd"))
    scene.hear(writes("m2", "An echo."))
    assert scene.text == "The runbook says: restart it."


# The answer has the last word

NARRATION = "Let me see."
WITH_AND_WITHOUT_A_PLAN = pytest.mark.parametrize("planned", [False, True], ids=["no plan", "plan"])


def answered(final: str, streamed: str, *, planned: bool, ended: bool = True, limit: str | None = None) -> Scene:
    """A run whose answer was streamed as `streamed`, and is `final`."""
    scene = Scene()
    if planned:
        scene.hear(plan(("Look", "", "in_progress")))
    scene.hear(*says("m1", NARRATION))
    if streamed:
        scene.hear(writes("m2", streamed))
        assert scene.text == f"{NARRATION}\n\n{streamed}"
    if streamed and ended:
        scene.hear(MessageEnded(SUPERVISOR, "m2"))
    scene.hear(FinalResult(final, "m2", limit))
    scene.driver.finish()
    assert is_done(scene.driver.state)
    return scene


@WITH_AND_WITHOUT_A_PLAN
@pytest.mark.parametrize("streamed", ["It is 3.1.", "It is", "", "It is 3.1.\n", " It is 3.1. "])
@pytest.mark.parametrize("ended", [True, False])
def test_the_answer_is_there_once_however_much_of_it_was_streamed(streamed: str, planned: bool, ended: bool) -> None:
    scene = answered("It is 3.1.", streamed, planned=planned, ended=ended)
    assert [" ".join(paragraph.split()) for paragraph in scene.paragraphs] == [NARRATION, "It is 3.1."]
    assert isinstance(scene.model.messages[-1].footer, Rating)


@WITH_AND_WITHOUT_A_PLAN
def test_an_answer_that_is_not_what_was_streamed_is_told_whole(planned: bool) -> None:
    scene = answered("It is 3.1, and healthy.", "It is 2.9.", planned=planned)
    assert scene.paragraphs == [NARRATION, "It is 2.9.", "It is 3.1, and healthy."]


def test_an_answer_that_streamed_under_another_name_is_not_told_twice() -> None:
    scene = Scene()
    scene.hear(*says("m1", NARRATION), *says("m2", "It is 3.1."), FinalResult("It is 3.1.", ""))
    scene.driver.finish()
    assert scene.paragraphs == [NARRATION, "It is 3.1."]


@WITH_AND_WITHOUT_A_PLAN
def test_an_answer_that_a_limit_cut_short_says_so_below(planned: bool) -> None:
    scene = answered("It is 3.1.", "It is 3.1.", planned=planned, limit="recursion_limit")
    *before, last = scene.paragraphs
    assert before == [NARRATION, "It is 3.1."]
    assert "limit" in last


def test_a_budget_that_is_nearly_used_up_is_said_below_the_answer() -> None:
    scene = Scene()
    scene.hear(*says("m1", "It is 3.1."), FinalResult("It is 3.1.", "m1", budget_warning="85 % are used."))
    scene.driver.finish()
    assert scene.paragraphs == ["It is 3.1.", "_85 % are used._"]


def test_an_answer_without_words_is_said_to_be_none() -> None:
    scene = answered(" \n", "", planned=False)
    assert scene.paragraphs == [NARRATION, "_There is no answer._"]


@WITH_AND_WITHOUT_A_PLAN
def test_an_answer_after_an_agent_is_told_once(planned: bool) -> None:
    scene = Scene()
    if planned:
        scene.hear(plan(("Ask", "argocd", "in_progress")))
    scene.hear(*says("m1", NARRATION), *works("argocd", step="s0" if planned else None))
    if planned:
        scene.hear(plan(("Ask", "argocd", "completed")))
    scene.hear(*answers("m2", "It is 3.1."))
    scene.driver.finish()
    assert scene.paragraphs == [NARRATION, "It is 3.1."]
    assert set(scene.statuses.values()) == {"complete"}


@pytest.mark.parametrize(
    ("partial", "paragraphs"),
    [
        ("Two of three are healthy.", ["Two of three are healthy."]),
        ("Two of three are healthy. The third is not.", ["Two of three are healthy. The third is not."]),
        ("What I found: nothing.", ["Two of three are healthy.", "What I found: nothing."]),
        (None, ["Two of three are healthy."]),
    ],
    ids=["streamed already", "streamed in part", "not streamed", "none"],
)
def test_what_there_is_of_a_run_that_failed_is_told_once_with_the_reason_and_a_retry(
    partial: str | None, paragraphs: list[str]
) -> None:
    scene = Scene()
    scene.hear(writes("m1", "Two of three are healthy."), then=2.0)
    scene.hear(MessageEnded(SUPERVISOR, "m1"), Failed("model_error", "The model did not answer.", partial))
    scene.driver.finish()
    assert scene.paragraphs == [*paragraphs, "⚠️ The model did not answer."]
    assert scene.model.messages[-1].footer == Retry("task")


def test_what_was_held_back_is_told_when_there_is_no_answer() -> None:
    scene = Scene()
    scene.hear(*works("argocd"), *says("m1", "Argo CD says 3.1."), Failed("model_error", "The model did not answer."))
    scene.driver.finish()
    assert scene.paragraphs == ["Argo CD says 3.1.", "⚠️ The model did not answer."]


def test_a_run_that_was_stopped_says_by_whom_below_what_there_was() -> None:
    scene = Scene()
    scene.hear(plan(("Ask", "argocd", "in_progress")), begins("argocd", step="s0"), *says("m1", "Asking Argo CD."))
    scene.driver.feed(StopRequested("U7"))
    scene.hear(reports("argocd", step="s0", ok=False), Canceled())
    scene.driver.finish()
    assert scene.paragraphs == ["Asking Argo CD.", "_Stopped by <@U7>._"]
    assert "in_progress" not in scene.statuses.values()
    assert scene.model.messages[-1].footer is None


def test_a_run_that_failed_before_it_said_anything_is_one_message() -> None:
    scene = Scene()
    scene.hear(Failed("no_model", "There is no model at https://10.0.0.7:8080/v1?key=abc to ask."))
    scene.driver.finish()
    assert scene.text == "⚠️ There is no model at (address) to ask."
    assert len(scene.model.messages) == 1


@pytest.mark.parametrize(
    "address", ["https://10.0.0.7:8080/v1?key=abc", "argocd-mcp:8001", "vault.ops.internal:443/v1", "localhost:80"]
)
def test_why_something_failed_is_told_without_where_it_is(address: str) -> None:
    scene = Scene()
    scene.hear(
        begins("argocd"), AgentFinished("argocd", "argocd", False, f"Nothing listens at {address} at 10:30, try 2:1")
    )
    scene.hear(Failed("model", f"Nothing listens at {address} at 10:30, try 2:1"))
    scene.driver.finish()
    assert scene.model.words.count("Nothing listens at (address) at 10:30, try 2:1") == 2
    assert address not in scene.model.words


def test_a_message_that_a_crash_cut_off_is_told_again_and_people_are_told_why() -> None:
    scene = Scene()
    scene.hear(writes("m1", "It is "), then=2.0)
    scene.hear(TextDelta(SUPERVISOR, "m2", "It is 3.1.", None, "m1"), MessageEnded(SUPERVISOR, "m2"))
    scene.hear(FinalResult("It is 3.1.", "m2"))
    scene.driver.finish()
    assert [part.strip() for part in scene.paragraphs] == [
        "It is",
        "_The text above was cut off; it is written again._",
        "It is 3.1.",
    ]
