"""Push notifications: an observer of the event log that delivers status changes in the background."""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import httpx
from a2a.server.context import ServerCallContext
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    PushNotificationEvent,
)
from a2a.types.a2a_pb2 import TaskPushNotificationConfig, TaskStatusUpdateEvent

from ai_platform_engineering.storage.event_log.event_log import Entry, EventLog
from ai_platform_engineering.utils.a2a_common.wire import FORM_ARTIFACT

DELIVERY_SECONDS: Final = 10

_CLOSING_ARTIFACTS: Final = frozenset({"final_result", "partial_result", FORM_ARTIFACT})


class PushConfigs(InMemoryPushNotificationConfigStore):
    """The receivers of each task. The receivers of tasks that the log has dropped are dropped, too."""

    def __init__(self, log: EventLog) -> None:
        super().__init__()
        self._log = log
        self._configured: deque[tuple[str, ServerCallContext]] = deque()
        self._tasks: set[str] = set()

    def __contains__(self, task_id: str) -> bool:
        """Whether the task may have receivers. Asked for every write to the log, so without I/O."""
        return task_id in self._tasks

    async def set_info(
        self, task_id: str, notification_config: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        while self._configured and await self._log.state(self._configured[0][0]) is None:
            dropped, its_context = self._configured.popleft()
            self._tasks.discard(dropped)
            if await self.get_info(dropped, its_context):
                await self.delete_info(dropped, its_context)
        self._configured.append((task_id, ServerCallContext(user=context.user)))
        self._tasks.add(task_id)
        return await super().set_info(task_id, notification_config, context)


class PushNotifications:
    """Delivers the status updates and closing artifacts of tasks with receivers.

    A slow receiver delays its own notifications only.
    """

    def __init__(self, configs: PushConfigs, url_validator: Callable[[str], Awaitable[bool]] | None) -> None:
        self._configs = configs
        self._url_validator = url_validator
        self._client: httpx.AsyncClient | None = None
        self._undelivered: dict[str, deque[PushNotificationEvent]] = {}
        self._deliveries: set[asyncio.Task[None]] = set()

    def notify(self, task_id: str, entries: Sequence[Entry]) -> None:
        """Queue notifications about events that were appended to the log."""
        if task_id not in self._configs:
            return
        # The log packs and shares its events; deliveries need their own.
        events = [copy.deepcopy(entry.event) for entry in entries if _is_lifecycle_event(entry)]
        if not events:
            return
        if (undelivered := self._undelivered.get(task_id)) is not None:
            undelivered.extend(events)
            return
        self._undelivered[task_id] = deque(events)
        delivery = asyncio.create_task(self._deliver(task_id), name=f"push:{task_id}")
        self._deliveries.add(delivery)
        delivery.add_done_callback(self._deliveries.discard)

    async def aclose(self) -> None:
        for delivery in self._deliveries:
            delivery.cancel()
        await asyncio.gather(*self._deliveries, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()

    async def _deliver(self, task_id: str) -> None:
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=DELIVERY_SECONDS)
        sender = BasePushNotificationSender(self._client, self._configs, push_url_validator=self._url_validator)
        undelivered = self._undelivered[task_id]
        try:
            while undelivered:
                await sender.send_notification(task_id, undelivered.popleft())
        finally:
            del self._undelivered[task_id]


def _is_lifecycle_event(entry: Entry) -> bool:
    return isinstance(entry.event, TaskStatusUpdateEvent) or entry.event.artifact.name in _CLOSING_ARTIFACTS
