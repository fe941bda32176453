"""The connection to a remote agent: what a supervisor notices of a connection that is lost, and of a restart."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from a2a.types.a2a_pb2 import Part
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ai_platform_engineering.events import Event, FinalResult, InputRequired, TextDelta
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.utils.a2a_common.a2a_remote_agent_connect import (
    A2ARemoteAgentConnectTool,
    RemoteAgentError,
    RemoteThread,
)
from ai_platform_engineering.utils.a2a_common.client.reconnection import Reconnection
from ai_platform_engineering.utils.a2a_common.request_context import RecordedEffect
from tests.runs.graphs import context, settings_of
from tests.utils.a2a_common.scripted_executor import ANSWER, FORM, Gate, Script
from tests.utils.a2a_common.serving import Served, serving, until

TEXTS = [TextDelta("supervisor", "m1", f"{number} ") for number in range(6)]
LONG: Script = [*TEXTS, *ANSWER]


@dataclass
class Faults:
    """Makes requests fail. Each fault is used for one POST, in this order; later ones are served."""

    faults: list[str] = field(default_factory=list)
    posts: int = 0

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def faulty(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or scope["method"] != "POST":
                await app(scope, receive, send)
                return
            self.posts += 1
            match self.faults.pop(0) if self.faults else "":
                case "not received":
                    await send({"type": "http.response.start", "status": 200, "headers": []})
                    raise ConnectionError
                case "no response":
                    await app(scope, receive, _without_body(send))
                case "ended":
                    await app(scope, receive, _ended_after_one(send))
                case "bad gateway":
                    await send({"type": "http.response.start", "status": 502, "headers": []})
                    await send({"type": "http.response.body", "body": b""})
                case _:
                    await app(scope, receive, send)

        return faulty


def _without_body(send: Send) -> Send:
    async def forward(message: Message) -> None:
        if message["type"] == "http.response.body":
            raise ConnectionError
        await send(message)

    return forward


def _ended_after_one(send: Send) -> Send:
    """Ends the stream in order after its first piece."""

    async def forward(message: Message) -> None:
        if message["type"] == "http.response.body":
            await send({**message, "more_body": False})
            raise ConnectionError
        await send(message)

    return forward


class Runs:
    """Counts the runs of an agent that follows these scripts, one for each message of a task."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts = scripts or (LONG,)
        self.texts: list[str] = []

    def __call__(self, text: str, turn: int) -> Script:
        self.texts.append(text)
        return self.scripts[turn]


class Effects(dict[str, RecordedEffect]):
    """A ledger in memory, which outlives the processes of a run."""

    async def begin(self, call_id: str) -> RecordedEffect | None:
        found = self.get(call_id)
        self.setdefault(call_id, RecordedEffect())
        return found

    async def finish(self, call_id: str, result: str) -> None:
        self[call_id] = RecordedEffect(result)


@asynccontextmanager
async def connected(served: Served, seconds: float = 60) -> AsyncIterator[A2ARemoteAgentConnectTool]:
    settings = settings_of(AGENT_RECONNECT_SECONDS=str(seconds))
    connection = A2ARemoteAgentConnectTool("argocd", served.url, settings)
    try:
        yield connection
    finally:
        await connection.aclose()


async def asked(
    connection: A2ARemoteAgentConnectTool,
    thread: RemoteThread | None = None,
    text: str = "do it",
    *,
    at: Callable[[list[Event]], Any] | None = None,
    effects: Effects | None = None,
) -> list[Event]:
    """The events of one message. `at` is called with the events so far after each."""
    events: list[Event] = []
    stream = connection.stream([Part(text=text)], context(effects=effects), thread or RemoteThread("d"))
    async with asyncio.timeout(90), aclosing(stream):
        async for event in stream:
            events.append(event)
            if at is not None:
                await at(events)
    return events


def texts(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta) and event.message_id == "m1")


WHOLE = "".join(event.text for event in LONG if isinstance(event, TextDelta))


def check_whole(events: list[Event]) -> None:
    assert texts(events) == WHOLE
    assert isinstance(events[-1], FinalResult)


@pytest.mark.parametrize("how", ["cut", "restarted"])
async def test_a_stream_continues_after_a_lost_connection(how: str, caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    runs = Runs([*TEXTS[:3], gate, *TEXTS[3:], *ANSWER])
    async with serving(runs, agent="argocd") as served, connected(served) as connection:

        async def lose(events: list[Event]) -> None:
            if texts(events) == "0 1 2 " and not gate.is_set():
                if how == "cut":
                    await served.cut()
                else:
                    async with served.interrupted():
                        gate.set()
                        await asyncio.sleep(0)
                gate.set()

        check_whole(await asked(connection, at=lose))
    assert runs.texts == ["do it"]
    [warning] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "argocd: the connection was lost" in warning.getMessage()


@pytest.mark.parametrize("fault", ["not received", "no response", "bad gateway"])
async def test_a_message_without_a_response_is_sent_again_and_runs_once(fault: str) -> None:
    runs, faults = Runs(), Faults([fault, fault])
    async with serving(runs, agent="argocd", wrapped=faults) as served, connected(served) as connection:
        check_whole(await asked(connection))
    assert runs.texts == ["do it"]
    assert faults.posts == 3


async def test_a_stream_that_ends_without_the_end_of_the_run_continues() -> None:
    gate = Gate()
    runs, faults = Runs([*TEXTS[:3], gate, *TEXTS[3:], *ANSWER]), Faults(["ended", "ended"])
    async with serving(runs, agent="argocd", wrapped=faults) as served, connected(served) as connection:
        asking = asyncio.create_task(asked(connection))
        await until(lambda: faults.posts >= 2)
        gate.set()
        check_whole(await asking)
    assert runs.texts == ["do it"]


async def test_an_answer_without_a_response_is_sent_again_and_added_once() -> None:
    runs, faults = Runs([FORM], LONG), Faults()
    async with serving(runs, agent="argocd", wrapped=faults) as served, connected(served) as connection:
        thread = RemoteThread("d")
        assert isinstance((await asked(connection, thread))[-1], InputRequired)
        faults.faults = ["no response"]
        check_whole(await asked(connection, RemoteThread("d", thread.task_id, 2), "app: guestbook"))
    assert runs.texts == ["do it", "app: guestbook"]


async def test_a_server_that_is_stopping_gets_the_message_when_it_is_back() -> None:
    runs, faults = Runs(), Faults()
    async with serving(runs, agent="argocd", wrapped=faults) as served, connected(served) as connection:
        served.handler.work.stopping = True
        asking = asyncio.create_task(asked(connection))
        await until(lambda: faults.posts >= 2)
        served.handler.work.stopping = False
        check_whole(await asking)
    assert runs.texts == ["do it"]


async def test_a_call_waits_for_an_agent_that_has_just_gone() -> None:
    runs = Runs()
    async with serving(runs, agent="argocd") as served, connected(served) as connection:
        check_whole(await asked(connection))
        async with served.interrupted():
            waiting = [asyncio.create_task(asked(connection, RemoteThread(name))) for name in ("d1", "d2")]
            await until(lambda: connection._gone_since is not None)
        for each in waiting:
            check_whole(await each)
    assert runs.texts == ["do it"] * 3


@pytest.mark.parametrize("seconds", [0, 0.3])
async def test_when_the_time_is_over_the_error_is_that_of_a_lost_connection(seconds: float) -> None:
    runs = Runs([*TEXTS, Gate()])
    async with serving(runs, agent="argocd") as served, connected(served, seconds) as connection:

        async def stop(events: list[Event]) -> None:
            if texts(events) == "0 1 2 3 4 5 ":
                await closing.__aenter__()

        closing = served.interrupted()
        with pytest.raises(RemoteAgentError, match=r"^The connection to the argocd agent was lost while it worked\.$"):
            await asked(connection, at=stop)
        with pytest.raises(RemoteAgentError, match=r"^The argocd agent cannot be reached \(connection refused\)"):
            await asked(connection, RemoteThread("d2"))
        await closing.__aexit__(None, None, None)


async def test_an_agent_that_lost_its_tasks_fails_the_call() -> None:
    runs = Runs([*TEXTS, Gate()])
    async with serving(runs, agent="argocd") as served, connected(served) as connection:

        async def lose(events: list[Event]) -> None:
            if texts(events) == "0 1 2 3 4 5 ":
                served.handler.log = MemoryEventLog()
                await served.cut()

        with pytest.raises(RemoteAgentError, match="was restarted and no longer has this work"):
            await asked(connection, at=lose)
    assert runs.texts == ["do it"]


async def test_a_message_that_an_earlier_process_sent_gives_its_whole_stream() -> None:
    runs = Runs()
    async with serving(runs, agent="argocd") as served:
        async with connected(served) as earlier:
            first = await asked(earlier)
        async with connected(served) as later:
            thread = RemoteThread("d", may_have_arrived=True)
            assert await asked(later, thread) == first
    assert thread.task_id
    assert runs.texts == ["do it"]


async def test_a_message_that_an_earlier_process_did_not_send_is_sent_when_the_agent_is_back() -> None:
    runs = Runs()
    async with serving(runs, agent="argocd") as served, connected(served) as connection:
        async with served.interrupted():
            asking = asyncio.create_task(asked(connection, RemoteThread("d", may_have_arrived=True)))
            await until(lambda: connection._gone_since is not None)
        check_whole(await asking)
    assert runs.texts == ["do it"]


NOT_SENT_AGAIN = "The agent may have received the request, so it was not sent again"


@pytest.mark.parametrize("earlier_process", [True, False])
async def test_an_agent_that_forgets_its_tasks_is_not_asked_again(earlier_process: bool) -> None:
    runs, faults = Runs(), Faults([] if earlier_process else ["no response"])
    async with (
        serving(runs, agent="argocd", wrapped=faults, keeps_tasks=False) as served,
        connected(served) as connection,
    ):
        thread = RemoteThread("d", may_have_arrived=earlier_process)
        with pytest.raises(RemoteAgentError, match=NOT_SENT_AGAIN):
            await asked(connection, thread)
        assert thread.may_have_arrived
    assert faults.posts == (0 if earlier_process else 1)


async def test_the_ledger_knows_what_was_sent_to_an_agent_that_forgets_its_tasks() -> None:
    runs, effects = Runs([FORM], LONG), Effects()
    async with serving(runs, agent="argocd", keeps_tasks=False) as served, connected(served) as connection:
        # The delegation was announced before the process ended, but not sent.
        thread = RemoteThread("d", may_have_arrived=True)
        assert isinstance((await asked(connection, thread, effects=effects))[-1], InputRequired)
        with pytest.raises(RemoteAgentError, match=NOT_SENT_AGAIN):
            await asked(connection, RemoteThread("d"), effects=effects)
        answer = RemoteThread("d", thread.task_id, 2, may_have_arrived=True)
        check_whole(await asked(connection, answer, "app: guestbook", effects=effects))
    assert runs.texts == ["do it", "app: guestbook"]


async def test_a_connection_that_was_refused_does_not_count_as_sent() -> None:
    runs, effects = Runs(), Effects()
    async with serving(runs, agent="argocd", keeps_tasks=False) as served, connected(served) as connection:
        check_whole(await asked(connection, RemoteThread("d1"), effects=effects))
        async with served.interrupted():
            asking = asyncio.create_task(asked(connection, RemoteThread("d2"), effects=effects))
            await until(lambda: connection._gone_since is not None)
        check_whole(await asking)
    assert [*effects] == ["d1-1", "d2-1"]


async def test_a_rejected_message_is_not_sent_again() -> None:
    runs, faults = Runs(), Faults()
    async with serving(runs, agent="argocd", wrapped=faults) as served, connected(served) as connection:
        thread = RemoteThread("d", task_id="no-such-task", turn=2)
        with pytest.raises(RemoteAgentError, match="no longer waits for this answer"):
            await asked(connection, thread)
        assert not thread.may_have_arrived
    assert faults.posts == 1


async def test_a_call_that_is_cancelled_while_it_reconnects_ends() -> None:
    gate = Gate()
    async with serving(lambda text, turn: [*TEXTS, gate], agent="argocd") as served, connected(served) as connection:
        lost = asyncio.Event()

        async def stop(events: list[Event]) -> None:
            if texts(events) == "0 1 2 3 4 5 ":
                await closing.__aenter__()
                lost.set()

        closing = served.interrupted()
        asking = asyncio.create_task(asked(connection, at=stop))
        await asyncio.wait_for(lost.wait(), 90)
        await until(lambda: connection._gone_since is not None)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await closing.__aexit__(None, None, None)


async def test_the_time_counts_from_the_first_loss_and_again_after_progress() -> None:
    reconnection = Reconnection(30)
    assert not reconnection.is_over
    assert reconnection.lost(since=time.monotonic() - 31)
    assert reconnection.is_over
    assert not reconnection.lost()
    assert reconnection.is_over
    reconnection.received(None)
    assert reconnection.lost()
    assert not reconnection.is_over
    reconnection.received(0)
    assert not reconnection.lost(), "nothing new was received"
    reconnection.received(1)
    assert reconnection.lost()


async def test_an_agent_whose_protocol_is_unknown_gives_a_sentence_also_when_its_task_is_canceled() -> None:
    async with serving(Runs(), agent="argocd") as served, connected(served) as connection:
        for interface in served.card.supported_interfaces:
            interface.protocol_binding = "CARRIER-PIGEON"
        with pytest.raises(RemoteAgentError, match="its card names no protocol that the supervisor knows"):
            await asked(connection, RemoteThread("d"))
        await connection.cancel("t1", context())


@asynccontextmanager
async def card_elsewhere(**environ: str) -> AsyncIterator[tuple[A2ARemoteAgentConnectTool, Runs, list[str]]]:
    """The agent's card is at one origin and names another one. The list has the Authorization headers that arrive
    there."""
    runs, sent = Runs(), list[str]()

    def recording(app: ASGIApp) -> ASGIApp:
        async def record(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and scope["method"] == "POST":
                sent.extend(value.decode() for name, value in scope["headers"] if name == b"authorization")
            await app(scope, receive, send)

        return record

    async with (
        serving(agent="argocd") as configured,
        # Not a loopback address that stands for the configured host.
        serving(runs, agent="argocd", wrapped=recording, host="127.0.0.2") as elsewhere,
    ):
        for interface in configured.card.supported_interfaces:
            interface.url = elsewhere.url
        settings = settings_of(**{name: value.format(elsewhere=elsewhere.url) for name, value in environ.items()})
        connection = A2ARemoteAgentConnectTool("argocd", configured.url, settings)
        try:
            yield connection, runs, sent
        finally:
            await connection.aclose()


KEY = {"A2A_AGENTS_AUTH_KEY": "an-agents-key-of-32-characters!!"}


@pytest.mark.parametrize("environ", [{}, KEY])
async def test_a_card_that_names_another_origin_gets_neither_requests_nor_credentials(environ: dict[str, str]) -> None:
    async with card_elsewhere(**environ) as (connection, runs, sent):
        with pytest.raises(RemoteAgentError, match=r"its card names .* Set ARGOCD_AGENT_URL .* AGENT_ALLOWED_ORIGINS"):
            await asked(connection)
        assert (runs.texts, sent) == ([], [])


async def test_the_operator_can_allow_another_origin() -> None:
    allowed = {"AGENT_ALLOWED_ORIGINS": "https://other.example, {elsewhere}/", **KEY}
    async with card_elsewhere(**allowed) as (connection, runs, sent):
        check_whole(await asked(connection))
        assert runs.texts == ["do it"]
        assert sent == [f"Bearer {KEY['A2A_AGENTS_AUTH_KEY']}"]
