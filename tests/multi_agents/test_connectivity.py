from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator

import httpx
import pytest
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill

from ai_platform_engineering.multi_agents.connectivity import new_client, probe, probe_all, remote_tools
from ai_platform_engineering.multi_agents.placement import AgentEntry
from tests.multi_agents.loopback import Request, always, card, response, serving


def remote(address: str, name: str = "weather") -> AgentEntry:
    return AgentEntry(name, True, "remote", "only a URL is known", address)


SILENCE = 30
"""Seconds for which a server that does not answer says nothing."""


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with new_client() as made:
        yield made


async def test_a_card_of_protocol_0_3(client: httpx.AsyncClient) -> None:
    async with serving(always(response(200, card()))) as server:
        found = await probe(remote(server.address), client, timeout=20)
    assert (found.ok, found.reason) == (True, None)
    assert (found.card_name, found.card_description) == ("Weather", "Weather for any place.")
    assert (found.skills, found.protocol_version) == (("Forecast",), "0.3.0")
    assert found.elapsed > 0


async def test_a_card_as_the_sdk_serves_it(client: httpx.AsyncClient) -> None:
    made_by_sdk = AgentCard(
        name="Argocd",
        description="Argo CD applications.",
        version="1",
        capabilities=AgentCapabilities(streaming=True),
        supported_interfaces=[
            AgentInterface(url="http://127.0.0.1:1", protocol_binding="JSONRPC", protocol_version="0.3"),
            AgentInterface(url="http://127.0.0.1:1", protocol_binding="JSONRPC", protocol_version="1.0"),
        ],
        skills=[AgentSkill(id="version", name="Version", description="Shows the version.")],
    )
    async with serving(always(response(200, agent_card_to_dict(made_by_sdk)))) as server:
        found = await probe(remote(server.address), client, timeout=20)
    assert found.ok
    assert (found.card_name, found.skills, found.protocol_version) == ("Argocd", ("Version",), "1.0")


async def test_the_older_place_of_a_card_is_tried_second(client: httpx.AsyncClient) -> None:
    async def answer(request: Request) -> bytes:
        return response(200, card()) if request[0].endswith("/agent.json") else response(404, b"")

    async with serving(answer) as server:
        found = await probe(remote(f"{server.address}/weather"), client, timeout=20)
    assert found.ok
    assert [path for path, _ in server.requests] == [
        "/weather/.well-known/agent-card.json",
        "/weather/.well-known/agent.json",
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (response(401, {"error": "internal detail"}), "HTTP 401"),
        (response(500, b"Traceback (most recent call last)"), "HTTP 500"),
        (response(307, b"", "location: http://127.0.0.1:1/\r\n"), "HTTP 307"),
        (response(404, b""), "no agent card there (HTTP 404)"),
        (response(200, b"<html>hello</html>"), "not an agent card"),
        (response(200, b"\xff\xfe"), "not an agent card"),
        (response(200, b"[" * 100_000), "not an agent card"),
        (response(200, {"name": "only a name"}), "not an agent card"),
        (response(200, b'"name"'), "not an agent card"),
        (response(200, b"x" * 1_000_001), "not an agent card"),
        (b"", "the connection was closed without an answer"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "the connection was closed without an answer"),
    ],
)
async def test_what_is_no_card_has_a_short_reason(client: httpx.AsyncClient, data: bytes, reason: str) -> None:
    async with serving(always(data)) as server:
        found = await probe(remote(server.address), client, timeout=20)
    assert (found.ok, found.reason) == (False, reason)


async def test_strange_values_in_a_card_do_no_harm(client: httpx.AsyncClient) -> None:
    strange = {
        **card(),
        "description": 7,
        "skills": [1, {"name": None}, {"id": "x"}],
        "protocolVersion": "²." + "9" * 9999,
    }
    async with serving(always(response(200, strange))) as server:
        found = await probe(remote(server.address), client, timeout=20)
    assert (found.ok, found.card_description, found.skills) == (True, None, ())


async def test_nobody_listens(client: httpx.AsyncClient, unused_port: int) -> None:
    found = await probe(remote(f"http://127.0.0.1:{unused_port}"), client, timeout=20)
    assert (found.ok, found.reason) == (False, "connection refused")


async def test_a_name_that_does_not_resolve(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    # Without a name server the real one takes longer than the test may.
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    found = await probe(remote("http://agent-weather.invalid:8000"), client, timeout=5)
    assert (found.ok, found.reason) == (False, "host name not found")


async def test_a_port_that_speaks_no_tls(client: httpx.AsyncClient) -> None:
    async with serving(always(response(200, card()))) as server:
        found = await probe(remote(server.address.replace("http:", "https:")), client, timeout=20)
    assert not found.ok
    assert found.reason in {"no TLS connection", "the connection was closed without an answer"}


async def test_an_agent_that_never_answers(client: httpx.AsyncClient) -> None:
    async def answer(_: Request) -> bytes:
        await asyncio.sleep(SILENCE)
        return b""

    async with serving(answer) as server:
        started = time.monotonic()
        found = await probe(remote(server.address), client, timeout=0.2)
        assert time.monotonic() - started < SILENCE / 2
    assert (found.ok, found.reason) == (False, "no answer within 0.2 s")


async def test_the_key_is_sent_when_there_is_one(client: httpx.AsyncClient) -> None:
    async with serving(always(response(200, card()))) as server:
        await probe(remote(server.address), client, timeout=20, auth_token="the-shared-key")
        await probe(remote(server.address), client, timeout=20)
    assert [headers.get("authorization") for _, headers in server.requests] == ["bearer the-shared-key", None]


async def test_a_password_in_the_address_is_used_and_not_logged(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(always(response(200, card()))) as server:
        found = await probe(remote(server.address.replace("//", "//bob:hunter2@")), client, timeout=20)
    assert found.ok
    assert server.requests[0][1]["authorization"] == "basic ym9iomh1bnrlcji="
    assert "hunter2" not in caplog.text


async def test_all_are_probed_at_once_within_the_deadline(client: httpx.AsyncClient) -> None:
    async def slow(_: Request) -> bytes:
        await asyncio.sleep(SILENCE)
        return b""

    asked = 0
    all_asked = asyncio.Event()

    async def brisk(_: Request) -> bytes:
        nonlocal asked
        asked += 1
        if asked == 10:
            all_asked.set()
        await all_asked.wait()
        return response(200, card())

    async with serving(slow) as silent, serving(brisk) as weather:
        agents = [remote(weather.address, f"weather_{number}") for number in range(10)]
        agents += [remote(silent.address, f"silent_{number}") for number in range(10)]
        started = time.monotonic()
        found = await probe_all(agents, client, deadline=5)
        assert time.monotonic() - started < SILENCE / 2
    assert {name.split("_")[0] for name, result in found.items() if result.ok} == {"weather"}
    assert len(found) == 20
    assert all(result.ok == name.startswith("weather") for name, result in found.items())


async def test_nothing_to_probe(client: httpx.AsyncClient) -> None:
    assert await probe_all([], client, deadline=1) == {}


class TestTools:
    async def ask(self, data: bytes) -> tuple[str, ...] | None:
        async with serving(always(data)) as server, new_client() as client:
            rows = await remote_tools(remote(server.address), client, timeout=20)
            return None if rows is None else tuple(row["name"] for row in rows)

    async def test_an_agent_of_ours_lists_its_tools(self) -> None:
        rows = [{"agent": "weather", "name": "forecast"}, {"agent": "weather", "name": "tides"}, {"name": 7}, "x"]
        assert await self.ask(response(200, {"tools": rows})) == ("forecast", "tides")

    @pytest.mark.parametrize(
        "data",
        [response(404, b""), response(401, {"tools": []}), response(200, b"[]"), response(200, b"no JSON"), b""],
    )
    async def test_other_agents_do_not_say(self, data: bytes) -> None:
        assert await self.ask(data) is None
