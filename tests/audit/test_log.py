"""The audit log over a store that fails and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Event

import pytest

from ai_platform_engineering.audit.access import AccessAudit
from ai_platform_engineering.audit.log import AuditLog, AuditUnavailableError
from ai_platform_engineering.audit.record import AuditFact, Head
from ai_platform_engineering.identity.principal import KEY_HOLDER


class Store:
    def __init__(self) -> None:
        self.problem: str | None = None
        self.facts: list[AuditFact] = []
        self.stored = Event()

    def append(self, facts: Sequence[AuditFact]) -> Head:
        if self.problem is not None:
            raise AuditUnavailableError(self.problem)
        self.facts += facts
        self.stored.set()
        return Head(len(self.facts), "hash")

    def prune(self) -> None:
        pass

    def close(self) -> None:
        pass

    def shown(self) -> list[tuple[str, str, int]]:
        return [(fact.kind, fact.target, fact.count) for fact in self.facts]


def fact(target: str) -> AuditFact:
    return AuditFact("tool_call_started", target=target)


async def test_pending_facts_are_written_in_order_before_the_close() -> None:
    log = AuditLog(store := Store())
    async with log.opened():
        for number in range(50):
            log.record(fact(str(number)))
        await log.record_durably(fact("durable"))
        assert [each.target for each in store.facts] == [*map(str, range(50)), "durable"]
        log.record(fact("last"))
    assert store.facts[-1].target == "last"
    assert log.state().seq == 52


async def test_facts_are_kept_while_the_store_fails_and_lost_ones_are_counted() -> None:
    store = Store()
    log = AuditLog(store, max_pending=3, retry_seconds=0.01)
    store.problem = "The disk is full."
    async with log.opened():
        await log.record_durably(fact("a"))
        assert log.problem == "The disk is full."
        for target in "bcde":
            await log.record_durably(fact(target))
        assert log.state().pending == 3
        assert log.state().lost == 2
        store.problem = None
        assert await asyncio.to_thread(store.stored.wait, 30)
    kept = [("tool_call_started", target, 0) for target in "abc"]
    assert store.shown() == [*kept, ("entries_lost", "", 2)]


async def test_a_required_fact_that_cannot_be_stored_is_recorded_as_denied() -> None:
    store = Store()
    log = AuditLog(store, required=True, retry_seconds=60)
    store.problem = "The disk is full."
    async with log.opened():
        for target in "ab":
            with pytest.raises(AuditUnavailableError, match="disk is full"):
                await log.record_durably(fact(target))
        store.problem = None
        await log.record_durably(fact("c"))
    assert store.shown() == [("denied", "a", 0), ("denied", "b", 0), ("tool_call_started", "c", 0)]


class Facts(list[AuditFact]):
    """An audit in memory."""

    def record(self, fact: AuditFact) -> None:
        self.append(fact)

    async def record_durably(self, fact: AuditFact) -> None:
        self.append(fact)


def test_refusals_are_limited_per_address_and_in_all() -> None:
    seconds = 0.0
    access = AccessAudit(facts := Facts(), lambda: seconds)
    for _ in range(1000):
        access.refused("10.0.0.1", "wrong")
    assert [each.count for each in facts] == [1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256, 512]
    for number in range(20_000):
        access.refused(f"2001:db8::{number:x}", "wrong")
    assert len(facts) < 1010
    seconds = 3601.0
    access.refused("10.0.0.1", "wrong")
    assert (facts[-1].address, facts[-1].count) == ("10.0.0.1", 1)


def test_the_first_use_of_a_key_from_an_address_is_recorded_once_a_day() -> None:
    seconds = 0.0
    access = AccessAudit(facts := Facts(), lambda: seconds)
    for address in ("10.0.0.1", "10.0.0.1", "10.0.0.2"):
        access.used(KEY_HOLDER, address)
    assert [each.address for each in facts] == ["10.0.0.1", "10.0.0.2"]
    seconds = 86_401.0
    access.used(KEY_HOLDER, "10.0.0.1")
    assert len(facts) == 3
