"""The pure decisions about budgets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.budgets.decisions import (
    IN_RUN,
    AppliedLimit,
    Budgets,
    Kind,
    Limit,
    Price,
    balances,
    first_exhausted,
    warning_of,
)
from ai_platform_engineering.budgets.usage import NOTHING, Usage, read_report, total
from ai_platform_engineering.identity.principal import Principal

DAY = "2026-02-28"
KINDS: list[Kind] = ["tokens", "cost", "runs", "run_seconds", "concurrent_runs"]
counts = st.integers(0, 10**9)
usages = st.builds(Usage, *[counts] * 9)
limits = st.lists(
    st.builds(AppliedLimit, st.just("a"), st.sampled_from(["token:jane", "group:sre"]), st.sampled_from(KINDS), counts),
    max_size=5,
)


@given(limits, st.dictionaries(st.sampled_from(["token:jane", "group:sre"]), usages), st.integers(0, 10))
def test_a_budget_is_exhausted_exactly_if_no_amount_is_left(
    applied: list[AppliedLimit], used: dict[str, Usage], active: int
) -> None:
    found = balances(applied, lambda scope: used.get(scope, NOTHING), lambda _: active, DAY, "EUR")
    stops = [each for each in found if each.limit.amount - each.used <= 0]
    assert first_exhausted(found) == (stops[0] if stops else None)
    ends = [each for each in stops if each.limit.kind in IN_RUN]
    assert first_exhausted(found, IN_RUN) == (ends[0] if ends else None)
    for each in stops:
        assert "2026-03-01 00:00 UTC" in each.ending()
        assert each.refusal().endswith(".")
    if any(each.limit.kind != "concurrent_runs" for each in stops):
        assert warning_of(found) is not None, "people are warned before they are stopped"


@given(st.lists(usages, max_size=4), usages)
def test_more_use_never_reopens_a_budget(parts: list[Usage], more: Usage) -> None:
    limit = AppliedLimit("a", "s", "tokens", 1000)
    before = balances([limit], lambda _: total(parts), lambda _: 0, DAY)
    after = balances([limit], lambda _: total(parts) + more, lambda _: 0, DAY)
    assert first_exhausted(before) is None or first_exhausted(after) is not None


def test_the_first_limit_that_names_a_person_applies_and_each_group_has_its_own() -> None:
    file = Budgets(
        limits=(
            Limit("jane", frozenset({"jane"}), amounts={"runs": 9}),
            Limit("sre", frozenset({"group:sre"}), amounts={"runs": 5}),
            Limit("all", frozenset({"*"}), amounts={"runs": 1}),
            Limit("team", frozenset({"group:sre"}), "group", {"cost": 7}),
            Limit("teams", frozenset({"*"}), "group", {"cost": 3}),
        )
    )

    def applied(subject: str, *groups: str) -> list[tuple[str, str]]:
        found = file.applied(Principal("token", subject), frozenset(groups))
        return [(limit.name, limit.scope) for limit in found]

    assert applied("jane", "sre") == [("jane", "token:jane"), ("team", "group:sre")]
    assert applied("joe", "sre", "dev") == [("sre", "token:joe"), ("teams", "group:dev"), ("team", "group:sre")]
    assert applied("ann") == [("all", "token:ann")]


def test_cached_tokens_have_their_price_and_a_model_without_a_price_is_not_free() -> None:
    file = Budgets((Price("gpt-*", 2.0, 10.0, 0.5), Price("GPT-4", 1, 1)))
    usage = Usage(calls=2, unreported=1, input_tokens=100, cached_tokens=40, output_tokens=10)
    assert file.priced("gpt-4", usage).cost == 60 * 2 + 40 * 0.5 + 10 * 10
    assert file.priced("other", usage) == usage + Usage(unpriced=1)


@given(
    st.dictionaries(st.text(min_size=1, max_size=200), usages),
    st.recursive(st.none() | st.text() | st.integers(), st.lists),
)
def test_a_report_comes_back_without_what_only_the_supervisor_counts(models: dict[str, Usage], damaged: object) -> None:
    found = read_report({model: usage.reported() for model, usage in models.items()})
    for model, usage in models.items():
        same = found.get(model, NOTHING)
        assert (same.calls, same.tokens, same.cached_tokens) == (usage.calls, usage.tokens, usage.cached_tokens)
        assert same.runs == same.cost == 0
    assert read_report(damaged) == {}
    assert read_report({"m": damaged, "n": {"calls": -1, "input_tokens": True}}) == {}
