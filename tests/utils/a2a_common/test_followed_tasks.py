"""The streams of a server that stops while the runs of their tasks go on in another process."""

from __future__ import annotations

import asyncio

import pytest
from a2a.types.a2a_pb2 import Message, Role, Task, TaskState, TaskStatus

from ai_platform_engineering.utils.a2a_common.wire import StreamState, begin
from tests.utils.a2a_common.serving import Served, serving


async def run_elsewhere(served: Served, *, begun: bool) -> None:
    """A task that another process works on."""
    status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
    message = Message(message_id="m", role=Role.ROLE_USER, task_id="t", context_id="c")
    await served.log.create(Task(id="t", context_id="c", status=status, history=[message]))
    if begun:
        await served.log.append("t", begin(StreamState("t", "c", "trace")))


@pytest.mark.parametrize(("begun", "state"), [(True, "working"), (False, "submitted")])
async def test_a_stream_of_a_run_that_goes_on_elsewhere_ends_with_a_status(begun: bool, state: str) -> None:
    async with serving() as served:
        await run_elsewhere(served, begun=begun)
        following = asyncio.create_task(served.all_events("tasks/resubscribe", {"id": "t"}, Last_Event_ID="0"))
        await asyncio.wait_for(served.heard.wait(), 60)

        await served.handler.stop_work()

        later = await served.all_events("tasks/resubscribe", {"id": "t"}, Last_Event_ID="0")
        for events in (await following, later):
            number, status = events[-1]
            assert number == events[-2][0] == int(begun)
            assert status["status"]["state"] == state
            assert "subscribe again" in status["status"]["message"]["parts"][0]["text"]
        assert len(await served.log.read("t")) == int(begun)
