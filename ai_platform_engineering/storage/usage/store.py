"""The interface of the stores of usage."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ai_platform_engineering.budgets.usage import Usage, UsageRow
from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.utils.errors import ReadableError


class UsageStoreError(ReadableError):
    """Usage cannot be read or stored. The text names the file or the server, and what to do."""


@dataclass(frozen=True, slots=True)
class UsageBatch:
    """Rows that are added together, and once only: a batch whose key is stored adds nothing."""

    key: str
    rows: Sequence[UsageRow]


class UsageStore(Protocol):
    """The methods block on I/O and raise `UsageStoreError`: call them in a thread."""

    is_shared: bool
    """Whether other processes may add to the counts."""

    def add(self, batches: Sequence[UsageBatch]) -> None:
        """Add all batches in one transaction."""

    def totals(self, day: str, scopes: Collection[str]) -> Mapping[str, Usage]:
        """The usage of each of these scopes on a day. Scopes without usage are left out."""

    def rows(self, since: str, scopes: Collection[str] | None = None) -> list[UsageRow]:
        """The usage of each day since `since`, of these scopes or of all, in order of day, scope and model."""

    def activate(self, task_id: str, limits: Mapping[str, int | None]) -> Mapping[str, int]:
        """Count the run of a task as in progress for these scopes. If a scope has reached its limit, nothing changes.

        Returns the number of other runs in progress for each scope that has reached its limit.
        """

    def deactivate(self, task_id: str) -> None:
        """The run of a task has ended, or waits for a person."""

    def check_up(self, name: str) -> StoreCheckup:
        """The row of `platform-engineer doctor`."""

    def close(self) -> None:
        """The next use opens it again."""
