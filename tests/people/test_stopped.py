"""A server that is stopped while it works: every stream and every call that waits ends by saying how it goes on."""

from __future__ import annotations

import asyncio
import json
import signal
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from ai_platform_engineering.events import AgentFinished, FinalResult
from tests.invariants import check
from tests.servers import CommandLine, calling

STREAMS = ("message/stream", "SendStreamingMessage", "/v1/message:stream", "/message:stream")
CALLS = ("message/send", "SendMessage", "/v1/message:send", "/message:send")
SUBSCRIPTIONS = ("tasks/resubscribe", "SubscribeToTask", "/v1/tasks/{}:subscribe", "/tasks/{}:subscribe")


@dataclass
class Silence:
    """A server that answers no request until `answers` is set: the tool that asks it works until it is stopped."""

    url: str = ""
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until(self, connections: int) -> None:
        async with asyncio.timeout(40), self.changed:
            await self.changed.wait_for(lambda: self.connections >= connections)


@asynccontextmanager
async def silence() -> AsyncIterator[Silence]:
    found = Silence()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with found.changed:
            found.connections += 1
            found.changed.notify_all()
        await reader.readline()
        ended = asyncio.create_task(reader.read())
        answered = asyncio.create_task(found.answers.wait())
        await asyncio.wait({ended, answered}, return_when=asyncio.FIRST_COMPLETED)
        if answered.done():
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        for task in (ended, answered):
            task.cancel()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        yield found
    finally:
        server.close()


def environ_of(folder: Path, **more: str) -> dict[str, str]:
    slow = {"NETUTILS_ALLOW_PRIVATE": "true", "NETUTILS_TIMEOUT": "60"}
    return {"DATA_DIR": str(folder), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0", "ENABLE_RAG": "false"} | slow | more


class Plain:
    """A client that speaks HTTP and JSON."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self._http, self._url = http, url
        self._opened: asyncio.Queue[str] = asyncio.Queue()
        """The requests whose responses have begun. A stream begins when the server has taken the request."""

    async def until_opened(self, responses: int) -> None:
        async with asyncio.timeout(90):
            for _ in range(responses):
                await self._opened.get()

    async def send(self, method: str, text: str, context_id: str) -> list[Any]:
        """What comes back: the results of a stream, or the one of a call. A path is REST, a name is JSON-RPC."""
        old = method.startswith(("message/", "/v1/"))
        part: dict[str, Any] = {"text": text}
        if old and not method.startswith("/"):
            part["kind"] = "text"
        message = {"messageId": uuid.uuid4().hex, "contextId": context_id, "role": "ROLE_USER"}
        if old and not method.startswith("/"):
            message["role"] = "user"
        content = "content" if method.startswith("/v1/") else "parts"
        return await self._said(method, {"message": message | {content: [part]}})

    async def subscribe(self, method: str, task_id: str) -> list[Any]:
        return await self._said(method.format(task_id), {"id": task_id})

    async def _said(self, method: str, params: dict[str, Any]) -> list[Any]:
        url, body = self._url, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        verb = "POST"
        if method.startswith("/"):
            url, body = url + method, params
            verb = "GET" if method.endswith(":subscribe") else "POST"
        headers = {} if method.startswith("/v1/") or "/" in method else {"A2A-Version": "1.0"}
        sent = {"json": body} if verb == "POST" else {}
        async with self._http.stream(verb, url, headers=headers, **sent) as response:
            assert response.status_code == 200, (method, await response.aread())
            self._opened.put_nowait(method)
            if response.headers["content-type"].startswith("text/event-stream"):
                lines = [line.removeprefix("data: ") async for line in response.aiter_lines()]
                answers = [json.loads(line) for line in lines if line.startswith("{")]
            else:
                answers = [json.loads(await response.aread())]
        assert not any("error" in answer for answer in answers), (method, answers)
        return [answer.get("result", answer) for answer in answers]


def ending_of(answer: Any) -> tuple[str, str, str]:
    """State, error code and sentence of a task or of a status update, in either protocol and binding."""
    for wrapper in ("task", "statusUpdate", "status_update"):
        answer = answer.get(wrapper, answer)
    status = answer["status"]
    state = status["state"].lower().removeprefix("task_state_")
    message = status.get("message") or status.get("update")
    part = (message.get("parts") or message.get("content"))[0]
    return state, answer.get("metadata", {}).get("error_code", ""), part["text"]


async def stop(process: CommandLine) -> float:
    started = time.monotonic()
    assert await process.stop(signal.SIGTERM) == 0
    assert "Traceback" not in "".join(process.output), "".join(process.output)
    return time.monotonic() - started


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("stored", [False, True])
async def test_everything_that_waits_for_a_supervisor_hears_how_it_goes_on(
    tmp_path: Path, remote: bool, stored: bool
) -> None:
    """Runs with stored checkpoints continue when the supervisor is back; others have failed."""
    async with silence() as nothing, httpx.AsyncClient(timeout=60) as http:
        question = f"netutils: http check {nothing.url}"
        agent = CommandLine(["agent", "netutils", "--port", "0"], environ_of(tmp_path))
        elsewhere = {}
        if remote:
            await agent.__aenter__()
            elsewhere = {"DISTRIBUTED_AGENTS": "netutils", "NETUTILS_AGENT_URL": agent.url}
        try:
            conversations = {"CONVERSATIONS": "sqlite" if stored else "memory"}
            async with CommandLine(["--port", "0"], environ_of(tmp_path, **elsewhere, **conversations)) as supervisor:
                client = Plain(http, supervisor.url)
                methods = [*STREAMS, *CALLS]
                waiting = [asyncio.create_task(client.send(way, question, f"c-{way}")) for way in methods]
                await nothing.until(len(methods))
                # One more in a conversation that is busy: it has not begun.
                waiting.append(asyncio.create_task(client.send("SendMessage", question, "c-SendMessage")))
                tasks = (await http.get(f"{supervisor.url}/tasks", headers={"A2A-Version": "1.0"})).json()["tasks"]
                subscribed = [asyncio.create_task(client.subscribe(way, tasks[0]["id"])) for way in SUBSCRIPTIONS]
                await until_listed(http, supervisor.url, len(methods) + 1)
                await client.until_opened(len(STREAMS) + len(SUBSCRIPTIONS))
                assert await stop(supervisor) < 25
                answers = await asyncio.gather(*waiting, *subscribed)
        finally:
            if remote:
                await agent.stop()
    for way, answer in zip([*methods, "a second message", *SUBSCRIPTIONS], answers, strict=True):
        state, code, sentence = ending_of(answer[-1])
        if stored:
            # The subscriptions are to one of the tasks, perhaps to that of the second message.
            assert state == "working" or (state == "submitted" and way not in methods), way
            assert "This task continues when it runs again" in sentence
            continue
        assert (state, way) == ("failed", way)
        assert sentence.startswith("The supervisor was stopped while it worked on this."), way
        if way not in {*CALLS, "a second message"}:
            assert (code, way) == ("stopped", way)


async def until_listed(http: httpx.AsyncClient, url: str, tasks: int) -> None:
    async with asyncio.timeout(90):
        while True:
            listed = (await http.get(f"{url}/tasks", headers={"A2A-Version": "1.0"})).json()["tasks"]
            if len(listed) == tasks:
                return


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_running_tasks_may_finish_after_a_termination_but_not_after_an_interrupt(
    tmp_path: Path, number: signal.Signals
) -> None:
    async with silence() as slow, httpx.AsyncClient(timeout=60) as http:
        question = f"netutils: http check {slow.url}"
        environ = environ_of(tmp_path, SHUTDOWN_GRACE="60")
        async with CommandLine(["--port", "0"], environ) as supervisor:
            client = Plain(http, supervisor.url)
            running = asyncio.create_task(client.send("SendStreamingMessage", question, "c-1"))
            await slow.until(1)
            queued = asyncio.create_task(client.send("SendStreamingMessage", question, "c-1"))
            await client.until_opened(2)
            stopping = asyncio.create_task(supervisor.stop(number))
            assert ending_of((await queued)[-1])[0] == "submitted", "it had not begun"
            if number == signal.SIGTERM:
                assert not running.done()
                slow.answers.set()
            ending = (await running)[-1]
            assert await stopping == 0
    state = ending["statusUpdate"]["status"]["state"].lower().removeprefix("task_state_")
    assert state == ("completed" if number == signal.SIGTERM else "working")


@pytest.mark.parametrize(
    ("number", "returns"), [(signal.SIGTERM, True), (signal.SIGKILL, True), (signal.SIGKILL, False)]
)
async def test_a_delegation_to_an_agent_that_is_stopped_continues_if_the_agent_returns(
    tmp_path: Path, unused_port: int, number: signal.Signals, returns: bool
) -> None:
    remote = {"DISTRIBUTED_AGENTS": "netutils", "NETUTILS_AGENT_URL": f"http://127.0.0.1:{unused_port}"}
    environ = environ_of(tmp_path, AGENT_RECONNECT_SECONDS="60" if returns else "0.5", **remote)
    command = ["agent", "netutils", "--port", str(unused_port)]
    async with (
        silence() as slow,
        CommandLine(["--port", "0"], environ) as supervisor,
        calling(supervisor.url) as caller,
    ):
        async with CommandLine(command, environ) as agent:
            run = asyncio.create_task(caller.ask(f"netutils: http check {slow.url}"))
            await slow.until(1)
            assert await agent.stop(number) == (0 if number == signal.SIGTERM else -number)
        if returns:
            slow.answers.set()
            async with CommandLine(command, environ):
                events: Sequence[Any] = await asyncio.wait_for(run, 90)
        else:
            events = await asyncio.wait_for(run, 90)
    assert isinstance(check(events), FinalResult)
    [ended] = [event for event in events if isinstance(event, AgentFinished)]
    assert ended.ok is returns
    if not returns:
        assert "Outcome unknown: Netutils" in (ended.reason or "")
        assert (ended.reason or "").endswith("Check before asking again.")
