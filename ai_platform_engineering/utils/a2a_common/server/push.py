"""Push notifications: an observer of the event log that delivers status changes in the background.

The log is the queue. A receiver has the number of the last event that it got, so notifications arrive in order, and a
delivery that ended with its process is continued: by the next start, or by another process that shares the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from a2a.types.a2a_pb2 import TaskStatusUpdateEvent

from ai_platform_engineering.storage.event_log.event_log import Entry, EventLog, UnknownTaskError
from ai_platform_engineering.storage.event_log.task_fold import ends_task
from ai_platform_engineering.storage.push.receivers import ReceiverKey, ReceiverStoreError
from ai_platform_engineering.utils.a2a_common.protocol import TERMINAL_STATES
from ai_platform_engineering.utils.a2a_common.server.push_configs import PushConfigs
from ai_platform_engineering.utils.a2a_common.server.push_sender import PushSender
from ai_platform_engineering.utils.a2a_common.wire import FORM_ARTIFACT

logger = logging.getLogger(__name__)

MAX_ATTEMPTS: Final = 8
_FIRST_BACKOFF: Final = 1.0
_MAX_BACKOFF: Final = 60.0
_ROUND_SECONDS: Final = 60.0
_LOOK_UP_SECONDS: Final = 0.25
"""Receivers in a shared store are looked up at most so often, for all tasks that changed meanwhile."""

_CLOSING_ARTIFACTS: Final = frozenset({"final_result", "partial_result", FORM_ARTIFACT})


class PushNotifications:
    """Delivers the status updates and closing artifacts of tasks with receivers.

    A slow receiver delays its own notifications only. A notification that its receiver does not accept now is sent
    again, `MAX_ATTEMPTS` times in all, then given up.
    """

    def __init__(
        self,
        configs: PushConfigs,
        log: EventLog,
        sender: PushSender,
        first_backoff: float = _FIRST_BACKOFF,
        round_seconds: float = _ROUND_SECONDS,
    ) -> None:
        self._configs = configs
        self._log = log
        self._sender = sender
        self._first_backoff = first_backoff
        self._round_seconds = round_seconds
        self._changed_tasks: set[str] = set()
        # Receivers with a delivery, and whether there may be more events than it has read.
        self._delivering: dict[ReceiverKey, bool] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._looking_up = False

    async def check(self, url: str) -> None:
        """Raise `RefusedError` if notifications may not be sent to the URL."""
        await self._sender.check(url)

    def notify(self, task_id: str, entries: Sequence[Entry]) -> None:
        """Begin to deliver events that were appended to the log."""
        if not self._configs.may_have(task_id) or not any(map(_is_lifecycle_event, entries)):
            return
        self._changed_tasks.add(task_id)
        if not self._looking_up:
            self._looking_up = True
            self._start(self._look_up(), "push-receivers")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Continue the deliveries that ended with the last process and, if the store is shared, with others."""
        try:
            await self._configs.load()
            await self.deliver_pending()
        except ReceiverStoreError as error:
            logger.error("%s", error)
        if self._configs.store.is_shared:
            self._start(self._rounds(), "push-rounds")
        try:
            yield
        finally:
            await self.aclose()

    async def deliver_pending(self) -> None:
        """Begin to deliver all events that receivers have not got. A periodic job may call this in any process."""
        for key in await asyncio.to_thread(self._configs.store.unfinished):
            self._deliver(key)

    async def prune(self) -> None:
        """Delete the receivers of deleted tasks."""
        try:
            await self._configs.prune()
        except ReceiverStoreError as error:
            logger.error("%s", error)

    async def aclose(self) -> None:
        for work in self._work:
            work.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await self._sender.aclose()
        await asyncio.to_thread(self._configs.store.close)

    async def _rounds(self) -> None:
        while True:
            await asyncio.sleep(self._round_seconds)
            try:
                await self.deliver_pending()
            except ReceiverStoreError as error:
                logger.error("%s", error)

    async def _look_up(self) -> None:
        """Find the receivers of the tasks with new events. Tasks that change meanwhile are looked up together."""
        backoff = self._first_backoff
        try:
            while self._changed_tasks:
                tasks, self._changed_tasks = self._changed_tasks, set()
                try:
                    keys = await asyncio.to_thread(self._configs.store.keys, tasks)
                except ReceiverStoreError as error:
                    logger.error("%s", error)
                    self._changed_tasks |= tasks
                    await asyncio.sleep(backoff)
                    backoff = min(_MAX_BACKOFF, 2 * backoff)
                else:
                    for key in keys:
                        self._deliver(key)
                    if self._configs.store.is_shared:
                        await asyncio.sleep(_LOOK_UP_SECONDS)
        finally:
            self._looking_up = False

    def _deliver(self, key: ReceiverKey) -> None:
        is_new = key not in self._delivering
        self._delivering[key] = True
        if is_new:
            self._start(self._deliver_all(key), f"push:{key.task_id}")

    async def _deliver_all(self, key: ReceiverKey) -> None:
        store = self._configs.store
        try:
            while self._delivering[key]:
                await self._claim(key)
                try:
                    while self._delivering[key]:
                        self._delivering[key] = False
                        await self._deliver_new(key)
                finally:
                    await asyncio.to_thread(store.release, key)
        except ReceiverStoreError as error:
            logger.error("%s", error)
        except Exception:  # for example the log cannot be read; the next event or the next round tries again
            logger.exception("push notifications for task %s could not be delivered", key.task_id)
        finally:
            del self._delivering[key]

    async def _claim(self, key: ReceiverKey) -> None:
        backoff = self._first_backoff
        while not await asyncio.to_thread(self._configs.store.claim, key):
            # Another process delivers, perhaps also these events.
            await asyncio.sleep(backoff)
            backoff = min(_MAX_BACKOFF, 2 * backoff)

    async def _deliver_new(self, key: ReceiverKey) -> None:
        """Deliver all events after the last one that the receiver got."""
        store, attempts, backoff = self._configs.store, 0, self._first_backoff
        # The receiver is read for every attempt, because its owner may have changed or deleted it.
        while (receiver := await asyncio.to_thread(store.get, key)) is not None:
            # Before its events are read, so that none can follow them.
            has_ended = await self._log.state(key.task_id) in TERMINAL_STATES
            try:
                entries = await self._log.read(key.task_id, receiver.delivered)
            except UnknownTaskError:
                return
            entry = next(filter(_is_lifecycle_event, entries), None)
            if entry is None:
                if has_ended:
                    await asyncio.to_thread(store.mark, key, receiver.delivered, finished=True)
                return
            attempts += 1
            result = await self._sender.send(receiver.config, entry)
            if result == "unavailable" and attempts < MAX_ATTEMPTS:
                await asyncio.sleep(backoff)
                backoff = min(_MAX_BACKOFF, 2 * backoff)
                continue
            if result == "unavailable":
                logger.warning("A push notification for task %s is given up after %d attempts.", key.task_id, attempts)
            await asyncio.to_thread(store.mark, key, entry.seq, finished=ends_task(entry.event))
            attempts, backoff = 0, self._first_backoff

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._work.add(task)
        task.add_done_callback(self._work.discard)


def _is_lifecycle_event(entry: Entry) -> bool:
    return isinstance(entry.event, TaskStatusUpdateEvent) or entry.event.artifact.name in _CLOSING_ARTIFACTS
