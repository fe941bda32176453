"""The supervisor's card is fetched before the first question."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from ai_platform_engineering.utils.a2a_common.client import supervisor_client
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import connected
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError

CARD = {"name": "Supervisor", "supportedInterfaces": [{"url": "http://elsewhere/", "protocolBinding": "JSONRPC"}]}


async def test_a_card_may_take_longer_than_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_client, "_CONNECT_SECONDS", 0.01)

    async def answer(_request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.05)
        return httpx.Response(200, json=CARD)

    async with connected("http://supervisor:8000", transport=httpx.MockTransport(answer)) as supervisor:
        assert supervisor.card.supported_interfaces[0].url == "http://supervisor:8000/"


async def test_a_supervisor_without_an_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_client, "_CARD_SECONDS", 0.01)

    async def never(_request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(SupervisorError, match=r"no supervisor at http://supervisor:8000 \(no answer within 0.01 s\)"):
        async with connected("http://supervisor:8000", transport=httpx.MockTransport(never)):
            pass
