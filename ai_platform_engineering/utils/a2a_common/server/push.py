"""Push notifications: sent behind the run's back, in order for each task."""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Awaitable, Callable

import httpx
from a2a.server.context import ServerCallContext
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    PushNotificationConfigStore,
    PushNotificationEvent,
    PushNotificationSender,
)
from a2a.types.a2a_pb2 import TaskPushNotificationConfig

from ai_platform_engineering.storage.event_log.event_log import EventLog

DELIVERY_SECONDS = 10


class BackgroundSender(PushNotificationSender):
    """Takes a notification and delivers it meanwhile.

    The SDK waits for each delivery before it goes on with the task: a slow receiver would hold up the answer to a form,
    or a cancel.
    """

    def __init__(
        self, configs: PushNotificationConfigStore, url_validator: Callable[[str], Awaitable[bool]] | None
    ) -> None:
        self._configs = configs
        self._url_validator = url_validator
        self._client: httpx.AsyncClient | None = None
        self._waiting: dict[str, deque[PushNotificationEvent]] = {}
        self._deliveries: set[asyncio.Task[None]] = set()

    async def send_notification(self, task_id: str, event: PushNotificationEvent) -> None:
        if not await self._configs.get_info_for_dispatch(task_id):
            return
        kept = copy.deepcopy(event)
        if (waiting := self._waiting.get(task_id)) is not None:
            waiting.append(kept)
            return
        self._waiting[task_id] = deque([kept])
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
        waiting = self._waiting[task_id]
        try:
            while waiting:
                await sender.send_notification(task_id, waiting.popleft())
        finally:
            del self._waiting[task_id]


class PushConfigs(InMemoryPushNotificationConfigStore):
    """Forgets what was configured for tasks that the log has forgotten."""

    def __init__(self, log: EventLog) -> None:
        super().__init__()
        self._log = log
        self._configured: deque[tuple[str, ServerCallContext]] = deque()

    async def set_info(
        self, task_id: str, notification_config: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        while self._configured and await self._log.state(self._configured[0][0]) is None:
            forgotten, its_context = self._configured.popleft()
            if await self.get_info(forgotten, its_context):
                await self.delete_info(forgotten, its_context)
        self._configured.append((task_id, ServerCallContext(user=context.user)))
        return await super().set_info(task_id, notification_config, context)
