from __future__ import annotations

import pytest

from ai_platform_engineering.utils.a2a_common.server.sign_in_attempts import (
    FREE_ATTEMPTS,
    MAX_ADDRESSES,
    MAX_PAUSE_SECONDS,
    SignInAttempts,
)

ADDRESS = "203.0.113.7"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def attempts(clock: Clock) -> SignInAttempts:
    return SignInAttempts(clock)


def use_free_attempts(attempts: SignInAttempts, address: str = ADDRESS) -> None:
    assert [attempts.begin(address) for _ in range(FREE_ATTEMPTS)] == [0] * FREE_ATTEMPTS


def test_the_pause_doubles_up_to_a_maximum(attempts: SignInAttempts, clock: Clock) -> None:
    use_free_attempts(attempts)
    pauses = []
    for _ in range(9):
        pauses.append(attempts.begin(ADDRESS))
        # An attempt during the pause does not extend it.
        clock.now += pauses[-1]
        assert attempts.begin(ADDRESS) == 0
    assert pauses == [1, 2, 4, 8, 16, 32, MAX_PAUSE_SECONDS, MAX_PAUSE_SECONDS, MAX_PAUSE_SECONDS]


def test_a_success_and_a_long_time_end_the_pause(attempts: SignInAttempts, clock: Clock) -> None:
    use_free_attempts(attempts)
    assert attempts.begin(ADDRESS) > 0
    attempts.succeeded(ADDRESS)
    use_free_attempts(attempts)
    clock.now += 3600
    use_free_attempts(attempts)


@pytest.mark.parametrize("other", ["203.0.113.8", "2001:db8:1:2::7", ""])
def test_other_addresses_do_not_wait(attempts: SignInAttempts, other: str) -> None:
    use_free_attempts(attempts)
    assert attempts.begin(ADDRESS) > 0
    assert attempts.begin(other) == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [("2001:db8::1", "2001:db8::2:1"), ("203.0.113.7", "::ffff:203.0.113.7"), ("fe80::1%eth0", "fe80::1")],
)
def test_addresses_of_one_machine_wait_together(attempts: SignInAttempts, one: str, other: str) -> None:
    use_free_attempts(attempts, one)
    assert attempts.begin(other) > 0


def test_the_number_of_addresses_is_limited(attempts: SignInAttempts) -> None:
    for number in range(MAX_ADDRESSES + 10):
        attempts.begin(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(attempts._failures) == MAX_ADDRESSES
