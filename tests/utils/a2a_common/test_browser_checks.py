"""A server answers only to names that are its own, on every route."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from ai_platform_engineering.knowledge_bases.rag.app import create_rag_app
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings
from tests.servers import serving

PROBES = ("/healthz", "/readyz")
CARD = "/.well-known/agent-card.json"
ROUTES = {
    "supervisor": [
        *("GET /tools", "GET /workflows", "GET /feedback", "POST /feedback", "GET /rag/v1/datasources"),
        *(f"GET {CARD}", "POST /", "POST /v1/message:send", "GET /v1/tasks/x", "GET /nowhere"),
    ],
    "agent": ["GET /tools", f"GET {CARD}", "POST /", "POST /message:send"],
    "rag": ["POST /mcp", "GET /rag/v1/datasources"],
}
APPS: dict[str, Callable[[Settings], Starlette]] = {
    "supervisor": create_app,
    "agent": partial(create_agent_app, name="argocd"),
    "rag": create_rag_app,
}


@pytest.fixture(params=APPS)
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[str, str]]:
    environ = {"DATA_DIR": str(tmp_path), "SANDBOX": "true", "EMBEDDINGS_PROVIDER": "none"}
    environ |= {"A2A_PUBLIC_URL": "https://portal.example/agents", "ALLOWED_HOSTS": "caipe, .example.org"}
    async with serving(APPS[request.param], environ) as url:
        yield request.param, url


async def test_other_names_are_refused_on_every_route_and_own_ones_are_not(server: tuple[str, str]) -> None:
    kind, url = server
    async with httpx.AsyncClient(timeout=30) as http:
        for route in ROUTES[kind]:
            method, path = route.split(" ")
            # As a browser sends it whose page made its name point here.
            rebound = {"Host": "evil.example:8000", "Origin": "http://evil.example:8000"}
            answer = await http.request(method, url + path, headers=rebound, json={} if method == "POST" else None)
            assert answer.status_code == 421, route
            assert "ALLOWED_HOSTS" in answer.json()["message"]
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.9", "a@localhost"):
            assert (await http.get(f"{url}/tools", headers={"Host": host})).status_code == 421, host
        own = ("localhost:1", "127.0.0.1", "[::1]:8000", "PORTAL.example", "caipe:80", "a.example.org", "example.org.")
        for host in own:
            assert (await http.get(f"{url}/tools", headers={"Host": host})).status_code in {200, 404}, host
        for path in PROBES:
            answer = await http.get(url + path, headers={"Host": "10.0.0.9:8000"})
            assert set(answer.json()) == {"status"}


async def test_exactly_one_host_is_named(server: tuple[str, str]) -> None:
    port = httpx.URL(server[1]).port
    for head in ("GET /tools HTTP/1.0\r\n", "GET /tools HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{head}Connection: close\r\n\r\n".encode())
        status = await reader.readline()
        assert status.split()[1] in {b"400", b"421"}
        writer.close()
        await writer.wait_closed()


async def test_any_name_is_taken_where_that_is_set(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "SANDBOX": "true", "ALLOWED_HOSTS": "*"}
    async with serving(APPS["agent"], environ) as url, httpx.AsyncClient() as http:
        assert (await http.get(f"{url}/tools", headers={"Host": "evil.example"})).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost.evil.example"])
async def test_a_page_of_another_site_cannot_run_anything(server: tuple[str, str], origin: str) -> None:
    kind, url = server
    async with httpx.AsyncClient() as http:
        for route in ROUTES[kind]:
            method, path = route.split(" ")
            if method == "POST":
                answer = await http.post(url + path, headers={"Origin": origin}, content="{}")
                assert answer.status_code == 403, route
