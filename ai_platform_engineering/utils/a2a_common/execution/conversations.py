"""Conversations: the messages of one are worked on one at a time, in order of arrival."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Conversation:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    interested: int = 0


class Conversations:
    """Who has the floor, by conversation. A conversation that nobody works on takes no memory."""

    def __init__(self) -> None:
        self._active: dict[str, _Conversation] = {}

    @asynccontextmanager
    async def turn(self, context_id: str) -> AsyncIterator[None]:
        """Wait until everything that came earlier in the conversation is done, then have the floor."""
        conversation = self._active.setdefault(context_id, _Conversation())
        conversation.interested += 1
        try:
            async with conversation.lock:
                yield
        finally:
            conversation.interested -= 1
            if not conversation.interested:
                del self._active[context_id]
