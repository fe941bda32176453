"""Several job queues over one Postgres database and one event log, as if each were a server of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import uuid4

import psycopg
from a2a.types.a2a_pb2 import Message, Part, Role, Task, TaskState, TaskStatus

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.identity.principal import ANONYMOUS
from ai_platform_engineering.storage.event_log.event_log import EventLog, StoredRequest
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.storage.event_log.postgres.schema import LogAddress
from ai_platform_engineering.utils.a2a_common.protocol import TERMINAL_STATES
from ai_platform_engineering.utils.a2a_common.server.job_queue import JobQueue
from ai_platform_engineering.utils.a2a_common.server.task_endings import TaskEndings
from ai_platform_engineering.utils.a2a_common.server.work import Assignment
from tests.utils.a2a_common.scripted_executor import ANSWER, Script, ScriptedExecutor

TIMEOUT = 60


class RecordingExecutor(ScriptedExecutor):
    """Adds its assignments to `worked`, which all replicas share."""

    def __init__(self, log: EventLog, script: Callable[[str, int], Script], worked: list[Assignment]) -> None:
        super().__init__(log, script, resumable=True)
        self.worked = worked

    async def execute(self, assignment: Assignment) -> bool:
        self.worked.append(assignment)
        return await super().execute(assignment)


@dataclass
class Replica:
    queue: JobQueue
    executor: RecordingExecutor

    @property
    def runs(self) -> list[Assignment]:
        return [run.assignment for run in self.queue._runs if run.assignment is not None]


@dataclass
class Replicas:
    database: str
    log: EventLog
    replicas: list[Replica] = field(default_factory=list)
    worked: list[Assignment] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def __getitem__(self, place: int) -> Replica:
        return self.replicas[place]

    async def ask(self, text: str, context: str = "c", *, at: int = 0, token: str | None = None) -> str:
        """A first message to a new task; the id of the task."""
        task_id = f"task-{next(self._numbers)}"
        message = _message(text, task_id, context)
        task = Task(id=task_id, context_id=context, status=_submitted(), history=[message])
        await self.log.create(task)
        request = StoredRequest(message, ANONYMOUS, 0)
        await self[at].queue.put(Assignment(task_id, context, request, begins_task=True, auth_token=token))
        return task_id

    async def answer(self, task_id: str, text: str, context: str = "c", *, at: int = 0) -> None:
        message = _message(text, task_id, context)
        await self.log.add_message(task_id, message)
        request = await self.log.request(task_id)
        assert request is not None
        await self[at].queue.put(Assignment(task_id, context, request))

    async def ended(self, *task_ids: str) -> list[str]:
        """Wait for the ends of tasks, and return their states."""
        async with asyncio.timeout(TIMEOUT):
            return [await self._until(task_id, TERMINAL_STATES) for task_id in task_ids]

    async def waits(self, task_id: str) -> None:
        async with asyncio.timeout(TIMEOUT):
            await self._until(task_id, {TaskState.TASK_STATE_INPUT_REQUIRED})

    async def jobs(self) -> list[dict[str, Any]]:
        async with await psycopg.AsyncConnection.connect(
            self.database, row_factory=psycopg.rows.dict_row
        ) as connection:
            rows = await connection.execute(
                "SELECT * FROM job_queue.procrastinate_jobs WHERE task_name = 'run' ORDER BY id"
            )
            return await rows.fetchall()

    async def jobs_become(self, *statuses: str) -> None:
        """Wait until the jobs of runs have these statuses, in order."""

        async def are_so() -> bool:
            return [job["status"] for job in await self.jobs()] == list(statuses)

        await eventually(are_so)

    async def take_over(self) -> None:
        """Let the worker of the running job seem dead, until another execution of the job is possible."""
        job = next(iter(await self.jobs()), {"id": 0, "attempts": 0})

        async def is_taken_over() -> bool:
            # Repeated, because the worker lives and sends its next heartbeat.
            async with await psycopg.AsyncConnection.connect(self.database) as connection:
                updated = await connection.execute(
                    "UPDATE job_queue.procrastinate_workers SET last_heartbeat = now() - interval '1 hour'"
                    " WHERE id = (SELECT worker_id FROM job_queue.procrastinate_jobs"
                    " WHERE status = 'doing' AND id = %s AND attempts = %s)",
                    (job["id"], job["attempts"]),
                )
                return updated.rowcount == 0

        await eventually(is_taken_over)

    @property
    def order(self) -> list[str]:
        """The texts of the messages that were worked on."""
        return [assignment.request.message.parts[0].text for assignment in self.worked]

    async def _until(self, task_id: str, states: set[Any] | frozenset[Any]) -> str:
        seen = 0
        while (state := await self.log.state(task_id)) not in states:
            async for entries in self.log.follow(task_id, seen):
                seen = entries[-1].seq
            await asyncio.sleep(0)
        return TaskState.Name(state).removeprefix("TASK_STATE_").lower()


async def eventually(is_true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while True:
            if await is_true():
                return
            await asyncio.sleep(0.02)


def _message(text: str, task_id: str, context_id: str) -> Message:
    message_id = f"message-{uuid4()}"
    parts = [Part(text=text)]
    return Message(message_id=message_id, role=Role.ROLE_USER, parts=parts, task_id=task_id, context_id=context_id)


def _submitted() -> TaskStatus:
    status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
    status.timestamp.GetCurrentTime()
    return status


@asynccontextmanager
async def replicas(
    database: str,
    number: int = 1,
    script: Callable[[str, int], Script] = lambda text, turn: ANSWER,
    periodic: Callable[[], Awaitable[None]] | None = None,
) -> AsyncIterator[Replicas]:
    """`periodic` is called every second."""
    log = MemoryEventLog()
    served = Replicas(database, log)
    async with AsyncExitStack() as stack:
        for _ in range(number):
            executor = RecordingExecutor(log, script, served.worked)
            endings = TaskEndings(log, SUPERVISOR)
            queue = JobQueue(LogAddress(database), executor, log, endings, server=SUPERVISOR, concurrency=8)
            if periodic is not None:
                queue.every("periodic", 1, periodic)
            await stack.enter_async_context(queue.opened())
            served.replicas.append(Replica(queue, executor))
        yield served
