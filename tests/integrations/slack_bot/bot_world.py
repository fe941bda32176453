"""A bot with the real threads, between a Slack and a supervisor made of values; it can be killed at any moment."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from a2a.types.a2a_pb2 import ListTasksResponse, Message, StreamResponse, Task, TaskArtifactUpdateEvent

from ai_platform_engineering.events import Canceled, Event
from ai_platform_engineering.integrations.slack_bot.bot import Bot, MayAnswer
from ai_platform_engineering.integrations.slack_bot.places import Incoming, SlackUser, ThreadPlace
from ai_platform_engineering.integrations.slack_bot.store import BotStoreError
from ai_platform_engineering.integrations.slack_bot.store.memory import MemoryStore
from ai_platform_engineering.integrations.slack_bot.thread import Environment
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    CREATING,
    Deferred,
    Delivered,
    Operation,
    Report,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.stream_buffer import WritePace
from ai_platform_engineering.utils.a2a_common.wire import StreamState, encode, stamp
from tests.integrations.slack_bot.thread_model import ThreadModel

PLACE = ThreadPlace("T1", "C1", "1.0")
ANNA = SlackUser("T1", "UANNA")
BERT = SlackUser("T1", "UBERT")
_TURNS = 15


class SteppedClock:
    """Time passes when all tasks are idle."""

    def __init__(self) -> None:
        self._now = 1_000_000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self._count += 1
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + max(0.0, seconds), self._count, future))
        await future

    def step(self) -> bool:
        """Advance to the next time for which a task waits."""
        while self._sleepers:
            at, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                self._now = max(self._now, at)
                future.set_result(None)
                return True
        return False


@dataclass
class Work:
    """A task of the supervisor: what it will say, in parts that each end with a question or the end."""

    id: str
    context_id: str
    parts: list[list[Event]]
    heard: list[Message] = field(default_factory=list)
    updates: list[Any] = field(default_factory=list)


class FakeSupervisor:
    """Events come one by one, `pause` seconds apart, and are numbered; a subscriber gets the ones it missed."""

    resumes = True
    address = "http://supervisor.invalid"
    card = SimpleNamespace(skills=[])

    def __init__(self, clock: SteppedClock, script: Callable[[Message], list[list[Event]]], pause: float) -> None:
        self.client = self
        self._clock, self._script, self._pause = clock, script, pause
        self.tasks: dict[str, Work] = {}
        self._grown: dict[str, asyncio.Event] = {}
        self._working: set[asyncio.Task[None]] = set()

    def send_message(self, request: Any) -> AsyncIterator[StreamResponse]:
        return self._sent(request.message)

    async def _sent(self, message: Message) -> AsyncIterator[StreamResponse]:
        await asyncio.sleep(0)
        if message.task_id:
            work = self.tasks[message.task_id]
        else:
            number = len(self.tasks) + 1
            work = self.tasks[f"task-{number}"] = Work(f"task-{number}", message.context_id, self._script(message))
            self._grown[work.id] = asyncio.Event()
        work.heard.append(message)
        after = len(work.updates)
        if work.parts:
            task = asyncio.create_task(self._work(work, work.parts.pop(0)))
            self._working.add(task)
            task.add_done_callback(self._working.discard)
        yield StreamResponse(task=self._task(work))
        async for answer in self._follow(work, after):
            yield answer

    async def _work(self, work: Work, events: list[Event]) -> None:
        state = StreamState(work.id, work.context_id, "trace-1")
        for event in events:
            await self._clock.sleep(self._pause)
            self._add(work, state, event)

    def _add(self, work: Work, state: StreamState, event: Event) -> None:
        for update in encode(state, event):
            stamp(update, len(work.updates) + 1)
            work.updates.append(update)
        self._grown[work.id].set()
        self._grown[work.id] = asyncio.Event()

    async def subscribe(self, request: Any, context: Any) -> AsyncIterator[StreamResponse]:
        work = self.tasks[request.id]
        yield StreamResponse(task=self._task(work))
        async for answer in self._follow(work, int(context.service_parameters["Last-Event-ID"])):
            yield answer

    async def _follow(self, work: Work, after: int) -> AsyncIterator[StreamResponse]:
        while True:
            grown = self._grown[work.id]
            while after < len(work.updates):
                update = work.updates[after]
                after += 1
                if isinstance(update, TaskArtifactUpdateEvent):
                    yield StreamResponse(artifact_update=update)
                else:
                    yield StreamResponse(status_update=update)
            await grown.wait()

    async def list_tasks(self, request: Any) -> ListTasksResponse:
        await asyncio.sleep(0)
        return ListTasksResponse(
            tasks=[self._task(work) for work in self.tasks.values() if work.context_id == request.context_id]
        )

    async def cancel_task(self, request: Any) -> None:
        await asyncio.sleep(0)
        work = self.tasks[request.id]
        self._add(work, StreamState(work.id, work.context_id, "trace-1"), Canceled())

    def _task(self, work: Work) -> Task:
        task = Task(id=work.id, context_id=work.context_id)
        task.status.state = 2
        task.history.extend(work.heard)
        return task


class World:
    """Everything that outlives the bot, and the moments at which it can be killed or stopped."""

    def __init__(
        self,
        script: Callable[[Message], list[list[Event]]],
        *,
        kill_at: int = 0,
        stop_at: int = 0,
        pause: float = 0.3,
        may_answer: MayAnswer = lambda *_: None,
    ) -> None:
        self.clock = SteppedClock()
        self.slack = ThreadModel()
        self.store = MemoryStore()
        self.supervisor = FakeSupervisor(self.clock, script, pause)
        self.moments = 0
        self.made: dict[tuple[str, int], str] = {}
        """Which message was made by which operation of which run."""
        self.fails: Callable[[Operation], Report | None] = lambda _: None
        self.disk_full = False
        self._kill_at, self._stop_at = kill_at, stop_at
        self._may_answer = may_answer
        self._life = 0
        self._over = False
        self.link = _Link(self)
        self.bot = self._new_bot()

    def passes(self, life: int) -> bool:
        """Whether that life of the bot still goes on, at one more moment at which it could end."""
        if life != self._life:
            return False
        self.moments += 1
        if self.moments == self._kill_at:
            self._life += 1
        self._over |= self.moments in (self._kill_at, self._stop_at)
        return life == self._life

    async def until(self, done: Callable[[], bool]) -> None:
        """Let time pass, and bots follow each other."""
        for _ in range(3_000):
            await _breathe()
            await self.outlive()
            if done():
                return
            self.clock.step()
        raise AssertionError(f"it never comes to that; people see {self.slack.words!r}")

    async def outlive(self) -> None:
        """A new bot, if there is none any more."""
        if self._over:
            self._over = False
            await self.end()
            self.bot = self._new_bot()
            await self.bot.start()

    async def end(self) -> None:
        closing = asyncio.create_task(self.bot.aclose())
        while not closing.done():
            await _breathe()
            self.clock.step()
        await closing

    def _new_bot(self) -> Bot:
        store, delivery = _Store(self, self._life), _Delivery(self, self._life)
        environment = Environment(store, delivery, self.clock, self.link, WritePace)  # type: ignore[arg-type]
        return Bot(environment, self._may_answer)


async def _breathe() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)


class _Link:
    timeout = 5.0

    def __init__(self, world: World) -> None:
        self._world = world

    async def supervisor(self, *, wait: bool = True) -> FakeSupervisor:
        await asyncio.sleep(0)
        return self._world.supervisor

    def metadata(self, *_: object) -> dict[str, Any]:
        return {}

    def signed(self, message: Message, *_: object) -> Message:
        return message

    async def aclose(self) -> None:
        pass


class _Store:
    """The store; what a dead bot writes is not written."""

    def __init__(self, world: World, life: int) -> None:
        self._world, self._life = world, life

    def put_run(self, run: Any) -> None:
        if self._world.disk_full:
            raise BotStoreError("There is no room on the disk.")
        if self._world.passes(self._life):
            self._world.store.put_run(run)
            self._world.passes(self._life)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.store, name)


class _Delivery:
    """Delivery; what a dead bot does is not done, and a killed one may not hear of what it has done."""

    def __init__(self, world: World, life: int) -> None:
        self._world, self._life = world, life

    async def do(self, place: ThreadPlace, recipient: SlackUser, operation: Operation, **asked: Any) -> Report:
        await self._alive()
        await self._world.clock.sleep(0.1)
        await self._alive()
        report = self._world.fails(operation) or self._world.slack.do(operation)
        if isinstance(operation, CREATING) and isinstance(report, Delivered):
            self._world.made[asked["holder"], operation.number] = report.ts
        await self._alive()
        await self._world.clock.sleep(0.1)
        await self._alive()
        return report

    async def find(self, place: ThreadPlace, operation: Operation, *, holder: str, after: str) -> Report:
        await self._alive()
        ts = self._world.made.get((holder, operation.number))
        return Deferred(operation.number, 0.5) if ts is None else Delivered(operation.number, ts)

    def know(self, channel: str, *messages: str) -> None:
        pass

    async def _alive(self) -> None:
        if not self._world.passes(self._life):
            raise asyncio.CancelledError


def incoming(
    text: str = "what is wrong?", ts: str = "1.0", person: SlackUser = ANNA, *, quiet: bool = False
) -> Incoming:
    return Incoming(PLACE, ts, text, person, quiet)
