"""Which tests start processes or servers, read from their code.

A test starts one if it, a fixture of it, or a helper in `tests` that these name uses one of `STARTERS`. Processes that
the product starts by itself are not seen: such a test has the marker `process` in its module. A server that answers
without uvicorn's main loop (`tests/utils/a2a_common/serving.py`, `tests/integrations/slack_bot/standin`) does not
count: it starts and stops within milliseconds.
"""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import subprocess
from collections.abc import Iterator, Sequence
from http.server import ThreadingHTTPServer
from types import CodeType, FunctionType, MethodType
from typing import Any, Literal, TypeVar

import pytest

from tests.servers import serving

T = TypeVar("T")
Cost = Literal["slow", "process", "quick"]

STARTERS = (
    subprocess,
    subprocess.run,
    subprocess.Popen,
    multiprocessing,
    asyncio.create_subprocess_exec,
    asyncio.create_subprocess_shell,
    inspect.unwrap(serving),
    ThreadingHTTPServer,
)
ATTRIBUTES = {"create_subprocess_exec", "create_subprocess_shell", "executable", "start_server"}
# Named, because a run of one file would otherwise import the whole product.
SUPERVISOR = ("ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main", "create_app")
OURS = ("tests", "integration")


class ProcessStarts:
    """Whether functions and classes start processes or servers; each is looked at once."""

    def __init__(self, node: pytest.Node) -> None:
        """`node` is where fixtures are looked up that a function asks for with `getfixturevalue`."""
        self._node = node
        self._known: dict[int, bool] = {}
        self._kept: list[Any] = []

    def of_item(self, item: pytest.Item) -> bool:
        if not isinstance(item, pytest.Function):
            return False
        # All cases of a function share this.
        fixtures = item._fixtureinfo
        known = self._known.get(id(fixtures))
        if known is None:
            definitions = [definition for found in fixtures.name2fixturedefs.values() for definition in found]
            functions = [item.function, *(definition.func for definition in definitions)]
            self._kept.append(fixtures)
            self._node = item
            known = self._known[id(fixtures)] = any(map(self.of, functions))
        return known

    def of(self, thing: Any) -> bool:
        seen: dict[int, Any] = {}
        found = self._reaches_a_start(thing, seen)
        if not found:
            # Only now: a function of a cycle is looked at before all that it uses is known.
            self._known |= dict.fromkeys(seen, False)
        self._kept.extend(seen.values())
        return found

    def _reaches_a_start(self, thing: Any, seen: dict[int, Any]) -> bool:
        if isinstance(thing, MethodType):
            thing = thing.__func__
        if isinstance(thing, FunctionType):
            thing = inspect.unwrap(thing)
        if (known := self._known.get(id(thing))) is not None:
            return known
        if id(thing) in seen:
            return False
        seen[id(thing)] = thing
        found = self._looked_at(thing, seen)
        if found:
            self._known[id(thing)] = True
        return found

    def _looked_at(self, thing: Any, seen: dict[int, Any]) -> bool:
        module = str(getattr(thing, "__module__", ""))
        if any(thing is starter for starter in STARTERS) or (module, getattr(thing, "__name__", "")) == SUPERVISOR:
            return True
        if module.partition(".")[0] not in OURS:
            return False
        if isinstance(thing, FunctionType):
            names = set(_names(thing.__code__))
            used = [thing.__globals__[name] for name in names if name in thing.__globals__]
            if "getfixturevalue" in names:
                find = self._node.session._fixturemanager.getfixturedefs
                found = (find(name, self._node) or () for name in _strings(thing.__code__))
                used += [definition.func for definitions in found for definition in definitions]
            return bool(names & ATTRIBUTES) or any(self._reaches_a_start(one, seen) for one in used)
        if isinstance(thing, type):
            return any(self._reaches_a_start(one, seen) for one in vars(thing).values())
        return False


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _strings(code: CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, CodeType):
            yield from _strings(constant)


def longest_first(items: Sequence[T], costs: Sequence[Cost], workers: int) -> list[T]:
    """The items in an order in which every worker begins with its share of the slow ones, goes on with its share of
    those that start processes, and ends with quick ones, which a worker that is done can take from another.

    xdist's `worksteal` cuts the list into one part per worker. Without this order, one worker would get all tests of
    the web page, for example, which are collected last. Tests with processes stay beside their neighbours, because
    they share the fixtures of their module.
    """
    by_cost: dict[Cost, list[T]] = {"slow": [], "process": [], "quick": []}
    for item, cost in zip(items, costs, strict=True):
        by_cost[cost].append(item)
    slow, processes, quick = by_cost.values()
    # The benchmark's rows take longest, and are collected last.
    slow.reverse()
    ordered: list[T] = []
    for number in range(workers):
        parts_left = workers - number
        share = len(processes) // parts_left
        part = [*slow[number::workers], *processes[:share]]
        del processes[:share]
        rest = max(0, (len(items) - len(ordered)) // parts_left - len(part))
        ordered += [*part, *quick[:rest]]
        del quick[:rest]
    return [*ordered, *quick]
