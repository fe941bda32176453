"""The ledger of usage: counts what runs use, writes the counts in the background, and enforces budgets.

Counts are collected in memory and written every two seconds, so no request waits for the store and a killed process
loses at most that. Each write is a batch with a key of its own. Repeated, because its result was lost, it adds nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from a2a.types.a2a_pb2 import TaskStatusUpdateEvent

from ai_platform_engineering.budgets.decisions import (
    IN_RUN,
    NO_BUDGETS,
    PER_DAY,
    Allowance,
    AppliedLimit,
    Balance,
    Budgets,
    allowance_of,
    balances,
    first_exhausted,
    warning_of,
)
from ai_platform_engineering.budgets.file import budgets_of
from ai_platform_engineering.budgets.usage import (
    GROUP,
    NOTHING,
    ONE_RUN,
    Usage,
    UsageRow,
    day_of,
    total,
)
from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.event_log.event_log import Entry
from ai_platform_engineering.storage.usage.store import UsageBatch, UsageStore, UsageStoreError
from ai_platform_engineering.storage.usage.stores import usage_store
from ai_platform_engineering.utils.a2a_common.protocol import TERMINAL_STATES, WAITING_STATES
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 2.0
"""Seconds between two writes, and the age at which the counts of other processes are read again."""
_MAX_ACCOUNTS: Final = 10_000
_NOT_IN_PROGRESS: Final = TERMINAL_STATES | WAITING_STATES


_ALLOWANCE_USED: Final = "The work was stopped. The daily budget of the person who asked is used up."

_Result = TypeVar("_Result")


class BudgetExhaustedError(ReadableError):
    """A budget is used up. The text names it, the amount used, and when it resets."""

    code = "budget"


@dataclass(frozen=True, slots=True)
class Account:
    """Whose usage is counted: the person and its groups, and the limits that apply."""

    scopes: tuple[str, ...]
    limits: tuple[AppliedLimit, ...] = ()


class RunMeter:
    """Counts what one run uses. A delegated run reports it to its supervisor, which counts it for the caller."""

    def __init__(
        self, ledger: UsageLedger, account: Account | None, *, enforced: bool, allowance: Allowance | None = None
    ) -> None:
        """`account` is None for a delegated run, which has an `allowance` if the budget of its caller is limited.
        `enforced`: the run ends when a budget is used up."""
        self._ledger = ledger
        self.account = account
        self._enforced = enforced and account is not None and bool(account.limits)
        self._allowance = allowance
        self._models: dict[str, Usage] = {}
        self._counted_until = ledger.monotonic()

    async def check(self) -> None:
        """Raise if a budget is used up, so that the model must not be called."""
        if self._enforced and self.account is not None:
            await self._ledger.check_running(self.account)
        if self._allowance is not None and self._allowance.is_exhausted(self._models):
            raise BudgetExhaustedError(_ALLOWANCE_USED)

    def add(self, model: str, usage: Usage) -> None:
        if self.account is None:
            self._models[model] = self._models.get(model, NOTHING) + usage
        else:
            self._ledger.add(self.account, {model: usage})

    def add_report(self, key: str, models: Mapping[str, Usage]) -> None:
        """Count what a remote agent has reported. A report with the same key is counted once."""
        if self.account is None:
            for model, usage in models.items():
                self.add(model, usage)
        elif models:
            self._ledger.add(self.account, models, key)

    def allowance(self) -> dict[str, Any] | None:
        """What a run that this one delegates may use, as a JSON object; None if that is not limited."""
        if not self._enforced or self.account is None:
            return None
        found = self._ledger.allowance(self.account)
        return None if found is None else found.facts()

    def report(self) -> dict[str, Any]:
        """The usage by model, for the supervisor of a delegated run."""
        return {model: usage.reported() for model, usage in self._models.items()}

    def count_time(self) -> None:
        """Count the time since the last call. The ledger does it with every write."""
        now = self._ledger.monotonic()
        passed, self._counted_until = now - self._counted_until, now
        if self.account is not None and passed > 0:
            self._ledger.add(self.account, {"": Usage(run_ms=round(passed * 1000))})

    async def seconds_left(self) -> float | None:
        """The time that the run may take; None if it is not limited."""
        if not self._enforced or self.account is None:
            return None
        found = [each for each in await self._ledger.balances(self.account) if each.limit.kind == "run_seconds"]
        return max(0.0, min(each.limit.amount - each.used for each in found)) if found else None

    async def time_exhausted(self) -> BudgetExhaustedError:
        """The error of a run that has used its time."""
        if self.account is not None:
            self.count_time()
            for each in await self._ledger.balances(self.account):
                if each.limit.kind == "run_seconds":
                    return BudgetExhaustedError(each.ending())
        return BudgetExhaustedError("The work was stopped. Its run time is used up.")

    def warning(self) -> str | None:
        """The sentence for people whose budget is nearly used up."""
        return self._ledger.warning(self.account) if self.account is not None else None


class UsageLedger:
    """One per server. Counts inside `opened`; the rest is written at its end."""

    def __init__(
        self,
        store: UsageStore,
        budgets: Budgets = NO_BUDGETS,
        groups_of: Callable[[Principal], frozenset[str]] = lambda principal: principal.groups,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self.budgets = budgets
        self.monotonic = monotonic
        self._groups_of = groups_of
        self._clock = clock
        self._accounts: dict[Principal, Account] = {}
        self._pending: dict[tuple[str, str, str], Usage] = {}
        self._reports: list[UsageBatch] = []
        self._unwritten: list[UsageBatch] = []
        """Taken from the pending counts, and not known to be stored."""
        self._known: dict[tuple[str, str], Usage] = {}
        """By day and scope: the usage of scopes with limits, with what is not stored yet."""
        self._read_at = float("-inf")
        self._meters: dict[str, RunMeter] = {}
        self._flushing = asyncio.Lock()
        self._failed = False
        self._endings: set[asyncio.Future[None]] = set()
        self._limits_concurrency = any("concurrent_runs" in limit.amounts for limit in budgets.limits)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        writing = asyncio.create_task(self._write_regularly(), name="usage-ledger")
        try:
            yield
        finally:
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing
            await asyncio.gather(*self._endings)
            await self.flush()
            if self._pending or self._reports:  # held back while the store failed
                await self.flush()
            await asyncio.to_thread(self.store.close)

    def account(self, principal: Principal) -> Account:
        if (found := self._accounts.get(principal)) is None:
            groups = self._groups_of(principal)
            scopes = (principal.owner, *(f"{GROUP}{group}" for group in sorted(groups)))
            if len(self._accounts) >= _MAX_ACCOUNTS:
                self._accounts.clear()
            found = self._accounts[principal] = Account(scopes, self.budgets.applied(principal, groups))
        return found

    @asynccontextmanager
    async def admitted(self, principal: Principal, task_id: str) -> AsyncIterator[None]:
        """Count the run of a new task. Raises `BudgetExhaustedError` if a budget is used up. If the block raises, the
        run is not counted."""
        account = self.account(principal)
        if account.limits and (found := first_exhausted(await self.balances(account), PER_DAY)) is not None:
            raise BudgetExhaustedError(found.refusal())
        # Counted before anything is awaited: the next message sees it.
        self.add(account, {"": ONE_RUN})
        try:
            await self._activate(account, task_id)
            yield
        except BaseException:
            self.add(account, {"": Usage(runs=-1)})
            await self._deactivate(task_id)
            raise

    @asynccontextmanager
    async def metered(self, request: RequestContext, *, answers_form: bool) -> AsyncIterator[RunMeter]:
        """The meter of a run. The answer to a form may always finish the work that waits for it."""
        account = None if request.delegated else self.account(request.caller)
        meter = RunMeter(self, account, enforced=not answers_form, allowance=request.allowance)
        if account is not None:
            # Again: the task may have waited for a person, or may come from another process.
            await self._activate(account, request.task_id, enforced=False)
            self._meters[request.task_id] = meter
        try:
            yield meter
        finally:
            self._meters.pop(request.task_id, None)
            meter.count_time()

    def observe_log(self, task_id: str, entries: Sequence[Entry]) -> None:
        """An observer of the event log: a task that has ended or waits is no longer in progress."""
        if not self._limits_concurrency:
            return
        if any(
            isinstance(entry.event, TaskStatusUpdateEvent) and entry.event.status.state in _NOT_IN_PROGRESS
            for entry in entries
        ):
            ending = asyncio.ensure_future(self._deactivate(task_id))
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)

    def add(self, account: Account, models: Mapping[str, Usage], key: str | None = None) -> None:
        day = day_of(self._clock())
        priced = {model: self.budgets.priced(model, usage) if model else usage for model, usage in models.items()}
        if key is not None:
            rows = [UsageRow(day, scope, model, usage) for scope in account.scopes for model, usage in priced.items()]
            self._reports.append(UsageBatch(key, rows))
        for scope in account.scopes:
            if key is None:
                for model, usage in priced.items():
                    place = (day, scope, model)
                    self._pending[place] = self._pending.get(place, NOTHING) + usage
            if (day, scope) in self._known:
                self._known[day, scope] += total(priced.values())

    async def check_running(self, account: Account) -> None:
        if any(limit.kind == "run_seconds" for limit in account.limits):
            for meter in [*self._meters.values()]:
                if meter.account == account:
                    meter.count_time()
        if (found := first_exhausted(await self.balances(account), IN_RUN)) is not None:
            raise BudgetExhaustedError(found.ending())

    async def balances(self, account: Account, active: Mapping[str, int] | None = None) -> list[Balance]:
        """The limits of an account and what is used of them. If the counts cannot be read, nothing is used."""
        day = day_of(self._clock())
        scopes = {limit.scope for limit in account.limits}
        is_old = self.store.is_shared and self.monotonic() - self._read_at > FLUSH_SECONDS
        if is_old or any((day, scope) not in self._known for scope in scopes):
            await self.flush(scopes)
        return self._balances(account, day, active or {})

    def warning(self, account: Account) -> str | None:
        return warning_of(self._balances(account, day_of(self._clock()), {})) if account.limits else None

    def allowance(self, account: Account) -> Allowance | None:
        return allowance_of(self._balances(account, day_of(self._clock()), {}), self.budgets.prices)

    def _balances(self, account: Account, day: str, active: Mapping[str, int]) -> list[Balance]:
        return balances(
            account.limits,
            lambda scope: self._known.get((day, scope), NOTHING),
            lambda scope: active.get(scope, 0),
            day,
            self.budgets.currency,
        )

    async def flush(self, scopes: Collection[str] = ()) -> None:
        """Write the counts, and read those of the scopes with limits."""
        async with self._flushing:
            for meter in [*self._meters.values()]:
                meter.count_time()
            day = day_of(self._clock())
            if not self._unwritten:  # otherwise more is added to the pending counts until the store works again
                self._take()
            self._known = {place: usage for place, usage in self._known.items() if place[0] == day}
            wanted = {scope for _, scope in self._known} | {*scopes}
            if not self._unwritten and not wanted:
                return
            try:
                totals = await asyncio.to_thread(self._store_and_read, self._unwritten, day, wanted)
            except UsageStoreError as error:
                if not self._failed:
                    logger.error("%s Usage is counted in memory meanwhile.", error)
                self._failed = True
                return
            if self._failed:
                logger.info("Usage is stored again.")
            self._failed = False
            self._unwritten = []
            self._read_at = self.monotonic()
            for scope in wanted:
                self._known[day, scope] = totals.get(scope, NOTHING) + self._not_stored(day, scope)

    def _store_and_read(self, batches: Sequence[UsageBatch], day: str, scopes: Collection[str]) -> Mapping[str, Usage]:
        if batches:
            self.store.add(batches)
        return self.store.totals(day, scopes) if scopes else {}

    def _take(self) -> None:
        rows = [UsageRow(*place, usage) for place, usage in self._pending.items() if usage != NOTHING]
        self._pending = {}
        self._unwritten = [*([UsageBatch(uuid.uuid4().hex, rows)] if rows else ()), *self._reports]
        self._reports = []

    def _not_stored(self, day: str, scope: str) -> Usage:
        """What was added while the counts were written and read."""
        pending = (usage for place, usage in self._pending.items() if place[:2] == (day, scope))
        reported = (row.usage for batch in self._reports for row in batch.rows if (row.day, row.scope) == (day, scope))
        return total(pending) + total(reported)

    async def _write_regularly(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            if self._pending or self._reports or self._unwritten or self._meters:
                await self.flush()

    async def _activate(self, account: Account, task_id: str, *, enforced: bool = True) -> None:
        limits = {each.scope: each.amount for each in account.limits if each.kind == "concurrent_runs"}
        if not limits:
            return
        wanted: dict[str, int | None] = {scope: amount if enforced else None for scope, amount in limits.items()}
        try:
            full = await self._called(self.store.activate, task_id, wanted)
        except UsageStoreError as error:
            logger.error("%s The number of runs at the same time is not limited meanwhile.", error)
            return
        if full:
            found = first_exhausted(
                [each for each in await self.balances(account, full) if each.limit.kind == "concurrent_runs"]
            )
            if found is not None:
                raise BudgetExhaustedError(found.refusal())

    async def _called(self, call: Callable[..., _Result], *arguments: Any) -> _Result:
        """The result of a call about runs in progress. A store of this process alone has them in memory."""
        return await asyncio.to_thread(call, *arguments) if self.store.is_shared else call(*arguments)

    async def _deactivate(self, task_id: str) -> None:
        if self._limits_concurrency:
            try:
                await self._called(self.store.deactivate, task_id)
            except UsageStoreError as error:
                logger.error("%s The end of a run was not counted.", error)


def usage_ledger(
    settings: Settings,
    agent: str = SUPERVISOR,
    groups_of: Callable[[Principal], frozenset[str]] = lambda principal: principal.groups,
) -> UsageLedger | None:
    """The ledger of the server of `agent`; None with USAGE=off. Raises `SettingsError` if `budgets.yaml` is wrong."""
    budgets = budgets_of(settings)
    return UsageLedger(usage_store(settings, agent), budgets, groups_of) if settings.usage else None
