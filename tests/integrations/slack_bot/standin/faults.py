"""Things that go wrong on demand between a bot and Slack."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from tests.integrations.slack_bot.standin.calls import ApiCall


@dataclass(frozen=True, slots=True)
class TooMany:
    """429: nothing is done, and the method may not be called for so many seconds."""

    seconds: int = 1
    done: Literal[False] = field(default=False, init=False)


@dataclass(frozen=True, slots=True)
class Broken:
    """A page of an HTTP server in trouble, `done` or not."""

    status: int = 500
    done: bool = False


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer ever, `done` or not."""

    done: bool = False


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection breaks before the call is done, or after."""

    done: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """`ok: false`, whatever was asked; `internal_error` and the like may have been `done` all the same."""

    error: str
    done: bool = False


Fault = TooMany | Broken | Silence | Lost | Refusal


def _none(_call: ApiCall) -> Fault | None:
    return None


@dataclass(slots=True)
class Faults:
    """Asked once for every call: first what was said of the next calls, then what holds always, then `choose`."""

    choose: Callable[[ApiCall], Fault | None] = _none
    _next: dict[str, deque[Fault | None]] = field(default_factory=lambda: defaultdict(deque))
    _always: dict[str, Fault] = field(default_factory=dict)

    def next(self, method: str, *faults: Fault | None) -> None:
        """What the next calls of the method meet with, one after another; None is one that goes well."""
        self._next[method].extend(faults)

    @contextmanager
    def always(self, method: str, fault: Fault) -> Iterator[None]:
        """What every call of the method meets with, meanwhile."""
        self._always[method] = fault
        try:
            yield
        finally:
            del self._always[method]

    def of(self, call: ApiCall) -> Fault | None:
        if waiting := self._next[call.method]:
            return waiting.popleft()
        return self._always.get(call.method) or self.choose(call)
