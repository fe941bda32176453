"""Conversations: the messages of one are worked on one at a time, in order of arrival."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Turn:
    """The floor of a conversation. Whoever has it sets `waits` when a person has been asked something."""

    waits: bool = False


@dataclass(slots=True)
class _Conversation:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    interested: int = 0
    waiting_task: str | None = None


class Conversations:
    """Who has the floor, by conversation. A task that waits for a person keeps it: what came later comes after it.

    A conversation that nobody works on takes no memory.
    """

    def __init__(self) -> None:
        self._active: dict[str, _Conversation] = {}

    @asynccontextmanager
    async def turn(self, context_id: str, task_id: str) -> AsyncIterator[Turn]:
        """Wait until everything that came earlier in the conversation is done, then have the floor."""
        conversation = self._active.setdefault(context_id, _Conversation())
        if conversation.waiting_task == task_id:
            conversation.waiting_task = None
        else:
            await self._take_floor(context_id, conversation)
        turn = Turn()
        try:
            yield turn
        finally:
            if turn.waits:
                conversation.waiting_task = task_id
            else:
                self._leave_floor(context_id, conversation)

    def end_waiting(self, context_id: str) -> None:
        """The task that waited in a conversation has been ended: others have their turn."""
        conversation = self._active.get(context_id)
        if conversation is not None and conversation.waiting_task is not None:
            conversation.waiting_task = None
            self._leave_floor(context_id, conversation)

    async def _take_floor(self, context_id: str, conversation: _Conversation) -> None:
        conversation.interested += 1
        try:
            await conversation.lock.acquire()
        except BaseException:
            self._lose_interest(context_id, conversation)
            raise

    def _leave_floor(self, context_id: str, conversation: _Conversation) -> None:
        conversation.lock.release()
        self._lose_interest(context_id, conversation)

    def _lose_interest(self, context_id: str, conversation: _Conversation) -> None:
        conversation.interested -= 1
        if not conversation.interested:
            del self._active[context_id]
