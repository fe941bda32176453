"""Messages that a client sends again, because it does not know whether they arrived.

A client that lost its connection, or was restarted, sends its message again with the same id. Its task is found by that
id, so the work is done once and the client gets all events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from a2a.types.a2a_pb2 import Message
from a2a.utils.errors import InvalidParamsError

from ai_platform_engineering.storage.event_log.event_log import EventLog, Snapshot

_OTHER_MESSAGE = "message.messageId: was used for another message of this conversation. Give every message its own id."


class RepeatedMessages:
    """Recognizes the messages of one event log. Messages without a conversation are always new."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        # Messages that are being stored, by conversation and message id.
        self._in_progress: dict[tuple[str, str], asyncio.Event] = {}

    @asynccontextmanager
    async def checked(self, message: Message) -> AsyncIterator[Snapshot | None]:
        """The task of a message that was accepted before, as it was then; None if the message is new.

        A new message must be stored inside this context: the same message of another request waits meanwhile. If it
        arrives at another process, the log stores it once.
        """
        if not message.context_id:
            yield None
            return
        key = message.context_id, message.message_id
        while (earlier := self._in_progress.get(key)) is not None:
            await earlier.wait()
        done = self._in_progress[key] = asyncio.Event()
        try:
            yield await self.find(message)
        finally:
            del self._in_progress[key]
            done.set()

    async def find(self, message: Message) -> Snapshot | None:
        """The task of a message that was accepted before, as it was then."""
        found = await self._log.find_message(message.context_id, message.message_id)
        task = await self._log.task(found.task_id) if found is not None else None
        if found is None or task is None:
            return None
        is_same = message.task_id in ("", task.id) and any(
            sent.message_id == message.message_id and sent.role == message.role and [*sent.parts] == [*message.parts]
            for sent in task.history
        )
        if not is_same:
            raise InvalidParamsError(message=_OTHER_MESSAGE)
        return await self._log.snapshot(task.id, at=found.after)
