"""Listings of conversations: the query, its rows, and the search in their texts. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from a2a.types.a2a_pb2 import Task, TaskArtifactUpdateEvent, TaskState

from ai_platform_engineering.identity.access import UNOWNED, ConversationAccess
from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.storage.event_log.task_record import PackedEvent
from ai_platform_engineering.utils.a2a_common.codec.decoding import kind_of
from ai_platform_engineering.utils.a2a_common.codec.parts import text_of

MAX_SCANNED_TASKS: Final = 2_000
"""The tasks that one query searches. The next page continues behind them."""

Position = tuple[int, str]
"""A place in the listing: the time of a conversation's last change, and its id."""

_ANSWERS: Final = frozenset({"final_result", "partial_result"})


@dataclass(frozen=True, slots=True)
class ConversationQuery:
    """A filter for conversations. Newest change first, at most `limit`, beginning behind the position `after`.

    Each of the `words` must be in the name of the conversation, or in the question or the answer of one of its tasks.
    Case does not matter. With a `viewer`, only the conversations that this principal may see.
    """

    words: tuple[str, ...] = ()
    after: Position | None = None
    limit: int = 50
    viewer: Principal | None = None


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A conversation in a listing. `state` is that of the task that changed last, of the open ones if there are any."""

    id: str
    tasks: int
    state: TaskState
    created_ns: int
    changed_ns: int
    first: Task
    """The first task, as it was submitted."""
    name: str | None = None
    """The name that a person gave it."""
    access: ConversationAccess = UNOWNED
    """Set in the results of a query with a viewer."""

    @property
    def position(self) -> Position:
        return self.changed_ns, self.id


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """`next` may be set although fewer rows than the limit were found: the query has searched enough tasks."""

    rows: list[ConversationRow]
    next: Position | None


@dataclass(frozen=True, slots=True)
class TaskTexts:
    """The texts of a task that are searched. `last_artifact` is its last event that is not a status."""

    submitted: Task
    last_artifact: PackedEvent | None

    def __iter__(self) -> Iterator[str]:
        for message in self.submitted.history[:1]:
            yield text_of(message.parts)
        if self.last_artifact is not None:
            artifact = TaskArtifactUpdateEvent.FromString(self.last_artifact.body).artifact
            if kind_of(artifact.metadata) in _ANSWERS:
                yield text_of(artifact.parts)


def search_words(text: str) -> tuple[str, ...]:
    """The words of a search, for `ConversationQuery`."""
    return tuple(dict.fromkeys(text.casefold().split()))


def has_words(words: Iterable[str], texts: Iterable[str]) -> bool:
    """Whether each of the words is in one of the texts."""
    missing = set(words)
    for text in texts:
        folded = text.casefold()
        missing = {word for word in missing if word not in folded}
        if not missing:
            return True
    return not missing


class PageBuilder:
    """Collects the rows of a page. The rows are given to it in the order of the listing."""

    def __init__(self, query: ConversationQuery) -> None:
        self._query = query
        self._rows: list[ConversationRow] = []
        self._scanned = 0
        self._last: Position | None = None
        self._has_more = False

    @property
    def is_complete(self) -> bool:
        return self._has_more

    def add(self, row: ConversationRow, texts: Iterable[str] = ()) -> None:
        """Add a row if it matches. `texts` are those of the conversation, if the query has words."""
        if len(self._rows) == self._query.limit or self._scanned >= MAX_SCANNED_TASKS:
            self._has_more = True
            return
        if self._query.words:
            self._scanned += row.tasks
        if has_words(self._query.words, chain([row.name or ""], texts)):
            self._rows.append(row)
        self._last = row.position

    def page(self) -> ConversationPage:
        return ConversationPage(self._rows, self._last if self._has_more else None)
