"""What goes wrong around a run, and what people see of it: a full disk, errors, two people at once, no supervisor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from a2a.types.a2a_pb2 import Message, TaskState

from ai_platform_engineering.events import (
    SUPERVISOR,
    AgentStarted,
    Event,
    Failed,
    FinalResult,
    Form,
    FormField,
    InputRequired,
    TextDelta,
)
from ai_platform_engineering.forms.answers import Submitted
from ai_platform_engineering.integrations.slack_bot import thread as thread_module
from ai_platform_engineering.integrations.slack_bot import words
from ai_platform_engineering.integrations.slack_bot.places import SlackUser
from ai_platform_engineering.integrations.slack_bot.store import BotStoreError, StoredRun
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    CREATING,
    AppendStream,
    Deferred,
    DeleteMessage,
    Operation,
    OperationRejected,
    PostMessage,
    Report,
    Retry,
    Unconfirmed,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.reducer import reduce
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from tests.integrations.slack_bot.bot_world import ANNA, BERT, World, incoming
from tests.integrations.slack_bot.test_kill_anywhere import FIRST, FORM, RUN, THEN, check, script

ANSWER = Submitted({"environment": "prod"})


async def asked(world: World) -> None:
    await world.bot.start()
    await world.bot.take(incoming())
    await is_asked(world)


async def is_asked(world: World) -> None:
    await world.until(lambda: any(shown.form for shown in world.slack.messages) and not world.bot.open_threads)


async def answered(world: World) -> None:
    assert await world.bot.answer("task-1", "form-1", ANSWER, ANNA) is None
    await over(world)


async def over(world: World) -> None:
    await world.until(lambda: not world.store.open_runs() and not world.bot.open_threads)


async def test_the_messages_of_a_thread_are_sent_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(lambda _: [[FinalResult("Done.", "m1")]])
    connect, slow = world.link.supervisor, asyncio.Event()

    async def first_connects_slowly(*, wait: bool = True) -> Any:
        if not slow.is_set():
            slow.set()
            await world.clock.sleep(1.0)
        return await connect(wait=wait)

    monkeypatch.setattr(world.link, "supervisor", first_connects_slowly)
    await world.bot.start()
    for number, text in enumerate(("first", "second", "third")):
        await world.bot.take(incoming(text, f"1.{number}"))
    await over(world)
    sent = [message.parts[0].text for work in world.supervisor.tasks.values() for message in work.heard]
    assert sent == ["first", "second", "third"]


async def test_what_cannot_be_kept_is_told_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    world = World(script)
    await world.bot.start()
    await world.bot.take(incoming())
    await world.until(lambda: bool(world.slack.messages))
    world.disk_full = True
    await world.until(lambda: any(shown.form for shown in world.slack.messages))
    world.disk_full = False
    await is_asked(world)
    await answered(world)
    check(world)
    assert len([line for line in caplog.messages if "cannot be stored" in line]) == 1
    await world.end()


async def test_a_form_that_was_filled_in_wrongly_is_shown_so_by_its_run_and_can_be_answered() -> None:
    world = World(script)
    await asked(world)
    wrong = replace(FORM, fields=(replace(FORM.fields[0], value="prd", error="There is no prd."),))
    await world.bot.show_again("task-1", wrong)
    await world.until(lambda: wrong in [shown.form for shown in world.slack.messages])
    await world.until(lambda: not world.bot.open_threads)
    assert await world.bot.form("task-1", "form-1", ANNA) == FORM
    await answered(world)
    check(world)
    await world.bot.show_again("task-1", wrong)
    await over(world)
    check(world)
    await world.end()


async def test_an_answer_that_cannot_be_kept_is_not_taken() -> None:
    world = World(script)
    await asked(world)
    world.disk_full = True
    with pytest.raises(BotStoreError):
        await world.bot.answer("task-1", "form-1", Submitted({"environment": "dev"}), BERT)
    world.disk_full = False
    await answered(world)
    check(world)
    await world.end()


def breaking(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """The reducer does not take one of the events, so many times."""
    left = times

    def broken(state: Any, item: Any, now: float) -> Any:
        nonlocal left
        if isinstance(item, AgentStarted) and left:
            left -= 1
            raise RuntimeError(repr(item))
        return reduce(state, item, now)

    monkeypatch.setattr(thread_module, "reduce", broken)


async def test_a_thread_that_breaks_off_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    breaking(monkeypatch, 1)
    world = World(script)
    await asked(world)
    await answered(world)
    check(world)
    assert "RuntimeError" in caplog.text
    assert "call-1" not in caplog.text, "what an error quotes may be what people have said"
    await world.end()


async def test_a_thread_that_always_breaks_off_says_so_and_can_be_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    breaking(monkeypatch, 4)
    world = World(script)
    await world.bot.start()
    await world.bot.take(incoming())
    await over(world)
    last = world.slack.messages[-1]
    assert words.BROKEN in last.text
    assert isinstance(last.footer, Retry)
    assert await world.bot.retry(last.footer.task_id, ANNA) is None
    await is_asked(world)
    await world.end()


@pytest.mark.parametrize("other", ["cancel", "answer"])
async def test_two_people_decide_at_once(other: str) -> None:
    world = World(script)
    await asked(world)
    second: Callable[[], Awaitable[object]] = {
        "cancel": lambda: world.bot.cancel("task-1", BERT),
        "answer": lambda: world.bot.answer("task-1", "form-1", ANSWER, BERT),
    }[other]
    await asyncio.gather(world.bot.cancel("task-1", ANNA), second())
    await over(world)
    ends = [shown.text for shown in world.slack.messages if "Stopped" in shown.text or "five" in shown.text]
    assert len(ends) == 1
    await world.end()


async def test_outcomes_of_stopping_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_supervisor(**_: object) -> None:
        raise SupervisorError("There is no supervisor.")

    world = World(script)
    await asked(world)
    with monkeypatch.context() as patch:
        patch.setattr(world.link, "supervisor", no_supervisor)
        assert await world.bot.cancel("task-1", ANNA) == "not_stopped"
    assert await world.bot.cancel_run(RUN, ANNA) == "stopping"
    await over(world)
    assert await world.bot.cancel_run(RUN, ANNA) == "already_over"
    assert await world.bot.cancel("unknown-task", ANNA) == "already_over"
    await world.end()


async def test_a_stream_that_was_stopped_in_slack_stops_the_run_without_a_name() -> None:
    world = World(lambda _: [[*FIRST[:2], *(TextDelta(SUPERVISOR, "m1", "and on ") for _ in range(50))]])

    def stopped(operation: Operation) -> Report | None:
        refused = OperationRejected(operation.number, "not_streaming", "stopped_by_user")
        return refused if isinstance(operation, AppendStream) else None

    world.fails = stopped
    await world.bot.start()
    await world.bot.take(incoming())
    await over(world)
    assert "_Stopped._" in world.slack.text, "Slack does not say here who it was"
    await world.end()


async def test_what_never_reached_the_supervisor_can_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_supervisor(**_: object) -> None:
        raise SupervisorError("There is no supervisor.")

    world = World(script)
    with monkeypatch.context() as patch:
        patch.setattr(world.link, "supervisor", no_supervisor)
        await world.bot.start()
        await world.bot.take(incoming())
        await over(world)
    footer = world.slack.messages[-1].footer
    assert isinstance(footer, Retry)
    assert await world.bot.retry(footer.task_id, ANNA) is None
    await is_asked(world)
    await world.end()


async def test_who_presses_try_again_twice_is_answered_once() -> None:
    failed = Failed("model", "The model does not answer.")
    world = World(lambda message: [[failed]] if message.message_id == RUN else [list(THEN)])
    await world.bot.start()
    await world.bot.take(incoming())
    await over(world)
    assert await world.bot.retry("task-1", ANNA) is None
    assert await world.bot.retry("task-1", BERT) == words.ON_IT
    await over(world)
    assert len(world.supervisor.tasks) == 2
    assert await world.bot.retry("task-1", ANNA) is None, "it is over, and may be asked again"
    await over(world)
    await world.end()


async def test_that_it_broke_off_is_told_however_long_slack_takes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    breaking(monkeypatch, 4)
    world = World(script)
    left = [Deferred(0, 20.0)] * 3

    def busy(operation: Operation) -> Report | None:
        is_sorry = isinstance(operation, PostMessage) and words.BROKEN in operation.body.text
        return left.pop() if is_sorry and left else None

    world.fails = busy
    await world.bot.start()
    await world.bot.take(incoming())
    await over(world)
    assert words.BROKEN in world.slack.messages[-1].text
    await world.end()


async def test_words_where_nothing_is_to_be_filled_in_are_for_who_asked() -> None:
    def only_anna(_form: Form, _kept: StoredRun, person: SlackUser) -> str | None:
        return None if person == ANNA else "Only <@UANNA> may answer this."

    world = World(lambda _: [[InputRequired(())], list(THEN)], may_answer=only_anna)
    await world.bot.start()
    await world.bot.take(incoming())
    await world.until(lambda: not world.bot.open_threads)
    assert await world.bot.take(incoming("yes", ts="2.0", person=BERT)) == "Only <@UANNA> may answer this."
    assert await world.bot.take(incoming("yes", ts="3.0")) is None
    await over(world)
    assert [len(work.heard) for work in world.supervisor.tasks.values()] == [2]
    await world.end()


async def test_trying_again_answers_no_form() -> None:
    """The supervisor takes whatever is said in a conversation that waits for the answer."""
    form = Form("form-1", "Delete it?", action_requests=({"name": "delete", "args": {}},))

    def failing_then_asking(message: Message) -> list[list[Event]]:
        failed = Failed("model", "The model does not answer.")
        return [[failed]] if message.parts[0].text == "approve" else [[InputRequired((form,))], list(THEN)]

    world = World(failing_then_asking)
    await world.bot.start()
    await world.bot.take(incoming("approve", person=BERT))
    await over(world)
    await world.bot.take(incoming("delete it", ts="2.0"))
    await is_asked(world)
    assert await world.bot.retry("task-1", BERT) == words.ASKED
    assert [len(work.heard) for work in world.supervisor.tasks.values()] == [1, 1]
    await world.end()


async def test_who_asks_again_hears_something_where_the_bot_was_quiet() -> None:
    world = World(lambda _: [[FinalResult("[nothing to say]", "m1")]])
    await world.bot.start()
    await world.bot.take(incoming(quiet=True))
    await over(world)
    assert not world.slack.messages
    assert await world.bot.retry("task-1", ANNA) is None
    await over(world)
    assert world.slack.text
    await world.end()


async def test_nothing_is_lost_while_slack_is_down_for_long() -> None:
    world = World(script)
    until = world.clock.now() + 3_600

    def down(operation: Operation) -> Report | None:
        is_down = world.slack.messages and world.clock.now() < until and not isinstance(operation, CREATING)
        return Unconfirmed(operation.number) if is_down else None

    world.fails = down
    await asked(world)
    await answered(world)
    check(world)
    await world.end()


async def test_a_button_that_cannot_be_taken_away_ends_nothing_else() -> None:
    world = World(script, pause=2.5)

    def undeletable(operation: Operation) -> Report | None:
        refused = OperationRejected(operation.number, "other", "compliance_exports_prevent_deletion")
        return refused if isinstance(operation, DeleteMessage) else None

    world.fails = undeletable
    await asked(world)
    await answered(world)
    assert "eight" in world.slack.text
    await world.end()


async def test_half_of_a_surrogate_pair_is_no_trouble() -> None:
    world = World(script)
    await world.bot.start()
    await world.bot.take(incoming("what is wrong? \ud83d"))
    await is_asked(world)
    assert await world.bot.answer("task-1", "form-1", Submitted({"environment": "prod\ud83d"}), ANNA) is None
    await over(world)
    assert "eight" in world.slack.text
    await world.end()


async def test_an_unreadable_run_does_not_stop_others() -> None:
    world = World(script)
    world.store.put_run(StoredRun("old", incoming("old", ts="0.5"), "context", state='{"forms": 7}'))
    world.store.put_run(StoredRun(RUN, incoming(), "context"))
    await world.bot.start()
    await is_asked(world)
    assert [run.id for run in world.store.open_runs()] == [RUN]
    (sorry,) = [shown for shown in world.slack.messages if words.BROKEN in shown.text]
    world.slack.messages.remove(sorry)
    await answered(world)
    check(world)
    assert isinstance(sorry.footer, Retry)
    assert await world.bot.retry(sorry.footer.task_id, ANNA) is None, "who asked need not write it again"
    await is_asked(world)
    await world.end()


async def test_a_form_that_cannot_be_shown_is_canceled() -> None:
    world = World(script)
    world.fails = lambda operation: OperationRejected(operation.number, "thread_gone", "not_in_channel")
    await world.bot.start()
    await world.bot.take(incoming())
    await over(world)
    assert world.supervisor.tasks["task-1"].updates[-1].status.state == TaskState.TASK_STATE_CANCELED
    world.fails = lambda _: None
    await world.bot.take(incoming("hello again", ts="2.0"))
    await world.until(lambda: any(shown.form for shown in world.slack.messages) and not world.bot.open_threads)
    assert [len(work.heard) for work in world.supervisor.tasks.values()] == [1, 1]
    await world.end()


async def test_a_secret_is_forgotten_when_it_was_heard() -> None:
    form = Form("form-1", "Log in", (FormField("password"),))
    world = World(lambda _: [[InputRequired((form,))], list(THEN)])
    await asked(world)
    assert await world.bot.answer("task-1", "form-1", Submitted({"password": "hunter2"}), ANNA) is None
    await over(world)
    kept = world.store.run(RUN)
    assert kept is not None
    assert "hunter2" not in kept.state
    await world.end()


async def test_a_secret_that_is_no_longer_needed_is_deleted() -> None:
    forms = (Form("form-1", "Which?", (FormField("environment"),)), Form("form-2", "Log in", (FormField("password"),)))
    world = World(lambda _: [[InputRequired(forms)], list(THEN)])
    await asked(world)
    assert await world.bot.answer("task-1", "form-1", ANSWER, ANNA) is None
    assert await world.bot.answer("task-1", "form-2", Submitted({"password": "hunter2"}), ANNA) is None
    await over(world)
    kept = world.store.run(RUN)
    assert kept is not None
    assert "hunter2" not in kept.state
    await world.end()
