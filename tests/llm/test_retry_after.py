"""When a provider may be asked again, in every way that providers say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ai_platform_engineering.llm.retry_after import retry_after

NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [
        ({}, [], None),
        ({"Retry-After": "45"}, [], 45),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:45 GMT"}, [], 45),
        ({"retry-after": "soon"}, [], None),
        ({"retry-after-ms": "1500", "retry-after": "2"}, [], 1.5),
        ({"x-ratelimit-reset-requests": "120ms"}, [], 0.12),
        ({"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "0"}, [], 360),
        ({"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "9"}, [], None),
        ({"x-ratelimit-reset": "1800000045"}, [], 45),
        (
            {
                "anthropic-ratelimit-requests-reset": "2027-01-15T09:00:00Z",
                "anthropic-ratelimit-requests-remaining": "3",
                "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:45Z",
                "anthropic-ratelimit-input-tokens-remaining": "0",
            },
            [],
            45,
        ),
        ({}, [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "45.5s"}], 45.5),
        ({"Retry-After": "-1"}, [], None),
    ],
)
def test_the_wait_is_read(headers: Mapping[str, str], details: list[Any], seconds: float | None) -> None:
    assert retry_after(headers, details, now=NOW) == pytest.approx(seconds)


def test_the_resets_of_limits_do_not_matter_to_another_problem() -> None:
    assert retry_after({"x-ratelimit-reset-tokens": "6m0s"}, limited=False) is None
    assert retry_after({"retry-after": "3"}, limited=False) == 3
