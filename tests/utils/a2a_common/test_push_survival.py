"""Push notifications after a kill, and by several processes that share a store."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import httpx
import pytest
from a2a.server.context import ServerCallContext
from a2a.types.a2a_pb2 import Task, TaskPushNotificationConfig, TaskState, TaskStatus, TaskStatusUpdateEvent

from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.storage.event_log.event_log import EventLog
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.storage.push.receiver_file import ReceiverFile
from ai_platform_engineering.storage.push.receivers import ReceiverStore
from ai_platform_engineering.utils.a2a_common.server import push_configs
from ai_platform_engineering.utils.a2a_common.server.push import PushNotifications
from ai_platform_engineering.utils.a2a_common.server.push_configs import PushConfigs, open_receivers
from ai_platform_engineering.utils.a2a_common.server.push_sender import PushSender, push_policy
from tests.servers import CommandLine
from tests.services.environment import ROOT
from tests.utils.a2a_common.serving import message_0_3, until
from tests.utils.a2a_common.test_push import receiving

pytest_plugins = ("tests.services.fixtures",)

WORKING, COMPLETED = TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED
CONTEXT = ServerCallContext()


async def begin_task(log: EventLog, task_id: str = "t1") -> None:
    status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
    await log.create(Task(id=task_id, context_id="c", status=status))


async def enter(log: EventLog, *states: TaskState, task_id: str = "t1") -> None:
    for state in states:
        status = TaskStatus(state=state)
        await log.append(task_id, [TaskStatusUpdateEvent(task_id=task_id, context_id="c", status=status)])


def a_sender() -> PushSender:
    return PushSender(push_policy(load_settings({"PUSH_ALLOW_PRIVATE": "true"}, None)))


@asynccontextmanager
async def a_replica(log: EventLog, store: ReceiverStore, round_seconds: float = 0.1) -> AsyncIterator[PushConfigs]:
    configs = PushConfigs(store, log)
    pushes = PushNotifications(configs, log, a_sender(), first_backoff=0.05, round_seconds=round_seconds)
    log.subscribe(pushes.notify)
    async with pushes.running():
        yield configs


@pytest.fixture
def shared(database: str) -> Iterator[tuple[ReceiverStore, ReceiverStore]]:
    settings = load_settings({"EVENT_LOG": "postgres", "EVENT_LOG_POSTGRES_DSN": database}, None)
    with closing(open_receivers(settings)) as ours, closing(open_receivers(settings)) as theirs:
        yield ours, theirs


async def rpc(http: httpx.AsyncClient, url: str, method: str, params: object) -> dict[str, object]:
    answer = (await http.post(url, json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).json()
    assert "error" not in answer, answer
    result: dict[str, object] = answer["result"]
    return result


@pytest.mark.long
@pytest.mark.process
async def test_a_restarted_server_continues_the_deliveries_of_a_killed_one(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "SANDBOX": "true", "ENABLE_RAG": "false", "PUSH_ALLOW_PRIVATE": "true"}
    serve = ["serve", "--port", "0"]
    async with receiving() as receiver, httpx.AsyncClient(timeout=60) as http:
        async with CommandLine(serve, environ) as server:
            receiver.codes = [503] * 1000
            config = {"url": receiver.url, "token": "t0ken"}
            body = message_0_3("show argocd version") | {"configuration": {"pushNotificationConfig": config}}
            task_id = (await rpc(http, server.url, "message/send", body))["id"]
            await until(lambda: receiver.arrived)
            await server.stop(signal.SIGKILL)
        assert receiver.got == []
        receiver.codes.clear()
        async with CommandLine(serve, environ) as server:
            await until(lambda: "TASK_STATE_COMPLETED" in receiver.states())
            named = {"id": task_id, "pushNotificationConfigId": task_id}
            listed = await rpc(http, server.url, "tasks/pushNotificationConfig/get", named)
            assert listed["pushNotificationConfig"] == {"id": task_id, "url": receiver.url, "token": "t0ken"}
    assert receiver.states() == ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]
    assert {token for _, token in receiver.got} == {"t0ken"}


async def test_a_receiver_set_at_one_replica_is_notified_by_another(
    shared: tuple[ReceiverStore, ReceiverStore],
) -> None:
    log = MemoryEventLog()
    async with receiving() as receiver, a_replica(log, shared[0]):
        # This replica has looked for receivers of the task before there was one.
        await begin_task(log)
        await enter(log, WORKING)
        elsewhere = PushConfigs(shared[1], log)
        await elsewhere.set_info("t1", TaskPushNotificationConfig(url=receiver.url), CONTEXT)
        await enter(log, TaskState.TASK_STATE_INPUT_REQUIRED, WORKING, COMPLETED)
        await until(lambda: len(receiver.got) == 3)
        assert receiver.states() == ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]


async def test_replicas_deliver_each_notification_once(shared: tuple[ReceiverStore, ReceiverStore]) -> None:
    log = MemoryEventLog()
    async with receiving() as receiver, a_replica(log, shared[0]) as configs, a_replica(log, shared[1]):
        receiver.codes = [503] * 3
        await begin_task(log)
        await configs.set_info("t1", TaskPushNotificationConfig(url=receiver.url), CONTEXT)
        # Both replicas observe this log, so both begin to deliver.
        await enter(log, WORKING, TaskState.TASK_STATE_INPUT_REQUIRED, WORKING, COMPLETED)
        await until(lambda: not shared[0].unfinished())
        assert len(receiver.got) == 4
        assert receiver.arrived == 7


DELIVERING = """
import asyncio, sys
from contextlib import closing
from tests.utils.a2a_common.test_push_survival import *

async def deliver(database, url):
    settings = load_settings({"EVENT_LOG": "postgres", "EVENT_LOG_POSTGRES_DSN": database}, None)
    log = MemoryEventLog()
    await begin_task(log)
    async with a_replica(log, open_receivers(settings)) as configs:
        await configs.set_info("t1", TaskPushNotificationConfig(url=url), CONTEXT)
        await enter(log, WORKING, COMPLETED)
        await asyncio.Event().wait()

asyncio.run(deliver(*sys.argv[1:]))
"""


@pytest.mark.long
@pytest.mark.process
async def test_the_deliveries_of_a_killed_process_are_continued_by_another(
    database: str, shared: tuple[ReceiverStore, ReceiverStore]
) -> None:
    log = MemoryEventLog()  # with the same events as that of the process
    await begin_task(log)
    await enter(log, WORKING, COMPLETED)
    async with receiving() as receiver:
        receiver.answers.clear()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", DELIVERING, database, receiver.url),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        try:
            await until(lambda: receiver.arrived == 1)
            [key] = shared[0].unfinished()
            assert not shared[0].claim(key)
            async with a_replica(log, shared[1]):
                process.kill()
                await process.wait()
                receiver.got.clear()
                receiver.answers.set()
                await until(lambda: not shared[0].unfinished())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        # The first notification was on its way when the process was killed, so it may arrive twice.
        assert receiver.states()[-2:] == ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]
        assert len(receiver.got) <= 3


async def test_a_receiver_that_is_changed_after_the_end_has_nothing_to_get() -> None:
    log, store = MemoryEventLog(), ReceiverFile(None)
    # Without rounds, which would deliver before the assertion.
    async with receiving() as receiver, a_replica(log, store, round_seconds=3600) as configs:
        await begin_task(log)
        await configs.set_info("t1", TaskPushNotificationConfig(url=receiver.url), CONTEXT)
        await enter(log, WORKING, COMPLETED)
        await until(lambda: not store.unfinished())
        await configs.set_info("t1", TaskPushNotificationConfig(url=receiver.url, token="new"), CONTEXT)
        assert len(store.unfinished()) == 1
        pushes = PushNotifications(configs, log, a_sender())
        await pushes.deliver_pending()
        await until(lambda: not store.unfinished())
        await pushes.aclose()
        assert len(receiver.got) == 2


async def test_the_receivers_of_deleted_tasks_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryEventLog(max_tasks=1)
    store = ReceiverFile(None)
    configs = PushConfigs(store, log)
    for task_id in ("a", "b", "c"):
        await begin_task(log, task_id)
        await configs.set_info(task_id, TaskPushNotificationConfig(url="https://example.org"), CONTEXT)
        await enter(log, COMPLETED, task_id=task_id)
    await configs.prune()
    assert len(store.unfinished()) == 3, "a receiver is stored before its task is created"
    monkeypatch.setattr(push_configs, "_MIN_AGE_NS", 0)
    await configs.prune()
    assert [task_id for task_id in ("a", "b", "c") if await configs.get_info(task_id, CONTEXT)] == ["c"]
    assert [task_id for task_id in ("a", "b", "c") if configs.may_have(task_id)] == ["c"]
    store.close()
