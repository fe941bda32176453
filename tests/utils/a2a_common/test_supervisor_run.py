"""A message is sent once, also if the connection breaks, and the caller learns whether it arrived."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from a2a.types.a2a_pb2 import AgentCard, ListTasksResponse, Message, StreamResponse, Task

from ai_platform_engineering.events import Failed, FinalResult
from ai_platform_engineering.utils.a2a_common.client import supervisor_run
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import Supervisor
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import (
    ConnectionLost,
    SupervisorError,
    SupervisorRun,
)
from ai_platform_engineering.utils.a2a_common.wire import StreamState, encode

ASKED = Message(message_id="q1", context_id="c")
REFUSED = httpx.ConnectError("refused")
BROKEN = httpx.ReadError("broken")


class Line:
    """The client of a supervisor, over a scripted connection; `arrived` are the questions."""

    def __init__(self, sending: list[Exception | None], looking: list[Exception | None]) -> None:
        self._sending, self._looking = [*sending], [*looking]
        self.arrived: list[str] = []

    async def send_message(self, request: Any) -> AsyncIterator[StreamResponse]:
        problem = self._sending.pop(0) if self._sending else REFUSED
        if problem is not REFUSED:
            self.arrived.append(request.message.message_id)
        if problem is not None:
            raise problem
        for answer in answers():
            yield answer

    async def list_tasks(self, _request: Any) -> ListTasksResponse:
        if self._looking and (problem := self._looking.pop(0)) is not None:
            raise problem
        return ListTasksResponse(tasks=[Task(id="t", history=[ASKED])] if self.arrived else [])

    async def subscribe(self, _request: Any, context: Any) -> AsyncIterator[StreamResponse]:
        for answer in answers():
            yield answer


def answers() -> list[StreamResponse]:
    state = StreamState("t", "c", "trace", "supervisor")
    return [
        StreamResponse(task=Task(id="t", context_id="c")),
        *(
            StreamResponse(status_update=update)
            if update.DESCRIPTOR.name == "TaskStatusUpdateEvent"
            else StreamResponse(artifact_update=cast("Any", update))
            for update in encode(state, FinalResult("Here.", "m1"))
        ),
    ]


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_run, "_FIRST_PAUSE", 0.001)


def run_over(line: Line, seconds: float = 5.0, *, sent: bool = False) -> SupervisorRun:
    supervisor = Supervisor(cast("Any", line), AgentCard(), "http://supervisor:8000", httpx.AsyncClient())
    supervisor.resumes = True
    return SupervisorRun(supervisor, ASKED, reconnect_seconds=seconds, sent=sent)


@pytest.mark.parametrize(
    ("sending", "looking"),
    [
        pytest.param([BROKEN], [None], id="it arrived"),
        pytest.param([BROKEN], [REFUSED, None], id="it arrived, and then the connection was refused"),
        pytest.param([REFUSED, REFUSED, None], [], id="it did not arrive"),
        pytest.param([REFUSED, BROKEN], [REFUSED, None], id="it arrived later"),
    ],
)
async def test_a_question_arrives_once(sending: list[Exception | None], looking: list[Exception | None]) -> None:
    line = Line(sending, looking)
    items = [item async for item in run_over(line).items()]
    assert [item for item in items if not isinstance(item, ConnectionLost)] == [FinalResult("Here.", "m1")]
    assert line.arrived == ["q1"]


async def test_a_message_that_was_never_sent_is_reported_as_such() -> None:
    with pytest.raises(SupervisorError, match="nothing was sent"):
        _ = [item async for item in run_over(Line([], []), seconds=0.05).items()]


async def test_a_message_that_may_have_arrived_is_reported_as_such() -> None:
    *_, last = [item async for item in run_over(Line([BROKEN], [REFUSED] * 1000), seconds=0.05).items()]
    assert isinstance(last, Failed)
    assert "may still be running" in last.message


async def test_a_rejection_after_a_reconnect_is_reported() -> None:
    unwanted = httpx.Response(401, request=httpx.Request("POST", "http://supervisor:8000"))
    refused = httpx.HTTPStatusError("401", request=unwanted.request, response=unwanted)
    with pytest.raises(SupervisorError, match="requires a key"):
        _ = [item async for item in run_over(Line([REFUSED, refused], [])).items()]


async def test_what_was_sent_by_one_who_died_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(supervisor_run, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(supervisor_run.asyncio, "sleep", sleep)
    items = [item async for item in run_over(Line([], [REFUSED] * 1000), seconds=100, sent=True).items()]
    assert [type(item) for item in items] == [ConnectionLost, Failed]
    assert now == pytest.approx(100)
