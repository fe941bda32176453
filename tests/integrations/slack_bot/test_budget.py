"""The budget, on a clock that the test moves."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.integrations.slack_bot.web_api.budget import BURST, GRACE, LIMITS, MINUTE, Budget
from tests.integrations.slack_bot.virtual_clock import VirtualClock

START = "chat.startStream"
POST = "chat.postMessage"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def budget(clock: VirtualClock) -> Budget:
    return Budget(clock)


def used_up(budget: Budget, method: str = START, *, urgent: bool = False) -> int:
    """How many calls may be made at once."""
    calls = 0
    while budget.wait(method, "C1", f"first-{calls}", urgent=urgent) == 0.0:
        calls += 1
    budget.wait("conversations.replies", "C1", f"first-{calls}")  # who asks for something else waits no longer
    return calls


def test_ordinary_calls_leave_a_fifth_to_what_is_urgent(budget: Budget, clock: VirtualClock) -> None:
    assert used_up(budget) == 16
    assert budget.wait(START, "C1", "ordinary") == MINUTE
    assert [budget.wait(START, "C1", f"urgent-{n}", urgent=True) for n in range(4)] == [0.0] * 4
    assert budget.wait(START, "C1", "urgent", urgent=True) == MINUTE


def test_a_window_slides(budget: Budget, clock: VirtualClock) -> None:
    for n in range(16):
        assert budget.wait(START, "C1", f"early-{n}") == 0.0
        clock.advance(1)
    assert budget.wait(START, "C1", "late") == MINUTE - 16
    clock.advance(MINUTE - 16)
    assert budget.wait(START, "C1", "late") == 0.0
    assert budget.wait(START, "C1", "later") == 1.0


def test_first_come_first_served(budget: Budget, clock: VirtualClock) -> None:
    used_up(budget)
    for n in range(16):
        assert budget.wait(START, "C1", f"waiting-{n}") == MINUTE
    assert budget.wait(START, "C1", "last") == 2 * MINUTE
    clock.advance(MINUTE)
    assert budget.wait(START, "C1", "newcomer") == MINUTE, "the turns of those who wait are theirs"
    assert [budget.wait(START, "C1", f"waiting-{n}") for n in reversed(range(16))] == [0.0] * 16
    assert budget.wait(START, "C1", "last") == MINUTE


def test_asking_again_keeps_the_turn(budget: Budget, clock: VirtualClock) -> None:
    used_up(budget)
    for _ in range(3):
        budget.wait(START, "C1", "waiting")
    clock.advance(40)
    assert budget.wait(START, "C1", "waiting") == MINUTE - 40
    clock.advance(MINUTE - 40)
    assert budget.wait(START, "C1", "waiting") == 0.0


def test_a_turn_that_is_not_taken_goes_to_the_next(budget: Budget, clock: VirtualClock) -> None:
    used_up(budget)
    for n in range(16):
        budget.wait(START, "C1", f"gone-{n}")
    clock.advance(MINUTE + GRACE)
    assert budget.wait(START, "C1", "newcomer") == MINUTE
    clock.advance(0.1)
    assert budget.wait(START, "C1", "newcomer") == 0.0


def test_who_asks_for_something_else_gives_the_turn_back(budget: Budget, clock: VirtualClock) -> None:
    used_up(budget)
    for n in range(16):
        budget.wait(START, "C1", f"waiting-{n}")
    assert budget.wait(START, "C1", "last") == 2 * MINUTE
    assert budget.wait(POST, "C1", "waiting-3") == 0.0
    assert budget.wait(START, "C1", "last") == MINUTE


def test_what_becomes_urgent_goes_first(budget: Budget) -> None:
    used_up(budget)
    assert budget.wait(START, "C1", "form") == MINUTE
    assert budget.wait(START, "C1", "form", urgent=True) == 0.0


def test_a_channel_takes_a_few_messages_at_once_then_one_a_second(budget: Budget) -> None:
    waits = [budget.wait(POST, "C1", f"thread-{n}") for n in range(BURST + 3)]
    assert waits == [0.0] * BURST + [1.0, 2.0, 3.0]
    assert budget.wait(POST, "C2", "elsewhere") == 0.0


def test_a_channel_that_rested_takes_a_few_at_once_again(budget: Budget, clock: VirtualClock) -> None:
    for n in range(BURST):
        budget.wait(POST, "C1", f"thread-{n}")
    clock.advance(BURST)
    assert [budget.wait(POST, "C1", f"again-{n}") for n in range(BURST)] == [0.0] * BURST


def test_all_channels_share_the_messages_of_a_workspace(budget: Budget) -> None:
    waits = [budget.wait(POST, f"C{n}", f"thread-{n}") for n in range(LIMITS[POST])]
    assert waits.count(0.0) == LIMITS[POST] * 8 // 10
    assert waits[-1] == MINUTE


def test_methods_have_budgets_of_their_own(budget: Budget) -> None:
    used_up(budget)
    assert budget.wait("chat.appendStream", "C1", "thread") == 0.0


def test_no_call_goes_before_slack_allows_it(budget: Budget, clock: VirtualClock) -> None:
    budget.hold(START, 30)
    budget.hold(START, 10)
    assert budget.pressure(START) == 1.0
    assert budget.wait(START, "C1", "thread") == 30
    assert budget.wait(START, "C1", "other", urgent=True) == 30
    assert budget.wait("chat.update", "C1", "third") == 0.0
    clock.advance(30)
    assert budget.wait(START, "C1", "thread") == 0.0


def test_pressure_is_what_is_used_or_waited_for(budget: Budget, clock: VirtualClock) -> None:
    assert budget.pressure(START) == 0.0
    for n in range(5):
        budget.wait(START, "C1", f"thread-{n}")
    assert budget.pressure(START) == 0.25
    used_up(budget)
    assert budget.pressure(START) == 0.8
    for n in range(9):
        budget.wait(START, "C1", f"waiting-{n}")
    assert budget.pressure(START) == 1.0
    clock.advance(3 * MINUTE)
    assert budget.pressure(START) == 0.0


@given(
    st.lists(
        st.tuples(st.floats(0, 20), st.integers(0, 40), st.booleans(), st.sampled_from([POST, START])), max_size=150
    )
)
def test_no_limit_is_ever_broken(asked: list[tuple[float, int, bool, str]]) -> None:
    """Holders that come whenever they like, and not always when it is their turn."""
    clock = VirtualClock(0.0)
    budget = Budget(clock)
    made: dict[str, deque[float]] = {POST: deque(), START: deque()}
    for pause, holder, urgent, method in asked:
        clock.advance(pause)
        if budget.wait(method, "C1", str(holder), urgent=urgent) == 0.0:
            made[method].append(clock.now())
    for method, limit in ((START, LIMITS[START]), (POST, LIMITS[POST])):
        calls = list(made[method])
        assert all(later - earlier > 60 for earlier, later in zip(calls, calls[limit:], strict=False))
    posts = list(made[POST])
    assert all(
        later - earlier >= gap - BURST + 1 - 0.01
        for gap in range(1, len(posts))
        for earlier, later in zip(posts, posts[gap:], strict=False)
    )


@given(st.integers(1, 60))
def test_callers_that_come_back_in_time_are_served_in_order(threads: int) -> None:
    clock = VirtualClock(0.0)
    budget = Budget(clock)
    due = {str(n): 0.0 for n in range(threads)}
    served: list[tuple[str, float]] = []
    asked: dict[str, int] = dict.fromkeys(due, 0)
    while due:
        holder = min(due, key=lambda name: (due[name], int(name)))
        clock.advance(due[holder] - clock.now())
        asked[holder] += 1
        if wait := budget.wait(START, "C1", holder):
            due[holder] = clock.now() + wait
        else:
            served.append((holder, clock.now()))
            del due[holder]
    assert [holder for holder, _ in served] == [str(n) for n in range(threads)]
    assert max(asked.values()) <= 2, "a promise is kept"
    assert all(before <= after for (_, before), (_, after) in pairwise(served))
