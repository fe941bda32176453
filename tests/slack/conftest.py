from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.slack.standin import Slack, standing_in


@pytest.fixture
async def slack() -> AsyncIterator[Slack]:
    async with standing_in() as slack:
        yield slack
