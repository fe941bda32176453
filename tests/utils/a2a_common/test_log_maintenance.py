"""A form without an answer expires: its task fails with a sentence, no call stays open, its conversation is free."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from a2a.types.a2a_pb2 import TaskState

from ai_platform_engineering.events import (
    AgentStarted,
    Canceled,
    Event,
    Failed,
    FinalResult,
    Form,
    InputRequired,
    PlanStep,
    PlanUpdated,
    TextDelta,
    ToolStarted,
)
from ai_platform_engineering.runs.outcomes import InterruptedRun
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.storage.event_log.event_log import EventLog
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.storage.event_log.sqlite_log import SqliteEventLog
from ai_platform_engineering.utils.a2a_common.server.log_maintenance import (
    end_interrupted,
    end_overdue,
    event_log,
    maintained,
)
from ai_platform_engineering.utils.a2a_common.server.task_endings import TaskEndings
from ai_platform_engineering.utils.a2a_common.wire import Decoder, StreamState, begin
from tests.invariants import check
from tests.storage.event_log.test_log_contract import QUESTION, Writer, message, numbers, submitted

WEEK = 168.0
SHOWN: tuple[Event, ...] = (
    PlanUpdated((PlanStep("s1", "Look", "in_progress", 0, "argocd"), PlanStep("s2", "Tell", "pending", 1))),
    AgentStarted("argocd", "c1", plan_step_id="s1"),
    ToolStarted("argocd", "request_user_input", "c2", "c1", "s1"),
    InputRequired((Form("form-1", "Which?", agent="argocd"),)),
)


class Released:
    """Notes what is released."""

    def __init__(self) -> None:
        self.conversations: list[tuple[str, bool]] = []

    async def __call__(self, run: InterruptedRun, for_good: bool) -> None:
        self.conversations.append((run.context_id, for_good))


@pytest.fixture(params=("memory", "sqlite"))
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    log = MemoryEventLog() if request.param == "memory" else SqliteEventLog(tmp_path / "tasks.db")
    async with log.opened() as opened:
        yield opened


async def asked(log: EventLog, task_id: str, context_id: str, days_ago: float, *events: Event) -> Writer:
    writer = Writer(log, task_id, context_id)
    writer.state.clock = lambda: time.time() - days_ago * 86_400
    await writer.begin()
    await writer.write(*(events or (QUESTION,)))
    return writer


async def events_of(log: EventLog, task_id: str) -> list[Event]:
    decoder = Decoder("supervisor")
    return [event for entry in await log.read(task_id) for event in decoder.feed(entry.event)]


def after_the_question(events: list[Event]) -> list[Event]:
    """A whole run without its pause, as the checker knows runs."""
    return [event for event in events if not isinstance(event, InputRequired)]


async def test_a_form_without_an_answer_for_a_week_ends_its_task(log: EventLog) -> None:
    await asked(log, "old", "a", 7.1, *SHOWN)
    await asked(log, "young", "b", 6.9)
    released = Released()
    await end_overdue(log, WEEK, "supervisor", released)

    events = await events_of(log, "old")
    assert check(after_the_question(events)) == Failed(
        "expired", "The form was not answered within 7 days, so the task was ended. Ask again to start over."
    )
    last_plan = [event for event in events if isinstance(event, PlanUpdated)][-1]
    assert [step.status for step in last_plan.steps] == ["failed", "pending"]
    assert await log.state("old") == TaskState.TASK_STATE_FAILED
    assert await log.state("young") == TaskState.TASK_STATE_INPUT_REQUIRED
    assert released.conversations == [("a", False)]
    assert await log.waiting("a") is None

    stored = len(await log.read("old"))
    assert await numbers(log.follow("old", after=5)) == list(range(6, stored + 1))
    await end_overdue(log, WEEK, "supervisor", released)
    assert len(await log.read("old")) == stored


async def test_an_answer_that_is_being_worked_on_is_not_late(log: EventLog) -> None:
    writer = await asked(log, "answered", "a", 8)
    await log.add_message("answered", message("q2"))
    released = Released()
    await end_overdue(log, WEEK, "supervisor", released)
    assert released.conversations == []
    await log.append("answered", begin(writer.state))
    await end_overdue(log, WEEK, "supervisor", released)
    assert await log.state("answered") == TaskState.TASK_STATE_WORKING
    await writer.write(FinalResult("done", "m1"))


async def test_a_form_that_was_shown_again_begins_to_wait_again(log: EventLog) -> None:
    writer = await asked(log, "t", "a", 8)
    await log.add_message("t", message("q2"))
    writer.state.clock = time.time
    await writer.write(QUESTION)
    await end_overdue(log, WEEK, "supervisor")
    assert await log.state("t") == TaskState.TASK_STATE_INPUT_REQUIRED


async def test_a_conversation_is_released_when_nothing_waits_in_it_any_more(log: EventLog) -> None:
    await asked(log, "first", "a", 9)
    await asked(log, "second", "a", 8)
    await asked(log, "third", "b", 8)
    await asked(log, "fourth", "b", 1)
    released = Released()
    await end_overdue(log, WEEK, "supervisor", released)
    assert released.conversations == [("a", False)]


async def test_what_a_supervisor_had_delegated_is_released_for_good(log: EventLog) -> None:
    task = submitted("t", "delegation")
    task.history[0].metadata.update({"delegated": True})
    await log.create(task)
    writer = Writer(log, "t", "delegation")
    writer.state.clock = lambda: time.time() - 8 * 86_400
    await writer.write(QUESTION)
    released = Released()
    await end_overdue(log, WEEK, "argocd", released)
    assert released.conversations == [("delegation", True)]


async def test_one_that_cannot_be_ended_does_not_keep_the_others(
    log: EventLog, caplog: pytest.LogCaptureFixture
) -> None:
    await asked(log, "bad", "a", 9)
    await asked(log, "good", "b", 8)

    async def refuse(run: InterruptedRun, _for_good: bool) -> None:
        if run.context_id == "a":
            raise OSError("no room")

    await end_overdue(log, WEEK, "supervisor", refuse)
    assert await log.state("good") == TaskState.TASK_STATE_FAILED
    assert "task bad" in caplog.text


@pytest.mark.parametrize(
    ("hours", "words"),
    [(168, "7 days"), (24, "1 day"), (36, "36 hours"), (1, "1 hour"), (1.5, "1.5 hours"), (0.5, "30 minutes")],
)
async def test_the_sentence_says_how_long(log: EventLog, hours: float, words: str) -> None:
    await asked(log, "t", "a", 8)
    await end_overdue(log, hours, "supervisor")
    ending = (await events_of(log, "t"))[-1]
    assert isinstance(ending, Failed)
    assert f"within {words}, so" in ending.message


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize(("hours", "state"), [("168", "FAILED"), ("0", "INPUT_REQUIRED"), ("300", "INPUT_REQUIRED")])
async def test_it_happens_while_a_server_runs(tmp_path: Path, kind: str, hours: str, state: str) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path), "EVENT_LOG": kind, "FORM_EXPIRY_HOURS": hours}, None)
    forgotten = asyncio.Event()

    async def forget(_conversations: object) -> None:
        forgotten.set()

    async with event_log(settings).opened() as log:
        await asked(log, "t", "a", 8)
        async with maintained(log, settings, "supervisor", forget), asyncio.timeout(90):
            await forgotten.wait()
            assert await log.state("t") == getattr(TaskState, f"TASK_STATE_{state}")


@pytest.mark.long
async def test_what_comes_to_wait_later_is_ended_in_a_later_round() -> None:
    settings = load_settings({"EVENT_LOG": "memory", "FORM_EXPIRY_HOURS": "0.0001"}, None)

    async def forget(_conversations: object) -> None:
        pass

    log = event_log(settings)
    async with maintained(log, settings, "supervisor", forget), asyncio.timeout(90):
        await asyncio.sleep(0.05)
        await (await Writer(log).begin()).write(QUESTION)
        while await log.state("t") != TaskState.TASK_STATE_FAILED:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_what_was_answered_when_the_process_died_waits_no_more(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    async with SqliteEventLog(path).opened() as log:
        for name in ("resumed", "waiting"):
            writer = await asked(log, name, name, 0)
        await log.add_message("resumed", message("q2"))
        await log.append("resumed", begin(StreamState("resumed", "resumed", "trace")))
    released = Released()
    async with SqliteEventLog(path).opened() as log:
        await end_interrupted(log, "supervisor", released)
        assert await log.state("resumed") == TaskState.TASK_STATE_FAILED
        assert await log.waiting("waiting") == writer.state.task_id
    assert released.conversations == [("resumed", False)]


@pytest.mark.parametrize(
    ("ending", "reason", "statuses"),
    [(Canceled(), "canceled", ["in_progress", "pending"]), (Failed("x", "No."), "stopped", ["failed", "pending"])],
)
async def test_a_task_that_waits_is_closed_as_a_run_would_be(
    log: EventLog, ending: Canceled | Failed, reason: str, statuses: list[str]
) -> None:
    await asked(log, "t", "a", 0, TextDelta("supervisor", "m1", "Let me see."), *SHOWN)
    assert await TaskEndings(log, "supervisor").end_waiting("t", ending)
    events = await events_of(log, "t")
    assert check(after_the_question(events)) == ending
    assert [(event.call_id, event.reason) for event in events if hasattr(event, "ok")] == [
        ("c2", reason),
        ("c1", reason),
    ]
    last_plan = [event for event in events if isinstance(event, PlanUpdated)][-1]
    assert [step.status for step in last_plan.steps] == statuses
