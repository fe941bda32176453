"""What else is said in a conversation while a form is open, and how a task that waits ends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from a2a.types.a2a_pb2 import CancelTaskRequest, GetTaskRequest, TaskState
from a2a.utils.errors import UnsupportedOperationError

from ai_platform_engineering.events import AgentFinished, FinalResult, InputRequired, ToolFinished
from tests.invariants import check_task
from tests.people.dialogues import AGENTS, Dialogue, placed
from tests.servers import Caller, calling

VALUES = {"values": {"name": "demo", "replicas": 3}}


async def state_of(caller: Caller, task_id: str) -> Any:
    return (await caller.client.get_task(GetTaskRequest(id=task_id))).status.state


async def test_a_message_in_the_conversation_answers_the_form(tmp_path: Path) -> None:
    async with placed(tmp_path) as caller:
        talk = Dialogue(caller, "c")
        await talk.ask("ask jira")
        task_id, talk.task_id = talk.task_id, ""
        assert not await talk.answer("name: demo\nreplicas: 3")
        assert talk.task_id == task_id
        check_task(talk.events)
        assert '"replicas": 3' in str(talk.events[-1])


async def test_a_message_that_is_no_answer_brings_the_form_back(tmp_path: Path) -> None:
    async with placed(tmp_path) as caller:
        talk = Dialogue(caller, "c")
        (form,) = await talk.ask("ask jira")
        task_id, talk.task_id = talk.task_id, ""
        (again,) = await talk.answer("what is the weather like?")
        assert (again.form_id, talk.task_id) == (form.form_id, task_id)
        assert again.response
        assert not await talk.answer(VALUES, form)
        check_task(talk.events)


async def test_a_message_that_is_only_a_question_answers_no_form(tmp_path: Path) -> None:
    async with placed(tmp_path) as caller, calling(caller.url) as other:
        talk = Dialogue(caller, "c")
        (form,) = await talk.ask("ask jira")
        with pytest.raises(UnsupportedOperationError, match="A form is open"):
            await other.ask("name: demo\nreplicas: 3", context_id="c", metadata={"question_only": True})
        assert await state_of(caller, talk.task_id) == TaskState.TASK_STATE_INPUT_REQUIRED
        assert not await talk.answer(VALUES, form)
        check_task(talk.events)


async def test_a_message_that_came_before_the_form_waits_until_it_is_answered(tmp_path: Path) -> None:
    async with placed(tmp_path, SCRIPT_DELAY="0.1") as caller, calling(caller.url) as other:
        first, second = Dialogue(caller, "c"), Dialogue(other, "c")
        asking = asyncio.create_task(first.ask("ask jira twice"))
        await caller.heard.wait()
        waiting = asyncio.create_task(second.ask("argocd: roll back"))
        await asking
        assert isinstance(first.events[-1], InputRequired)
        assert await state_of(other, other.task_id) == TaskState.TASK_STATE_SUBMITTED
        await first.answer(VALUES)
        assert not waiting.done()
        await first.answer(VALUES)
        assert isinstance(first.events[-1], FinalResult)
        (approval,) = await waiting
        assert approval.agent == "argocd"
        check_task(first.events)


@pytest.mark.parametrize("remote", [(), AGENTS], ids=["inside", "remote"])
async def test_canceling_a_task_that_waits_closes_everything_and_the_conversation_goes_on(
    tmp_path: Path, remote: tuple[str, ...]
) -> None:
    async with placed(tmp_path, remote) as caller:
        talk = Dialogue(caller, "c")
        await talk.ask("ask jira and argocd")
        task = await caller.client.cancel_task(CancelTaskRequest(id=talk.task_id))
        assert task.status.state == TaskState.TASK_STATE_CANCELED
        ends = [artifact for artifact in task.artifacts if artifact.name == "tool_notification_end"]
        assert len(ends) == 4
        with pytest.raises(UnsupportedOperationError):
            await talk.answer(VALUES)
        talk = Dialogue(caller, "c")
        (form,) = await talk.ask("ask jira")
        assert not await talk.answer(VALUES, form)
        check_task(talk.events)


async def test_a_form_that_is_sent_twice_is_answered_once(tmp_path: Path) -> None:
    async with placed(tmp_path) as caller:
        talk = Dialogue(caller, "c")
        (form,) = await talk.ask("argocd: roll back")
        again = Dialogue(caller, "c")
        again.task_id, again.events = talk.task_id, [*talk.events]
        approve = {"decisions": [{"type": "approve"}]}
        await asyncio.gather(talk.answer(approve, form), again.answer(approve, form))
        assert talk.events[-1] == again.events[-1]
        check_task(talk.events)
        finished = [event for event in talk.events if isinstance(event, ToolFinished)]
        assert [event.ok for event in finished] == [True]


@pytest.mark.parametrize("remote", [(), AGENTS], ids=["inside", "remote"])
async def test_a_task_that_waits_survives_restarts(tmp_path: Path, remote: tuple[str, ...]) -> None:
    async with placed(tmp_path, remote) as caller:
        talk = Dialogue(caller, "c")
        first, second = await talk.ask("ask argocd and jira")
        task_id, events = talk.task_id, talk.events
    async with placed(tmp_path, remote) as caller:
        assert await state_of(caller, task_id) == TaskState.TASK_STATE_INPUT_REQUIRED
        talk = Dialogue(caller, "c")
        talk.task_id, talk.events = task_id, events
        assert await talk.answer(VALUES, second) == (first,)
        events = talk.events
    async with placed(tmp_path, remote) as caller:
        talk = Dialogue(caller, "c")
        talk.events = events
        assert not await talk.answer(VALUES, first)
        check_task(talk.events)
        assert talk.task_id == task_id
        assert [event.ok for event in talk.events if isinstance(event, AgentFinished)] == [True, True]


@pytest.mark.parametrize("remote", [(), AGENTS], ids=["inside", "remote"])
async def test_an_unanswered_form_expires_and_the_next_message_is_worked_on(
    tmp_path: Path, remote: tuple[str, ...]
) -> None:
    half_a_second = str(0.5 / 3600)
    environ = {"SCRIPT_DELAY": "0.1", "FORM_EXPIRY_HOURS": half_a_second}
    async with placed(tmp_path, remote, **environ) as caller, calling(caller.url) as other:
        first, second = Dialogue(caller, "c"), Dialogue(other, "c")
        asking = asyncio.create_task(first.ask("ask jira"))
        await caller.heard.wait()
        waiting = asyncio.create_task(second.ask("what now?"))
        await asking
        await waiting
        assert isinstance(second.events[-1], FinalResult)
        task = await caller.client.get_task(GetTaskRequest(id=first.task_id))
        assert task.status.state == TaskState.TASK_STATE_FAILED
        assert "Ask again" in task.status.message.parts[0].text
        ends = [artifact for artifact in task.artifacts if artifact.name == "tool_notification_end"]
        assert len(ends) == 2


@pytest.mark.parametrize("remote", [(), AGENTS], ids=["inside", "remote"])
async def test_what_is_approved_for_good_is_approved_in_later_tasks_of_the_conversation_and_in_no_other(
    tmp_path: Path, remote: tuple[str, ...]
) -> None:
    async with placed(tmp_path, remote) as caller:
        first = Dialogue(caller, "c")
        (form,) = await first.ask("argocd: roll back")
        assert not await first.answer({"decisions": [{"type": "approve", "remember": True}]}, form)
        later = Dialogue(caller, "c")
        assert not await later.ask("argocd: roll back once more")
        check_task(later.events)
        assert [event.tool for event in later.events if isinstance(event, ToolFinished)] == ["rollback_application"]
        assert await Dialogue(caller, "another").ask("argocd: roll back")


@pytest.mark.parametrize("remote", [(), AGENTS], ids=["inside", "remote"])
async def test_changed_arguments_are_used_and_are_approved_for_that_call_alone(
    tmp_path: Path, remote: tuple[str, ...]
) -> None:
    async with placed(tmp_path, remote) as caller:
        talk = Dialogue(caller, "c")
        (form,) = await talk.ask("argocd: roll back twice")
        decision = {"type": "edit", "args": {"revision": "1"}, "remember": True}
        (second,) = await talk.answer({"decisions": [decision]}, form)
        assert second.action_requests[0]["args"] == {"application": "payments-api"}
        assert not await talk.answer({"decisions": [decision]}, second)
        check_task(talk.events)
        assert 'A person changed the arguments to {"application": "payments-api", "revision": "1"}' in str(
            talk.events[-1]
        )
