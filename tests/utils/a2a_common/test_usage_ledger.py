"""The ledger of usage: batches, recovery, the change of day, and several processes that share a database."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from ai_platform_engineering.budgets.decisions import Budgets, Kind, Limit
from ai_platform_engineering.budgets.usage import Usage
from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.storage.usage.file import UsageFile
from ai_platform_engineering.storage.usage.store import UsageBatch, UsageStore, UsageStoreError
from ai_platform_engineering.storage.usage.stores import usage_store
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.a2a_common.server.usage_ledger import BudgetExhaustedError, UsageLedger

pytest_plugins = ("tests.services.fixtures",)

JANE = Principal("token", "jane", frozenset({"sre"}))
JOE = Principal("token", "joe", frozenset({"sre"}))
TURN = Usage(calls=1, input_tokens=10)


@dataclass
class Clock:
    seconds: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.seconds


def limited(kind: Kind, amount: int, per: str = "person") -> Budgets:
    return Budgets(limits=(Limit("a", frozenset({"*"}), "group" if per == "group" else "person", {kind: amount}),))


async def begun(ledger: UsageLedger, task_id: str, who: Principal = JANE) -> bool:
    try:
        async with ledger.admitted(who, task_id):
            return True
    except BudgetExhaustedError:
        return False


def request(task_id: str = "t") -> RequestContext:
    return RequestContext("c", task_id, "trace", caller=JANE)


async def test_a_report_that_comes_again_after_a_kill_is_counted_once(tmp_path: Path) -> None:
    for process in range(2):
        store, clock = UsageFile(tmp_path / "usage.db"), Clock()
        ledger = UsageLedger(store, limited("tokens", 100), clock=clock)
        async with ledger.metered(request(), answers_form=False) as meter:
            meter.add_report("delegation-1", {"gpt": TURN})
            await meter.check()
            await ledger.flush()  # then the process is killed: nothing more is written
        [found] = await ledger.balances(ledger.account(JANE))
        assert found.used == 10, process
        assert store.totals("2027-01-15", ["token:jane", "group:sre"]).keys() == {"token:jane", "group:sre"}
        store.close()


class FailingStore(UsageFile):
    """A disk that fails before or after it has stored a batch."""

    failure: str | None = None

    def add(self, batches: Sequence[UsageBatch]) -> None:
        if self.failure != "before":
            super().add(batches)
        if self.failure is not None:
            raise UsageStoreError("The disk is full.")


@pytest.mark.parametrize("failure", ["before", "after"])
async def test_a_store_that_fails_loses_nothing_and_counts_nothing_twice(
    tmp_path: Path, failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = FailingStore(tmp_path / "usage.db")
    ledger = UsageLedger(store, clock=Clock())
    account = ledger.account(JANE)
    async with ledger.opened():
        store.failure = failure
        for _ in range(3):
            ledger.add(account, {"gpt": TURN})
            await ledger.flush()
        assert caplog.text.count("The disk is full.") == 1
        store.failure = None
        await ledger.flush()
    assert store.totals("2027-01-15", ["token:jane"]) == {"token:jane": Usage(calls=3, unpriced=3, input_tokens=30)}
    store.close()


async def test_a_new_day_begins_with_a_whole_budget() -> None:
    clock = Clock()
    ledger = UsageLedger(UsageFile(None), limited("runs", 1), clock=clock)
    assert [await begun(ledger, "a"), await begun(ledger, "b")] == [True, False]
    clock.seconds += 86_400
    assert [await begun(ledger, "c"), await begun(ledger, "d")] == [True, False]


async def test_messages_that_come_together_do_not_exceed_the_runs_of_a_day() -> None:
    ledger = UsageLedger(UsageFile(None), limited("runs", 2))
    assert sum(await asyncio.gather(*(begun(ledger, str(number)) for number in range(5)))) == 2


async def test_a_message_that_is_not_stored_is_no_run() -> None:
    ledger = UsageLedger(UsageFile(None), limited("concurrent_runs", 1))
    with pytest.raises(OSError, match="full"):
        async with ledger.admitted(JANE, "a"):
            raise OSError("full")
    assert await begun(ledger, "b")
    await ledger.flush()
    assert ledger.store.rows("2026-01-01", ["token:jane"])[-1].usage == Usage(runs=1)


def shared(database: str) -> UsageStore:
    return usage_store(load_settings({"EVENT_LOG": "postgres", "EVENT_LOG_POSTGRES_DSN": database}, None))


async def test_replicas_share_counts_and_runs_in_progress(database: str) -> None:
    budgets = Budgets(
        limits=(Limit("a", frozenset({"*"}), "group", {"runs": 4, "concurrent_runs": 3, "tokens": 10_000}),)
    )
    ticks = Clock()
    one, two = (UsageLedger(shared(database), budgets, monotonic=ticks) for _ in range(2))
    async with one.opened(), two.opened():
        assert [await begun(one, "a"), await begun(two, "b", JOE), await begun(one, "c")] == [True] * 3
        assert not await begun(two, "d", JOE), "three runs are in progress at both"
        await asyncio.to_thread(two.store.deactivate, "b")
        one.add(one.account(JANE), {"gpt": TURN})
        await one.flush()
        ticks.seconds += 3
        assert await begun(two, "d", JOE)
        found = {each.limit.kind: each.used for each in await two.balances(two.account(JOE))}
        assert (found["runs"], found["tokens"]) == (4, 10)
        await two.flush()
        ticks.seconds += 3
        assert not await begun(one, "e"), "four runs were begun at both"
