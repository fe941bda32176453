from __future__ import annotations

import httpx
import pytest
from a2a.client import A2ACardResolver
from starlette.applications import Starlette

from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.utils.a2a_common.server.a2a_server import Degraded, health_routes
from tests.utils.a2a_common.serving import serving


@pytest.mark.parametrize("path", ["/.well-known/agent-card.json", "/.well-known/agent.json"])
async def test_the_card_serves_clients_of_both_protocols(path: str) -> None:
    async with serving() as served:
        raw = (await served.http.get(served.url + path)).json()
        assert (raw["protocolVersion"], raw["preferredTransport"], raw["url"]) == ("0.3", "JSONRPC", served.url)
        card = await A2ACardResolver(served.http, served.url).get_agent_card(relative_card_path=path)
        offered = [(entry.protocol_version, entry.protocol_binding) for entry in card.supported_interfaces]
        assert offered == [("1.0", "JSONRPC"), ("1.0", "HTTP+JSON"), ("0.3", "JSONRPC"), ("0.3", "HTTP+JSON")]
        assert card.capabilities.streaming
        assert card.capabilities.push_notifications


async def test_health_is_about_the_process_and_readiness_about_its_work() -> None:
    ready = False

    async def tools(_caller: Principal) -> list[dict[str, str]]:
        return [{"agent": "argocd", "name": "version"}]

    problem: Degraded | None = None
    app = Starlette(routes=health_routes(lambda: ready, tools, lambda: problem))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://t") as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        not_yet = await client.get("/readyz")
        assert (not_yet.status_code, not_yet.json()) == (503, {"status": "starting"})
        ready = True
        now = await client.get("/readyz")
        assert (now.status_code, now.json()) == (200, {"status": "ready"})
        for problem in (Degraded("no store"), Degraded("no store", serves=False)):
            degraded = await client.get("/readyz")
            assert degraded.status_code == (200 if problem.serves else 503)
            assert degraded.json() == {"status": "degraded", "reason": "no store"}
        assert (await client.get("/tools")).json() == {"tools": [{"agent": "argocd", "name": "version"}]}


async def test_who_has_the_card_is_not_sent_it_again() -> None:
    async with serving() as served:
        address = f"{served.url}/.well-known/agent-card.json"
        tag = (await served.http.get(address)).headers["etag"]
        for known in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
            again = await served.http.get(address, headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert (await served.http.get(address, headers={"If-None-Match": '"other"'})).status_code == 200
