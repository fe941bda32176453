from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Message

from ai_platform_engineering.knowledge_bases.rag.app import create_rag_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.utils.a2a_common.server.auth import OPEN_PATHS, SESSION_PATH
from tests.utils.a2a_common.serving import message_0_3, serving

KEY = "correct-horse-battery"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": message_0_3("hello")}


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        KEY,
        "Bearer",
        "Bearer wrong",
        f"Basic {KEY}",
        f"Bearer {KEY}x",
        f"Bearer {KEY[:-1]}",
        "Bearer ü",
    ],
)
async def test_without_the_key_nothing_is_served(header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header.encode()}
    async with serving(A2A_AUTH_SHARED_KEY=KEY) as served:
        refused = [
            await served.http.post(served.url, json=CALL, headers=headers),
            await served.http.post(f"{served.url}/message:send", json={}, headers=headers),
            await served.http.get(f"{served.url}/tasks", headers=headers),
            await served.http.get(f"{served.url}/tools", headers=headers),
            await served.http.get(f"{served.url}/healthz/../tasks", headers=headers),
            await served.http.get(f"{served.url}/nothing", headers=headers),
        ]
        for response in refused:
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
            assert response.json()["error"] == "unauthorized"
            assert KEY not in response.text


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
async def test_with_the_key_everything_is(scheme: str) -> None:
    async with serving(A2A_AUTH_SHARED_KEY=KEY) as served:
        headers = {"Authorization": f"{scheme} {KEY}"}
        answer = (await served.http.post(served.url, json=CALL, headers=headers)).json()
        assert answer["result"]["status"]["state"] == "completed"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/.well-known/agent-card.json", "/.well-known/agent.json"])
async def test_health_and_card_stay_open(path: str) -> None:
    async with serving(A2A_AUTH_SHARED_KEY=KEY) as served:
        assert (await served.http.get(served.url + path)).status_code == 200


async def test_the_card_says_that_a_key_is_needed() -> None:
    async with serving(A2A_AUTH_SHARED_KEY=KEY) as served:
        card = (await served.http.get(f"{served.url}/.well-known/agent-card.json")).json()
        assert card["securitySchemes"]["key"]["httpAuthSecurityScheme"]["scheme"] == "bearer"
        assert KEY not in str(card)
    async with serving() as served:
        assert "securitySchemes" not in (await served.http.get(f"{served.url}/.well-known/agent-card.json")).json()


async def test_without_a_key_set_callers_need_none() -> None:
    async with serving() as served:
        assert (await served.http.post(served.url, json=CALL)).json()["result"]["kind"] == "task"


def paths(routes: Sequence[BaseRoute], prefix: str = "") -> Iterator[str]:
    for route in routes:
        if isinstance(route, Mount):
            yield f"{prefix}{route.path}/"
        elif isinstance(route, Route):
            yield prefix + route.path


@pytest.mark.parametrize("app", [create_app, create_rag_app])
async def test_no_body_is_read_before_authentication(app: Callable[[Settings], Starlette], tmp_path: Path) -> None:
    environ = {"A2A_AUTH_SHARED_KEY": KEY, "A2A_AGENTS_AUTH_KEY": f"{KEY}-agents", "DATA_DIR": str(tmp_path)}
    served = app(load_settings(environ, None))
    statuses = {}

    async def never() -> Message:
        raise AssertionError("the body is read before authentication")

    for path in {*paths(served.routes), "/unknown"} - OPEN_PATHS - {SESSION_PATH}:

        async def send(message: Message, path: str = path) -> None:
            statuses.setdefault(path, message.get("status"))

        await served(
            {
                "type": "http",
                "method": "POST",
                "path": path,
                "query_string": b"",
                "headers": [(b"host", b"localhost")],
            },
            never,
            send,
        )
    assert len(statuses) >= 3
    assert set(statuses.values()) == {401}
