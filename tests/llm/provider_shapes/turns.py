"""A model's turn, before a provider's wire format is chosen for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

End = Literal["whole", "length", "filter", "refusal", "malformed", "broken"]
_ids = count(1)


@dataclass(frozen=True)
class WireCall:
    """A tool call; `arguments` is the text that the model wrote."""

    name: str
    arguments: str
    id: str = field(default_factory=lambda: f"toolu_{next(_ids):04}")

    @staticmethod
    def of(tool: str, **arguments: Any) -> WireCall:
        return WireCall(tool, json.dumps(arguments))

    @property
    def pieces(self) -> Sequence[str]:
        middle = len(self.arguments) // 2
        return [piece for piece in (self.arguments[:middle], self.arguments[middle:]) if piece]


@dataclass(frozen=True)
class WireTurn:
    text: Sequence[str] = ()
    calls: Sequence[WireCall] = ()
    thinking: str = ""
    refusal: str = ""
    end: End = "whole"


@dataclass(frozen=True)
class Exchange:
    """A call in a request's history, and its result, as the provider is shown them."""

    call_id: str
    name: str
    arguments: Any
    result: str | None = None


@dataclass(frozen=True)
class WireFormat:
    """One provider: what selects it, how it answers, and how to read what it is sent."""

    name: str
    package: str
    settings: Mapping[str, str]
    address_variable: str
    """The environment variable with the server's address that the provider's SDK, or the product, reads."""
    path: str
    content_type: str
    encode: Callable[[WireTurn], bytes]
    history: Callable[[Mapping[str, Any]], list[Exchange]]
    """The calls of a request in order. Each must be answered after the turn that made it, and before the next."""
    whole: Callable[[bytes], bytes] | None = None
    """The answer to a request without streaming, made of the streamed one."""


def sse(event: Mapping[str, Any], *, named: bool = False) -> Iterator[str]:
    if named:
        yield f"event: {event['type']}\n"
    yield f"data: {json.dumps(event)}\n\n"


def paired(calls: Sequence[Exchange], results: Mapping[str, str]) -> list[Exchange]:
    """The calls of one turn with their results; fails as a provider does if they do not fit."""
    ids = [call.call_id for call in calls]
    assert all(ids), f"a call without an id: {calls}"
    assert len({*ids}) == len(ids), f"two calls with one id: {ids}"
    assert {*ids} == {*results}, f"calls {ids} have results {[*results]}"
    assert all(call.name for call in calls), f"a call without a name: {calls}"
    return [Exchange(call.call_id, call.name, call.arguments, results[call.call_id]) for call in calls]
