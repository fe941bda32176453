"""The receivers of push notifications as the SDK's request handler reads and writes them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from a2a.server.context import ServerCallContext
from a2a.server.tasks import PushNotificationConfigStore
from a2a.server.tasks.push_notification_config_store import normalize_push_notification_config
from a2a.types.a2a_pb2 import TaskPushNotificationConfig
from a2a.utils.errors import InternalError

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.identity.principal import caller_in
from ai_platform_engineering.installation import install_command
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.storage.event_log.event_log import EventLog
from ai_platform_engineering.storage.push.receiver_file import ReceiverFile, check_up_file
from ai_platform_engineering.storage.push.receivers import Receiver, ReceiverStore, ReceiverStoreError

if TYPE_CHECKING:
    from ai_platform_engineering.storage.push.postgres_receivers import PostgresReceivers

logger = logging.getLogger(__name__)

_NAME: Final = "receivers of push notifications"

# A receiver is stored before its task is created.
_MIN_AGE_NS: Final = 60 * 10**9

_Result = TypeVar("_Result")


class PushConfigs(PushNotificationConfigStore):
    """Callers see the receivers that they have configured."""

    def __init__(self, store: ReceiverStore, log: EventLog) -> None:
        self.store = store
        self._log = log
        self._tasks: set[str] = set()

    def may_have(self, task_id: str) -> bool:
        """Whether the task may have receivers. Asked for every write to the log, so without I/O."""
        return self.store.is_shared or task_id in self._tasks

    async def load(self) -> None:
        """Read the tasks with receivers from a store of this process alone. Raises `ReceiverStoreError`."""
        if not self.store.is_shared:
            self._tasks.update(await asyncio.to_thread(self.store.tasks, time.time_ns()))

    async def set_info(
        self, task_id: str, notification_config: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Notify this receiver of all events from now on."""
        config = normalize_push_notification_config(task_id, notification_config)
        snapshot = await self._log.snapshot(task_id)
        receiver = Receiver(caller_in(context.state).owner, config, snapshot.seq if snapshot else 0)
        await _stored(self.store.put, receiver)
        if not self.store.is_shared:
            self._tasks.add(task_id)
        return config

    async def get_info(self, task_id: str, context: ServerCallContext) -> list[TaskPushNotificationConfig]:
        receivers = await _stored(self.store.of_task, task_id)
        owner = caller_in(context.state).owner
        return [receiver.config for receiver in receivers if receiver.owner == owner]

    async def get_info_for_dispatch(self, task_id: str) -> list[TaskPushNotificationConfig]:
        return [receiver.config for receiver in await _stored(self.store.of_task, task_id)]

    async def delete_info(self, task_id: str, context: ServerCallContext, config_id: str | None = None) -> None:
        await _stored(self.store.delete, task_id, caller_in(context.state).owner, config_id)

    async def prune(self) -> None:
        """Delete the receivers of tasks that the log has deleted. Raises `ReceiverStoreError`."""
        for task_id in await asyncio.to_thread(self.store.tasks, time.time_ns() - _MIN_AGE_NS):
            if await self._log.state(task_id) is None:
                await asyncio.to_thread(self.store.delete, task_id)
                self._tasks.discard(task_id)


def open_receivers(settings: Settings, agent: str = SUPERVISOR) -> ReceiverStore:
    """Receivers are stored where tasks are stored."""
    if settings.event_log == "postgres":
        return _in_postgres(settings, agent)
    return ReceiverFile(_receivers_path(settings, agent) if settings.event_log == "sqlite" else None)


async def check_up_receivers(settings: Settings) -> StoreCheckup | None:
    """The row of `platform-engineer doctor`; None if there are no receivers here."""
    match settings.event_log:
        case "sqlite" if (path := _receivers_path(settings)).exists():
            return await asyncio.to_thread(check_up_file, _NAME, path)
        case "postgres":
            return await asyncio.to_thread(_check_up_database, settings)
        case _:
            return None


def _check_up_database(settings: Settings) -> StoreCheckup:
    try:
        return _in_postgres(settings, SUPERVISOR).check_up(_NAME)
    except (SettingsError, ReceiverStoreError) as error:
        return StoreCheckup(_NAME, "postgres", "not usable").failed(str(error))


def _in_postgres(settings: Settings, agent: str) -> PostgresReceivers:
    try:
        from ai_platform_engineering.storage.push.postgres_receivers import (  # noqa: PLC0415
            PostgresReceivers,
            ReceiversAddress,
        )
    except ModuleNotFoundError:
        raise SettingsError(
            f"EVENT_LOG=postgres needs psycopg, which is not installed: {install_command('postgres')}."
        ) from None
    dsn = settings.event_log_postgres_dsn
    return PostgresReceivers(ReceiversAddress(dsn.get_secret_value() if dsn else ""), agent)


async def _stored(call: Callable[..., _Result], *arguments: Any) -> _Result:
    try:
        return await asyncio.to_thread(call, *arguments)
    except ReceiverStoreError as error:
        logger.error("%s", error)
        raise InternalError(
            message="The receivers of push notifications cannot be read or stored at the moment. The server's log has "
            "the reason."
        ) from error


def _receivers_path(settings: Settings, agent: str = SUPERVISOR) -> Path:
    return settings.data_dir / ("push.db" if agent == SUPERVISOR else f"push-{agent}.db")
