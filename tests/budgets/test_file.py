"""`budgets.yaml` and its sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai_platform_engineering.budgets.decisions import Limit, Price
from ai_platform_engineering.budgets.file import budgets_of, read_budgets
from ai_platform_engineering.settings import SettingsError, load_settings

FILE = """
version: 1
currency: EUR
prices:
  gpt-*: {input: 2.5, output: 10, cached: 1.25}
limits:
  - name: default
    who: ["*"]
    day: {tokens: 1000, cost: 0.5, runs: 20, run_seconds: 600}
    concurrent_runs: 2
  - who: ["group:sre"]
    per: group
    day: {cost: 100}
"""


def test_a_file_becomes_prices_and_limits(tmp_path: Path) -> None:
    path = tmp_path / "budgets.yaml"
    path.write_text(FILE)
    found = read_budgets(path)
    assert found.currency == "EUR"
    assert found.prices == (Price("gpt-*", 2.5, 10, 1.25),)
    amounts = {"tokens": 1000, "cost": 500_000, "runs": 20, "run_seconds": 600, "concurrent_runs": 2}
    assert found.limits == (
        Limit("default", frozenset({"*"}), "person", amounts),
        Limit("limit 2", frozenset({"group:sre"}), "group", {"cost": 100_000_000}),
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("version: 2", "version must be 1."),
        ("version: 1\nlimit: []", "limit is not a key here; allowed are version, currency, prices, limits."),
        (
            "version: 1\nlimits: [{who: [a], day: {token: 1}}]",
            "limit 1, day: token is not a key here; allowed are tokens, cost, runs, run_seconds.",
        ),
        ("version: 1\nlimits: [{who: [a]}]", "limit 1: must have concurrent_runs, or day with"),
        ("version: 1\nlimits: [{who: [a], per: group, concurrent_runs: 1}]", "'a' must be group:<name> or *"),
        ("version: 1\nlimits: [{who: [a], day: {cost: 1}}]", "a limit of cost needs prices."),
        ("version: 1\nprices: {gpt: {input: 1}}", "prices, gpt, output is missing."),
        ("version: 1\nprices: {gpt: {input: 1, output: -1}}", "greater than or equal to 0."),
    ],
)
def test_a_wrong_file_is_named_with_the_place(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "budgets.yaml"
    path.write_text(content)
    with pytest.raises(SettingsError) as raised:
        read_budgets(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert sentence in str(raised.value)


def test_budgets_need_the_counts(tmp_path: Path) -> None:
    path = tmp_path / "budgets.yaml"
    path.write_text(FILE)
    with pytest.raises(SettingsError, match="remove USAGE=off"):
        budgets_of(load_settings({"BUDGETS_FILE": str(path), "USAGE": "false"}, None))
