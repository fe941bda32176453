"""An MCP server that records the headers of requests, and an issuer that exchanges tokens for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.mcp.scripted_http import ScriptedHttp, scripted_http
from tests.oauth_issuer import TestIssuer, issuing


@pytest.fixture
async def remote() -> AsyncIterator[ScriptedHttp]:
    async with scripted_http() as server:
        yield server


@pytest.fixture
async def issuer() -> AsyncIterator[TestIssuer]:
    async with issuing(
        TestIssuer(client="supervisor", secret="client-secret", services=frozenset({"billing"}))
    ) as issuer:
        yield issuer
