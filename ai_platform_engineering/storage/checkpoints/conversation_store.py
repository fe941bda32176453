"""A store of conversations: its interface, its address, and its errors."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple

from ai_platform_engineering.storage.data_files import ConversationsFileError
from ai_platform_engineering.storage.servers.errors import StoreError
from ai_platform_engineering.storage.sqlite.owned_file import reason
from ai_platform_engineering.storage.store_timer import StoreKind

STORE_ERRORS: Final = (StoreError, ConversationsFileError, sqlite3.Error)


class ConversationStore(Protocol):
    """A saver that persists conversations."""

    async def ping(self) -> None: ...
    async def expire(self, max_age_minutes: float) -> None: ...
    async def keep_latest(self, thread_id: str) -> bool: ...
    async def release(self, thread_id: str, for_good: bool) -> None: ...
    async def forget(self, thread_ids: Iterable[str]) -> None: ...
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None: ...
    def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]: ...
    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig: ...
    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None: ...
    async def aget_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Any: ...


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Which store to open, and how. `kind` is its name for people, `place` has no credentials.

    `checks_claims`: a write of a claimed run checks the claim in its transaction.
    """

    type: StoreKind
    kind: str
    place: str
    opened: Callable[[], AbstractAsyncContextManager[ConversationStore]]
    checks_claims: bool = False

    @property
    def is_server(self) -> bool:
        return self.type != "sqlite"

    def problem(self, error: Exception) -> str:
        """A sentence for people who operate the server."""
        if isinstance(error, ConversationsFileError):
            return str(error)
        way_out = error.way_out if isinstance(error, StoreError) else ""
        failure = store_failure(error)
        return f"{self.kind} at {self.place} cannot be used to store conversations: {failure}. {way_out}".rstrip()


def store_failure(error: Exception) -> str:
    """Why a store cannot be used, without a full stop."""
    if isinstance(error, ConversationsFileError):
        error = error.cause
    return reason(error).rstrip(".") or type(error).__name__
