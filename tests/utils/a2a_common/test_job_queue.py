"""The job queue in a real Postgres: order, forms, cancellation, takeover, hand-over."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Literal

import psycopg
import pytest
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job

from ai_platform_engineering.compat.procrastinate import FencedJobManager
from ai_platform_engineering.events import FinalResult, MessageEnded, TextDelta
from ai_platform_engineering.storage.event_log.task_fold import ends_task
from ai_platform_engineering.utils.a2a_common.server import job_offers, job_worker
from ai_platform_engineering.utils.a2a_common.server.work import Assignment
from tests.services.postgres import postgres_server
from tests.utils.a2a_common.job_replicas import TIMEOUT, Replicas, eventually, replicas
from tests.utils.a2a_common.scripted_executor import ANSWER, FORM, Gate, Script

pytest_plugins = ("tests.services.fixtures",)
pytestmark = [pytest.mark.process, pytest.mark.long]

TEXT = (TextDelta("supervisor", "m1", "Half "),)
REST = (TextDelta("supervisor", "m2", "Whole"), MessageEnded("supervisor", "m2"), FinalResult("Whole", "m2"))


def asks_first(text: str, turn: int) -> Script:
    """A question that contains "?" is answered with a form."""
    return (FORM,) if "?" in text else ANSWER


async def test_messages_of_a_conversation_run_in_order_of_arrival_and_others_beside_them(database: str) -> None:
    both = asyncio.Barrier(2)

    class Meeting(Gate):
        async def wait(self) -> bool:  # type: ignore[override]
            return bool(await both.wait()) or True

    def script(text: str, turn: int) -> Script:
        return (Meeting(), *ANSWER) if text == "together" else ANSWER

    async with replicas(database, 2, script) as served:
        tasks = [await served.ask(str(number), at=number % 2) for number in range(12)]
        # Each of the two waits for the other one, so both must run at the same time.
        tasks += [await served.ask("together", context) for context in ("a", "b")]

        assert await served.ended(*tasks) == ["completed"] * 14
        assert [text for text in served.order if text != "together"] == [str(number) for number in range(12)]
        await served.jobs_become()


async def test_the_process_that_accepted_a_message_has_the_token_of_its_caller(database: str) -> None:
    async with replicas(database) as served:
        await served.ended(await served.ask("hello", token="secret"))

        (assignment,) = served.worked
        assert (assignment.auth_token, assignment.begins_task, assignment.resumes) == ("secret", True, False)
        assert "secret" not in str(await served.jobs())


async def test_the_process_that_accepted_a_message_runs_it_unless_it_has_clearly_more_to_do(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With fewer jobs, the other process always fetches first; and nothing is fetched by polling.
    monkeypatch.setattr(job_offers, "_SECONDS_PER_RUN", 3600)
    monkeypatch.setattr(job_worker, "_POLL_SECONDS", 3600)
    gate = Gate()
    async with replicas(database, 2, lambda _text, _turn: (gate, *ANSWER)) as served:
        accepting, other = served.replicas
        worker = accepting.queue._worker
        fetch_job, found_none = worker.jobs.fetch_job, asyncio.Event()

        async def observed_fetch(*arguments: Any, **options: Any) -> Job | None:
            found_none.clear()
            job = await fetch_job(*arguments, **options)
            if job is None:
                found_none.set()
            return job

        monkeypatch.setattr(worker.jobs, "fetch_job", observed_fetch)

        async def know_each_other() -> bool:
            return worker.jobs.worker_id is not None and worker._offers._least_load() == 0

        async def keeps_five() -> bool:
            return len(accepting.runs) == 5 and found_none.is_set()

        async def other_runs() -> bool:
            return bool(other.runs)

        await eventually(know_each_other)
        tasks = [await served.ask("hello", f"c{number}") for number in range(5)]
        await eventually(keeps_five)
        tasks.append(await served.ask("hello", "c5"))
        await eventually(other_runs)
        assert sorted(run.task_id for run in accepting.runs) == tasks[:5]
        assert [run.task_id for run in other.runs] == tasks[5:]
        gate.set()
        assert await served.ended(*tasks) == ["completed"] * 6


async def test_a_form_keeps_its_conversation_until_it_is_answered(database: str) -> None:
    gate = Gate()

    def script(text: str, turn: int) -> Script:
        return (gate, FORM) if text == "Which?" else ANSWER

    async with replicas(database, 1, script) as served:
        asking = await served.ask("Which?")
        others = [await served.ask("second"), await served.ask("third")]
        gate.set()
        await served.waits(asking)
        await served.jobs_become("todo", "todo")
        assert served.order == ["Which?"]

        await served.answer(asking, "app: x")

        assert await served.ended(asking, *others) == ["completed"] * 3
        assert served.order == ["Which?", "app: x", "second", "third"]


@pytest.mark.parametrize("at", [0, 1])
async def test_a_canceled_form_releases_its_conversation(database: str, at: int) -> None:
    async with replicas(database, 2, asks_first) as served:
        asking = await served.ask("Which?")
        await served.waits(asking)
        other = await served.ask("next")
        await _parked(served)

        await served[at].queue.cancel(asking, "c")

        assert await served.ended(asking, other) == ["canceled", "completed"]


async def test_a_message_that_is_parked_while_its_conversation_is_released_is_not_lost(database: str) -> None:
    async with replicas(database, 1, asks_first) as served:
        asking = await served.ask("Which?")
        await served.waits(asking)
        give_back = served[0].queue._jobs.give_back

        async def released_first(*arguments: object, **options: object) -> bool:
            served[0].queue._jobs.give_back = give_back  # type: ignore[method-assign]
            await served[0].queue.cancel(asking, "c")
            return await give_back(*arguments, **options)  # type: ignore[arg-type]

        served[0].queue._jobs.give_back = released_first  # type: ignore[assignment,method-assign]

        assert await served.ended(await served.ask("next")) == ["completed"]


async def test_a_second_answer_to_a_task_that_has_ended_is_dropped(database: str) -> None:
    gate = Gate()

    def script(text: str, turn: int) -> Script:
        return (FORM,) if turn == 0 else (gate, *ANSWER)

    async with replicas(database, 1, script) as served:
        task = await served.ask("Which?")
        await served.waits(task)
        await served.answer(task, "one")
        await served.answer(task, "two")
        gate.set()

        assert await served.ended(task) == ["completed"]
        await served.jobs_become()
        assert served.order == ["Which?", "one"]


@pytest.mark.parametrize("at", [0, 1])
async def test_a_run_is_canceled_from_any_replica(database: str, at: int) -> None:
    gate = Gate()
    async with replicas(database, 2, lambda text, turn: (*ANSWER[:1], gate)) as served:
        task, pending = await served.ask("long"), await served.ask("pending")
        await _running(served, task)

        await served[at].queue.cancel(pending, "c")
        await served[at].queue.cancel(task, "c")

        assert await served.ended(task, pending) == ["canceled", "canceled"]
        assert len(await served.log.read(pending)) == 1
        assert [assignment.canceled for assignment in served.worked] == [True]
        await served.jobs_become()


async def test_a_run_whose_process_seems_dead_is_taken_over_and_the_old_one_writes_nothing_more(database: str) -> None:
    gates = [Gate(), Gate()]

    async with replicas(database, 2) as served:
        for replica, gate in zip(served.replicas, gates, strict=True):
            replica.executor.script = lambda text, turn, gate=gate: (*TEXT, gate, *REST)
        task = await served.ask("work")
        await _running(served, task)
        await _taken_over(served, 2)
        for gate in gates:
            gate.set()

        assert await served.ended(task) == ["completed"]
        epochs = [assignment.epoch for assignment in served.worked]
        assert epochs == list(range(1, len(epochs) + 1))
        assert [assignment.resumes for assignment in served.worked] == [epoch > 1 for epoch in epochs]
        await served.jobs_become()
        events = [entry.event for entry in await served.log.read(task)]
        assert [ends_task(event) for event in events].count(True) == 1
        assert str(events).count('"Whole"') == 2  # as text, and as the result


async def test_a_run_that_makes_no_progress_fails_after_three_attempts(database: str) -> None:
    async with replicas(database, 1, lambda text, turn: (*TEXT, Gate())) as served:
        task = await served.ask("work")
        await _running(served, task)
        for attempts in (2, 3):
            await _taken_over(served, attempts)
        await served.take_over()

        assert await served.ended(task) == ["failed"]
        ended = await served.log.task(task)
        assert ended is not None
        assert "3 times" in ended.status.message.parts[0].text


async def test_a_graceful_stop_hands_runs_over_at_once_and_counts_no_attempt(database: str) -> None:
    gate = Gate()
    async with replicas(database, 5, lambda text, turn: (*TEXT, gate, *REST)) as served:
        task = await served.ask("work")
        for _ in range(4):
            await _running(served, task)
            runner, assignment = next((each, run) for each in served.replicas for run in each.runs)
            await runner.queue.aclose()
            assert assignment.handed_over
        await _running(served, task)
        gate.set()

        assert await served.ended(task) == ["completed"]
        assert len(served.worked) >= 5


async def test_a_graceful_stop_waits_for_runs_and_starts_no_other(database: str) -> None:
    gate = Gate()
    async with replicas(database, 1, lambda text, turn: (gate, *ANSWER)) as served:
        task, pending = await served.ask("work"), await served.ask("pending")
        await _running(served, task)
        stopping = asyncio.create_task(served[0].queue.aclose(TIMEOUT))
        await asyncio.sleep(0)
        assert served[0].queue.stopping
        gate.set()

        assert await served.ended(task) == ["completed"]
        await stopping
        await served.jobs_become("todo")
        assert await served.log.read(pending) == []


async def test_a_message_that_was_stored_but_not_queued_is_recovered(database: str) -> None:
    async with replicas(database) as served:
        put = served[0].queue.put
        served[0].queue.put = _nothing  # type: ignore[method-assign]
        task = await served.ask("lost")
        served[0].queue.put = put  # type: ignore[method-assign]

        await served[0].queue.recover()

        assert await served.ended(task) == ["completed"]
        await served[0].queue.recover()
        await served.jobs_become()
        assert served.order == ["lost"]


async def test_a_message_that_is_about_to_be_queued_is_not_queued_twice(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, listed, running = Gate(), asyncio.Event(), asyncio.Event()
    async with replicas(database, 1, lambda text, turn: (gate, *ANSWER)) as served:
        queue = served[0].queue
        put, list_jobs = queue.put, queue._jobs.list_jobs_async

        async def list_before(**wanted: Any) -> Any:
            jobs = await list_jobs(**wanted)
            listed.set()
            await running.wait()
            return jobs

        async def put_after(assignment: Assignment) -> None:
            await listed.wait()
            await put(assignment)

        monkeypatch.setattr(queue, "put", put_after)
        monkeypatch.setattr(queue._jobs, "list_jobs_async", list_before)
        asking = asyncio.create_task(served.ask("once"))
        await asyncio.sleep(0)
        recovering = asyncio.create_task(queue.recover())
        await _running(served, await asking)
        running.set()
        await recovering

        await served.jobs_become("doing")
        gate.set()
        assert await served.ended(asking.result()) == ["completed"]


async def test_no_run_starts_in_a_paused_conversation(database: str) -> None:
    gate = Gate()
    async with replicas(database, 2, lambda text, turn: (gate, *ANSWER)) as served:
        running = await served.ask("running")
        await _running(served, running)
        async with served[0].queue.paused("c"):
            waiting = await served.ask("waiting", at=1)
            gate.set()
            await served[0].queue.join("c")
            assert await served.ended(running, await served.ask("other", "d")) == ["completed", "completed"]
            assert await served.log.read(waiting) == []

        assert await served.ended(waiting) == ["completed"]


async def test_the_worker_is_restarted_after_others_have_pruned_it(database: str) -> None:
    async with replicas(database) as served:
        await served.ended(await served.ask("before"))
        async with await psycopg.AsyncConnection.connect(database) as connection:
            await connection.execute("DELETE FROM job_queue.procrastinate_workers")

        assert await served.ended(await served.ask("after")) == ["completed"]


@pytest.mark.parametrize("signal", ["INT", "KILL"])
async def test_work_goes_on_after_a_restart_of_the_database(signal: Literal["INT", "KILL"]) -> None:
    gate = Gate()
    with postgres_server() as server:
        async with replicas(server.address(), 2, lambda text, turn: (*TEXT, gate, *REST)) as served:
            running = await served.ask("before")
            await _running(served, running)
            await asyncio.to_thread(server.stop, signal)
            await asyncio.to_thread(server.start)
            gate.set()

            after = await served.ask("after")

            assert await served.ended(running, after) == ["completed", "completed"]
            await served.jobs_become()


async def test_a_queue_stops_while_its_database_is_away(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that is cancelled then raises the error of the connection instead."""
    unregister = FencedJobManager.unregister_worker
    sweeping = asyncio.Event()

    async def fail(jobs: FencedJobManager, worker: int) -> None:
        await unregister(jobs, worker)
        raise ConnectorException("the connection is lost")

    async def fail_when_cancelled(*_arguments: object) -> None:
        sweeping.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        raise ConnectorException("the connection is lost")

    monkeypatch.setattr(FencedJobManager, "unregister_worker", fail)
    monkeypatch.setattr(FencedJobManager, "announce_load", fail_when_cancelled)
    async with asyncio.timeout(TIMEOUT), replicas(database) as served:
        await served.ended(await served.ask("before"))
        await sweeping.wait()


async def test_periodic_work_is_done_by_one_replica_at_a_time(database: str) -> None:
    starts, at_once, done = 0, 0, asyncio.Event()

    async def work() -> None:
        nonlocal starts, at_once
        starts, at_once = starts + 1, at_once + 1
        assert at_once == 1
        await asyncio.sleep(0.2)
        at_once -= 1
        if starts == 3:
            done.set()

    async with replicas(database, 2, periodic=work), asyncio.timeout(TIMEOUT):
        await done.wait()
        assert starts == 3


async def _nothing(*_: object) -> None:
    pass


async def _running(served: Replicas, task: str) -> None:
    """Wait until a replica executes the task."""

    async def is_so() -> bool:
        return any(run.task_id == task for replica in served.replicas for run in replica.runs)

    await eventually(is_so)


async def _parked(served: Replicas) -> None:
    async def is_so() -> bool:
        return any(job["scheduled_at"] is not None for job in await served.jobs())

    await eventually(is_so)


async def _taken_over(served: Replicas, attempts: int) -> None:
    async def is_so() -> bool:
        return len(served.worked) >= attempts

    await served.take_over()
    await eventually(is_so)
