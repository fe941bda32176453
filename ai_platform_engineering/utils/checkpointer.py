"""Chooses the checkpointer that stores conversations between questions: in a file, on a server, or in memory.

The supervisor's conversations are in a file of the data directory unless the settings say otherwise, those of an
agent's own server in another file. While the file or the server cannot be used, they are in memory. The conversation of
a delegation is deleted when the delegation has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.checkpoints.conversation_store import StoreAddress
from ai_platform_engineering.storage.checkpoints.fallback_saver import FallbackSaver
from ai_platform_engineering.storage.checkpoints.fencing import Fence
from ai_platform_engineering.storage.checkpoints.memory_saver import MemorySaver
from ai_platform_engineering.storage.checkpoints.stores import agent_store_address, store_address
from ai_platform_engineering.storage.store_timer import NO_TIMER, StoreTimer
from ai_platform_engineering.utils.background_tasks import stop_tasks

if TYPE_CHECKING:
    from ai_platform_engineering.graphs.agent_graph import Graph

__all__ = [
    "ConversationSaver",
    "FallbackSaver",
    "MemorySaver",
    "checkpointer_for",
    "release",
    "settle",
    "store_problem",
    "until_stored",
]


logger = logging.getLogger(__name__)

_ROUND_SECONDS: Final = 60.0
_MIN_ROUND_SECONDS: Final = 0.5


@runtime_checkable
class ConversationSaver(Protocol):
    """The methods of our checkpointers beside LangGraph's interface."""

    async def keep_latest(self, thread_id: str) -> bool:
        """Delete all checkpoints of a conversation but the last one. If a form is open in it, delete nothing and return
        false; the conversation is persisted when this returns."""

    async def release(self, thread_id: str, for_good: bool) -> None:
        """Drop the open form of a conversation, which will not be answered. `for_good` deletes the whole
        conversation."""

    async def forget(self, thread_ids: Iterable[str]) -> None:
        """Delete conversations."""


@asynccontextmanager
async def checkpointer_for(
    settings: Settings, name: str = SUPERVISOR, timer: StoreTimer = NO_TIMER, fence: Fence | None = None
) -> AsyncIterator[BaseCheckpointSaver[Any] | None]:
    """The checkpointer of the supervisor or of the agent `name`; open inside the `async with` block.

    `fence` checks that a run which writes checkpoints was not claimed by another process.
    """
    if settings.langgraph_dev:  # LangGraph Studio has its own
        yield None
    elif name == SUPERVISOR:
        async with (
            _opened(settings, store_address(settings), timer, fence) as saver,
            _expiring(saver, settings.langgraph_checkpoint_ttl_minutes),
        ):
            yield saver
    else:
        async with _opened(settings, agent_store_address(settings, name), timer, fence) as saver:
            yield saver


@asynccontextmanager
async def _opened(
    settings: Settings, address: StoreAddress | None, timer: StoreTimer, fence: Fence | None
) -> AsyncIterator[FallbackSaver | MemorySaver]:
    if address is None:
        yield MemorySaver(settings.event_log_max_tasks)
        return
    async with FallbackSaver.opened(
        address, settings.event_log_max_tasks, required=settings.require_persistence, timer=timer, fence=fence
    ) as saver:
        yield saver


@asynccontextmanager
async def _expiring(saver: FallbackSaver | MemorySaver, minutes: float) -> AsyncIterator[None]:
    """Delete idle conversations while the block runs. 0 minutes delete nothing."""

    async def expire() -> None:
        while True:
            try:
                await saver.expire(minutes)
            except Exception:  # the next round may succeed
                logger.exception("idle conversations could not be deleted")
            await asyncio.sleep(max(_MIN_ROUND_SECONDS, min(_ROUND_SECONDS, minutes * 60 / 4)))

    if not minutes:
        yield
        return
    rounds = asyncio.create_task(expire(), name="conversations-expiry")
    try:
        yield
    finally:
        await stop_tasks(rounds)


async def settle(graph: Graph, thread_id: str) -> None:
    """Delete the checkpoints that a run no longer needs when it has ended.

    If the run waits for a form, the conversation is persisted instead. Call this before the form is shown: then the
    form can be answered even if this process dies.
    """
    saver = graph.checkpointer
    # The value of a delta channel is spread over earlier checkpoints, so these must stay.
    has_deltas = any(isinstance(channel, DeltaChannel) for channel in graph.channels.values())
    if isinstance(saver, ConversationSaver) and not has_deltas:
        await saver.keep_latest(thread_id)


async def forget(graph: Graph, thread_id: str) -> None:
    """Delete a conversation that has ended for good."""
    if isinstance(graph.checkpointer, ConversationSaver):
        await graph.checkpointer.forget([thread_id])


async def until_stored(graph: Graph) -> None:
    """Wait until the conversations of this graph can be read from their store."""
    if isinstance(graph.checkpointer, FallbackSaver):
        await graph.checkpointer.usable()


def store_problem(graph: Graph) -> str | None:
    """Why the conversations of this graph are in memory instead of their store; None if they are stored."""
    return graph.checkpointer.problem if isinstance(graph.checkpointer, FallbackSaver) else None


def is_persistent(graph: Graph) -> bool:
    """Whether the checkpoints of this graph survive the process."""
    saver = graph.checkpointer
    return isinstance(saver, BaseCheckpointSaver) and not isinstance(saver, MemorySaver)


async def release(graph: Graph, thread_id: str, *, for_good: bool = False) -> None:
    """Drop the open form of a run that failed or was canceled; with `for_good` the whole conversation."""
    saver = graph.checkpointer
    if isinstance(saver, ConversationSaver):
        await saver.release(thread_id, for_good)
        if not for_good:
            await settle(graph, thread_id)
