"""A client that knows HTTP, JSON and the protocol, and nothing of the product's own clients.

It follows one task to its end: it approves the forms, and subscribes again after its last event whenever a stream
breaks. A message that was not accepted is sent again with the same id, because the server may have it nevertheless. The
numbers of the events show that none is missing and none comes twice.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx
from a2a.types.a2a_pb2 import StreamResponse, TaskState
from google.protobuf.json_format import ParseDict

from ai_platform_engineering.events import Event, Form, InputRequired
from ai_platform_engineering.utils.a2a_common.codec.decoder import decode_updates
from ai_platform_engineering.utils.a2a_common.wire import WireEvent, is_handed_over, metadata_of

TASK_SECONDS = 120
"""Much longer than a task takes with a restart in it, for machines that are busy with other things."""
_AGAIN_SECONDS = 0.02
_ENDED = {TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED}


@dataclass(frozen=True)
class Frame:
    """`number` is the SSE id. `update` is None for the task that begins a stream."""

    number: int
    update: WireEvent | None
    answers: bool = False
    """Whether this is the first frame of the stream that an answer to a form began."""

    @property
    def kind(self) -> str:
        if self.update is None:
            return "answer accepted" if self.answers else "question accepted"
        return self._fact("event")

    @property
    def tool(self) -> str:
        return self._fact("tool_name")

    @property
    def agent(self) -> str:
        return self._fact("source_agent")

    def _fact(self, name: str) -> str:
        fields = {} if self.update is None else metadata_of(self.update).fields
        # Reading a missing field by its name would add it.
        return str(fields[name].string_value) if name in fields else ""


class ServerStoppingError(Exception):
    """The server takes no more messages. A load balancer would have chosen another."""


Watch = Callable[[Frame], Awaitable[bool]]
"""Called with every new event, and when a message was accepted. True drops the connection."""


@dataclass
class FollowedTask:
    """A task as the client has seen it."""

    watch: Watch
    id: str = ""
    updates: list[WireEvent] = field(default_factory=list)

    @property
    def last(self) -> int:
        return len(self.updates)

    @property
    def events(self) -> list[Event]:
        return decode_updates("supervisor", self.updates)

    @property
    def state(self) -> TaskState:
        states = [update.status.state for update in self.updates if hasattr(update, "status")]
        return states[-1] if states else TaskState.TASK_STATE_SUBMITTED

    @property
    def open_forms(self) -> tuple[Form, ...]:
        last = self.events[-1] if self.state == TaskState.TASK_STATE_INPUT_REQUIRED else None
        return last.forms if isinstance(last, InputRequired) else ()


async def no_watch(_: Frame) -> bool:
    return False


class TaskClient:
    """Talks in one conversation. `metadata` goes with every message."""

    def __init__(self, http: httpx.AsyncClient, url: str, *, metadata: Mapping[str, Any] | None = None) -> None:
        self.context_id = uuid4().hex
        self._http = http
        self._url = url
        self._metadata = dict(metadata or {})

    async def ask(self, question: str, watch: Watch = no_watch) -> FollowedTask:
        """Ask, approve everything, and follow the task until it has ended."""
        task = FollowedTask(watch)
        accepted: set[str] = set()
        async with asyncio.timeout(TASK_SECONDS):
            message_id = f"m-{uuid4().hex}"
            while not task.id:
                await self._send(task, message_id, {"text": question})
            while task.state not in _ENDED:
                form = next((form for form in task.open_forms if form.form_id not in accepted), None)
                if form is None:
                    await self._subscribe(task)
                elif await self._approve(task, form):
                    accepted.add(form.form_id)
        return task

    async def read(self, task: FollowedTask) -> list[WireEvent]:
        """The stored events of a task that has ended."""
        whole = FollowedTask(no_watch, task.id)
        await self._subscribe(whole)
        return whole.updates

    async def _approve(self, task: FollowedTask, form: Form) -> bool:
        """Whether the server has accepted the answer. Otherwise it may or may not have it, and gets it again."""
        answer = {"resume": {"form_id": form.form_id, "decisions": [{"type": "approve"}]}}
        return await self._send(task, f"m-{form.form_id}", {"data": answer})

    async def _send(self, task: FollowedTask, message_id: str, part: dict[str, Any]) -> bool:
        message: dict[str, Any] = {"messageId": message_id, "role": "ROLE_USER", "parts": [part]}
        message |= {"contextId": self.context_id, "metadata": self._metadata}
        message |= {"taskId": task.id} if task.id else {}
        accepted = False
        try:
            async with aclosing(self._frames("SendStreamingMessage", {"message": message})) as frames:
                async for number, update in frames:
                    if not accepted:
                        accepted, answers = True, bool(task.id)
                        task.id = update.task.id
                        if await task.watch(Frame(number, None, answers)) or number != task.last:
                            break
                    elif await self._take(task, number, update):
                        break
        except (httpx.TransportError, ServerStoppingError):
            await asyncio.sleep(_AGAIN_SECONDS)
        return accepted

    async def _subscribe(self, task: FollowedTask) -> None:
        before = task.last
        try:
            async with aclosing(self._frames("SubscribeToTask", {"id": task.id}, str(task.last))) as frames:
                async for number, update in frames:
                    if update.HasField("task"):
                        assert number == task.last, f"the stream begins at {number}, not after {task.last}"
                    elif await self._take(task, number, update):
                        break
        except (httpx.TransportError, ServerStoppingError):
            pass
        if task.last == before:
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _take(self, task: FollowedTask, number: int, update: StreamResponse) -> bool:
        taken: WireEvent = getattr(update, update.WhichOneof("payload") or "")
        if number == task.last and is_handed_over(taken):  # the end of the stream, which is no event of the task
            return False
        assert number == task.last + 1, f"event {number} came after event {task.last}"
        task.updates.append(taken)
        return await task.watch(Frame(number, taken))

    async def _frames(
        self, method: str, params: dict[str, Any], after: str | None = None
    ) -> AsyncGenerator[tuple[int, StreamResponse]]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"A2A-Version": "1.0"} | ({"Last-Event-ID": after} if after is not None else {})
        number = -1
        async with self._http.stream("POST", self._url, json=body, headers=headers) as response:
            async for line in response.aiter_lines():
                name, _, value = line.partition(":")
                if name == "id":
                    number = int(value)
                elif name == "data":
                    yield number, ParseDict(_result(value), StreamResponse())
                elif name.startswith("{"):
                    _result(line)


def _result(text: str) -> Any:
    answer = json.loads(text)
    if "stopping" in str(answer.get("error", "")):
        raise ServerStoppingError
    assert "error" not in answer, answer
    return answer["result"]
