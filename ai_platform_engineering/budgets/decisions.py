"""Decisions about budgets: which limits apply to a principal, which of them is used up or nearly so. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, Self

from ai_platform_engineering.budgets.usage import GROUP, Usage, reset_after
from ai_platform_engineering.identity.principal import Principal

Kind = Literal["tokens", "cost", "runs", "run_seconds", "concurrent_runs"]
Per = Literal["person", "group"]

WARN_PERCENT: Final = 80
MICRO: Final = 1_000_000
"""Costs are counted in millionths of the currency."""
IN_RUN: Final[frozenset[Kind]] = frozenset({"tokens", "cost", "run_seconds"})
"""The limits that end a run which has begun."""
PER_DAY: Final[frozenset[Kind]] = IN_RUN | {"runs"}
_EVERYBODY: Final = "*"


@dataclass(frozen=True, slots=True)
class Price:
    """Per million tokens. Without a price for `cached` tokens, they cost as much as other input."""

    pattern: str
    input: float
    output: float
    cached: float | None = None

    def cost(self, usage: Usage) -> int:
        """In millionths of the currency."""
        cached = self.input if self.cached is None else self.cached
        uncached = max(0, usage.input_tokens - usage.cached_tokens)
        return round(uncached * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a delegated run may use: the rest of the caller's budget when it was delegated. The agent's server enforces
    it, with the prices of the supervisor. `cost` is in millionths of the currency."""

    tokens: int | None = None
    cost: int | None = None
    prices: tuple[Price, ...] = ()

    def is_exhausted(self, models: Mapping[str, Usage]) -> bool:
        if self.tokens is not None and sum(usage.tokens for usage in models.values()) >= self.tokens:
            return True
        if self.cost is None:
            return False
        prices = Budgets(self.prices)
        return sum(prices.priced(model, usage).cost for model, usage in models.items()) >= self.cost

    def facts(self) -> dict[str, Any]:
        """The allowance as a JSON object, for the signed delegation."""
        prices = [[each.pattern, each.input, each.output, each.cached] for each in self.prices]
        return {"tokens": self.tokens, "cost": self.cost, "prices": prices}

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """The allowance that `facts` has written."""
        return cls(facts["tokens"], facts["cost"], tuple(Price(*each) for each in facts["prices"]))


@dataclass(frozen=True, slots=True)
class Limit:
    """`who` has subjects, groups as `group:<name>`, and `*`. With `per` group, the members of a group share it."""

    name: str
    who: frozenset[str]
    per: Per = "person"
    amounts: Mapping[Kind, int] = field(default_factory=dict)
    """Costs in millionths of the currency."""


@dataclass(frozen=True, slots=True)
class AppliedLimit:
    """One amount of a limit, for one person or group."""

    name: str
    scope: str
    kind: Kind
    amount: int

    def used(self, usage: Usage, active: int = 0) -> int:
        match self.kind:
            case "tokens":
                return usage.tokens
            case "cost":
                return usage.cost
            case "runs":
                return usage.runs
            case "run_seconds":
                return usage.run_ms // 1000
            case "concurrent_runs":
                return active


@dataclass(frozen=True, slots=True)
class Budgets:
    """The content of `budgets.yaml`. Without a file, nothing is limited and nothing has a price."""

    prices: tuple[Price, ...] = ()
    limits: tuple[Limit, ...] = ()
    currency: str = ""

    def priced(self, model: str, usage: Usage) -> Usage:
        """The usage of a model with its cost. The first pattern that matches the model decides."""
        reported = usage.calls - usage.unreported
        price = next((each for each in self.prices if fnmatchcase(model.casefold(), each.pattern.casefold())), None)
        if price is None:
            return usage + Usage(unpriced=max(0, reported))
        return usage + Usage(cost=price.cost(usage))

    def applied(self, principal: Principal, groups: frozenset[str]) -> tuple[AppliedLimit, ...]:
        """The limits of the principal: of those per person the first that names it; for each of its groups, of those
        per group the first that names the group."""
        found: list[AppliedLimit] = []
        names = {_EVERYBODY, principal.subject, *(f"{GROUP}{group}" for group in groups)}
        for limit in self.limits:
            if limit.per == "person" and not limit.who.isdisjoint(names):
                found += _amounts(limit, principal.owner)
                break
        for group in sorted(groups):
            scope = f"{GROUP}{group}"
            for limit in self.limits:
                if limit.per == "group" and not limit.who.isdisjoint({_EVERYBODY, scope}):
                    found += _amounts(limit, scope)
                    break
        return tuple(found)


NO_BUDGETS: Final = Budgets()


def _amounts(limit: Limit, scope: str) -> list[AppliedLimit]:
    return [AppliedLimit(limit.name, scope, kind, amount) for kind, amount in limit.amounts.items()]


@dataclass(frozen=True, slots=True)
class Balance:
    """One limit of a person or group, and how much of it is used. `day` is the day that it counts."""

    limit: AppliedLimit
    used: int
    day: str
    currency: str = ""

    @property
    def is_exhausted(self) -> bool:
        return self.used >= self.limit.amount

    @property
    def percent(self) -> int:
        return self.used * 100 // self.limit.amount if self.limit.amount else 100

    def refusal(self) -> str:
        """The sentence for a message that is not accepted."""
        if self.limit.kind == "concurrent_runs":
            return (
                f"{_whose(self.limit.scope).capitalize()} limit of {self._amount(self.limit.amount)} is reached "
                f"({self.used} in progress or waiting). Send the message again when one of them has ended."
            )
        return f"{self._exhausted()} Nothing was started. Send the message again then."

    def ending(self) -> str:
        """The sentence for a run that is ended."""
        return f"The work was stopped. {self._exhausted()}"

    def warning(self) -> str:
        used, amount = self._amount(self.used, unit=False), self._amount(self.limit.amount)
        budget = f"{_whose(self.limit.scope)} daily budget of {amount}"
        return f"{self.percent} % of {budget} are used ({used}). It resets at {reset_after(self.day)}."

    def facts(self) -> dict[str, Any]:
        """The balance as a JSON object, with costs in the currency."""
        scale = MICRO if self.limit.kind == "cost" else 1
        return {
            "name": self.limit.name,
            "scope": self.limit.scope,
            "kind": self.limit.kind,
            "limit": self.limit.amount / scale if scale > 1 else self.limit.amount,
            "used": self.used / scale if scale > 1 else self.used,
            "percent": self.percent,
        }

    def _exhausted(self) -> str:
        used, amount = self._amount(self.used, unit=False), self._amount(self.limit.amount)
        whose = _whose(self.limit.scope).capitalize()
        return f"{whose} daily budget of {amount} is used up ({used} used). It resets at {reset_after(self.day)}."

    def _amount(self, amount: int, *, unit: bool = True) -> str:
        match self.limit.kind:
            case "cost":
                return f"{amount / MICRO:,.{2 if amount >= MICRO else 4}f} {self.currency}".rstrip()
            case "run_seconds":
                text, name = f"{amount:,}", "seconds of run time"
            case "tokens":
                text, name = f"{amount:,}", "tokens"
            case "runs":
                text, name = f"{amount:,}", "run" if amount == 1 else "runs"
            case "concurrent_runs":
                text, name = f"{amount:,}", f"run{'' if amount == 1 else 's'} at the same time"
        return f"{text} {name}" if unit else text


def balances(
    limits: Sequence[AppliedLimit],
    used: Callable[[str], Usage],
    active: Callable[[str], int],
    day: str,
    currency: str = "",
) -> list[Balance]:
    """`used` and `active` give the usage of a scope on that day, and the number of its runs in progress."""
    return [Balance(limit, limit.used(used(limit.scope), active(limit.scope)), day, currency) for limit in limits]


def allowance_of(found: Sequence[Balance], prices: tuple[Price, ...]) -> Allowance | None:
    """What is left for a run of tokens and cost; None if neither is limited."""

    def left(kind: Kind) -> int | None:
        rests = [max(0, each.limit.amount - each.used) for each in found if each.limit.kind == kind]
        return min(rests) if rests else None

    tokens, cost = left("tokens"), left("cost")
    if tokens is None and cost is None:
        return None
    return Allowance(tokens, cost, prices if cost is not None else ())


def first_exhausted(found: Sequence[Balance], kinds: frozenset[Kind] | None = None) -> Balance | None:
    """The first limit that is used up, of these kinds or of any."""
    return next((each for each in found if each.is_exhausted and (kinds is None or each.limit.kind in kinds)), None)


def warning_of(found: Sequence[Balance]) -> str | None:
    """The sentence for the daily limit of which most is used, if that is at least 80 %."""
    near = [each for each in found if each.limit.kind in PER_DAY and each.percent >= WARN_PERCENT]
    return max(near, key=lambda each: each.percent).warning() if near else None


def _whose(scope: str) -> str:
    return f"the group {scope.removeprefix(GROUP)}'s" if scope.startswith(GROUP) else "your"
