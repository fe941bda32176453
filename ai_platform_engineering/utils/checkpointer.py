"""Where conversations are remembered between questions: in a file, or in memory.

The supervisor's are in a file of the data directory unless the settings say otherwise. An agent's own server has them
in memory, and what it was delegated only until that has ended; but those that wait for a person are in a file too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.checkpoints.file_saver import FileSaver
from ai_platform_engineering.storage.checkpoints.memory_saver import MemorySaver
from ai_platform_engineering.storage.checkpoints.parking_saver import ParkingSaver
from ai_platform_engineering.storage.checkpoints.waiting_file import WaitingFile
from ai_platform_engineering.storage.data_files import conversations_file, keeps_conversations

if TYPE_CHECKING:
    from ai_platform_engineering.graphs.agent_graph import Graph

__all__ = [
    "ConversationSaver",
    "FileSaver",
    "MemorySaver",
    "ParkingSaver",
    "checkpointer_for",
    "release",
    "settle",
]


@runtime_checkable
class ConversationSaver(Protocol):
    """What our checkpointers can do beside checkpointing."""

    async def keep_latest(self, thread_id: str) -> bool:
        """Drop all of a conversation but its last state; false, and nothing dropped, if something in it waits.

        What waits is safe when this returns.
        """

    async def release(self, thread_id: str, for_good: bool) -> None:
        """Nobody will answer what waits in a conversation: it is as if that had not been asked, or drop it whole."""

    async def forget(self, thread_ids: Iterable[str]) -> None:
        """Drop whole conversations."""


@asynccontextmanager
async def checkpointer_for(
    settings: Settings, name: str = SUPERVISOR
) -> AsyncIterator[BaseCheckpointSaver[Any] | None]:
    """The checkpointer of the supervisor, or of the agent `name`, while it is needed."""
    if settings.langgraph_dev:  # LangGraph Studio brings its own
        yield None
    elif not keeps_conversations(settings, name):
        yield MemorySaver(settings.event_log_max_tasks)
    elif name == SUPERVISOR:
        async with FileSaver.opened(settings) as file_saver:
            # Tasks that are not kept cannot take their conversations with them when they are dropped.
            if settings.event_log == "memory":
                await file_saver.forget_quiet(settings.event_log_max_tasks, settings.event_log_max_age_days)
            yield file_saver
    else:
        with closing(WaitingFile(conversations_file(settings, name))) as file:
            yield ParkingSaver(settings.event_log_max_tasks, file)


async def settle(graph: Graph, thread_id: str, *, for_good: bool = False) -> None:
    """A run has ended: its steps are no longer needed and, if the conversation ends with it, its state neither.

    Or it waits for a person: settled before that is shown, it can be answered whatever happens to this process.
    """
    saver = graph.checkpointer
    # The value of such a channel is spread over the checkpoints before.
    spread = any(isinstance(channel, DeltaChannel) for channel in graph.channels.values())
    if isinstance(saver, ConversationSaver) and not spread:
        has_ended = await saver.keep_latest(thread_id)
        if has_ended and for_good:
            await saver.forget([thread_id])


async def release(graph: Graph, thread_id: str, *, for_good: bool = False) -> None:
    """A run has ended without an answer, by failing or by being canceled: what it had asked is no longer asked."""
    saver = graph.checkpointer
    if isinstance(saver, ConversationSaver):
        await saver.release(thread_id, for_good)
        if not for_good:
            await settle(graph, thread_id)
