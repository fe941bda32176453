"""The file `budgets.yaml`: schema, validation, and the prices and limits in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ai_platform_engineering.budgets.decisions import MICRO, NO_BUDGETS, Budgets, Kind, Limit, Per, Price
from ai_platform_engineering.budgets.usage import GROUP
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.utils.yaml_files import read_keys, validation_sentences

_Amount = Annotated[int, Field(ge=0, le=10**15)]
_Money = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]


class _PriceModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    input: _Money
    output: _Money
    cached: _Money | None = None


class _DayModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tokens: _Amount | None = None
    cost: _Money | None = None
    runs: _Amount | None = None
    run_seconds: _Amount | None = None

    def amounts(self) -> dict[Kind, int]:
        cost = None if self.cost is None else round(self.cost * MICRO)
        found: dict[Kind, int | None] = {
            "tokens": self.tokens,
            "cost": cost,
            "runs": self.runs,
            "run_seconds": self.run_seconds,
        }
        return {kind: amount for kind, amount in found.items() if amount is not None}


class _LimitModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = ""
    who: Annotated[tuple[str, ...], Field(min_length=1)]
    per: Per = "person"
    day: _DayModel = Field(default_factory=_DayModel)
    concurrent_runs: Annotated[int, Field(ge=1, le=10**6)] | None = None

    @model_validator(mode="after")
    def _check(self) -> _LimitModel:
        if not self.day.amounts() and self.concurrent_runs is None:
            raise ValueError(f"must have concurrent_runs, or day with {', '.join(_DayModel.model_fields)}")
        people = [name for name in self.who if name != "*" and not name.startswith(GROUP)]
        if self.per == "group" and people:
            raise ValueError(f"per: group is for groups: {people[0]!r} must be group:<name> or *")
        return self

    def limit(self, number: int) -> Limit:
        amounts = self.day.amounts()
        if self.concurrent_runs is not None:
            amounts["concurrent_runs"] = self.concurrent_runs
        return Limit(self.name or f"limit {number}", frozenset(self.who), self.per, amounts)


class _FileModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: Literal[1]
    currency: Annotated[str, Field(max_length=20)] = ""
    prices: dict[str, _PriceModel] = Field(default_factory=dict)
    limits: tuple[_LimitModel, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> _FileModel:
        if not self.prices and any(limit.day.cost is not None for limit in self.limits):
            raise ValueError("a limit of cost needs prices")
        return self


_KEYS = {
    (): _FileModel.model_fields,
    ("limits",): _LimitModel.model_fields,
    ("limits", "day"): _DayModel.model_fields,
    ("prices",): _PriceModel.model_fields,
}


def read_budgets(path: Path) -> Budgets:
    """Raises `SettingsError` with the place in the file and the allowed values."""
    content = read_keys(path, "file of budgets", _FileModel.model_fields, SettingsError)
    try:
        found = _FileModel.model_validate(content)
    except ValidationError as error:
        raise SettingsError(*validation_sentences(path, error, _allowed, {"limits": "limit"})) from None
    prices = (Price(pattern, each.input, each.output, each.cached) for pattern, each in found.prices.items())
    limits = (limit.limit(number) for number, limit in enumerate(found.limits, 1))
    return Budgets(tuple(prices), tuple(limits), found.currency)


def budgets_of(settings: Settings) -> Budgets:
    if settings.budgets_file is None:
        return NO_BUDGETS
    if not settings.usage:
        raise SettingsError("BUDGETS_FILE needs the counts of usage: remove USAGE=off, or leave BUDGETS_FILE out.")
    return read_budgets(settings.budgets_file)


def _allowed(place: Sequence[str | int]) -> Iterable[str]:
    if place[:1] == ("prices",):
        return _KEYS["prices",]
    return _KEYS.get(tuple(part for part in place if isinstance(part, str)), _FileModel.model_fields)
