from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.utils.a2a_common.server.a2a_server import a2a_routes, agent_card, request_handler
from ai_platform_engineering.utils.a2a_common.server.rest_resources import RESOURCES
from tests.utils.a2a_common.scripted_executor import FORM, ScriptedExecutor
from tests.utils.a2a_common.serving import Served, message_1_0, new_id, serving

MARKER = "zX9-marker"


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving(lambda text, turn: [FORM], MAX_REQUEST_BYTES="20000") as served:
        yield served


def sent_0_3(text: str = "hello", **fields: Any) -> dict[str, Any]:
    return {"request": {"messageId": new_id(), "role": "ROLE_USER", "content": [{"text": text}], **fields}}


@pytest.mark.parametrize(
    ("path", "body", "task"),
    [
        ("/message:send", message_1_0("hello"), lambda answer: answer["task"]),
        ("/v1/message:send", sent_0_3(), lambda answer: answer["task"]),
    ],
)
async def test_the_path_says_which_protocol_is_spoken(served: Served, path: str, body: Any, task: Any) -> None:
    response = await served.http.post(served.url + path, json=body)
    assert response.status_code == 200
    begun = task(response.json())
    assert begun["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    prefix = path.removesuffix("/message:send")
    read = (await served.http.get(f"{served.url}{prefix}/tasks/{begun['id']}")).json()
    assert read == begun
    canceled = (await served.http.post(f"{served.url}{prefix}/tasks/{begun['id']}:cancel")).json()
    assert canceled["status"]["state"] in ("TASK_STATE_CANCELED", "TASK_STATE_CANCELLED")


async def test_the_header_may_not_contradict_the_path(served: Served) -> None:
    for path, header in (("/v1/message:send", "1.0"), ("/message:send", "0.3"), ("/message:send", MARKER)):
        response = await served.http.post(served.url + path, json={}, headers={"A2A-Version": header})
        assert response.status_code == 400
        assert response.json()["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"
        assert MARKER not in response.text


@pytest.mark.parametrize("path", ["/message:send", "/message:stream", "/v1/message:send", "/v1/message:stream"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        MARKER.encode(),
        b"[]",
        b'"zX9-marker"',
        b"null",
        b"{}",
        b'{"message": "zX9-marker"}',
        b'{"request": "zX9-marker", "message": {"parts": "zX9-marker"}}',
        b'{"message": {"parts": [{"text": 5}]}, "request": {"content": [{"text": 5}]}}',
        b'{"message": {"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "\\ud800"}]}}',
        b'{"message": {"metadata": {"zX9-marker": NaN}}}',
        b"[" * 2000,
        b'{"message":' * 90 + b"1" + b"}" * 90,
        b"\xff",
    ],
    ids=lambda body: repr(body[:40]),
)
async def test_bodies_that_do_not_fit(served: Served, path: str, body: bytes) -> None:
    response = await served.http.post(served.url + path, content=body)
    assert response.status_code == 400
    assert MARKER not in response.text
    assert response.json()["error"]["status"] == "INVALID_ARGUMENT"
    assert response.json()["error"]["message"]


async def test_where_a_body_went_wrong(served: Served) -> None:
    body = message_1_0("x", parts=[{"text": 5}])
    response = await served.http.post(f"{served.url}/message:send", json=body)
    assert response.json()["error"]["message"] == "body.message.parts.text: not valid"


async def test_too_large_a_body(served: Served) -> None:
    response = await served.http.post(f"{served.url}/message:send", json=message_1_0(MARKER * 3000))
    assert response.status_code == 413
    assert MARKER not in response.text


@pytest.mark.parametrize("prefix", ["", "/v1"])
@pytest.mark.parametrize(
    ("verb", "path", "code"),
    [
        ("GET", "/tasks/zX9-marker", 404),
        ("GET", "/tasks/%00%ff", 404),
        ("GET", "/tasks/zX9-marker?historyLength=zX9-marker", 400),
        ("GET", "/tasks/zX9-marker?historyLength=-1", 400),
        ("GET", "/tasks/zX9-marker?historyLength=99999999999999", 400),
        ("POST", "/tasks/zX9-marker:cancel", 404),
        ("GET", "/tasks/zX9-marker:subscribe", 404),
        ("POST", "/tasks/zX9-marker:subscribe", 404),
        ("GET", "/tasks/zX9-marker/pushNotificationConfigs", 404),
        ("GET", "/tasks/zX9-marker/pushNotificationConfigs/zX9-marker", 404),
        ("DELETE", "/tasks/zX9-marker/pushNotificationConfigs/zX9-marker", 404),
        ("PUT", "/tasks/zX9-marker", 405),
        ("GET", "/message:send", 405),
        ("GET", "/nothing/here", 404),
    ],
)
async def test_requests_for_what_is_not_there(served: Served, prefix: str, verb: str, path: str, code: int) -> None:
    response = await served.http.request(verb, served.url + prefix + path)
    assert response.status_code == code
    assert MARKER not in response.text


@pytest.mark.parametrize(
    "query", ["pageSize=0", "pageSize=zX9-marker", "pageToken=zX9-marker", "statusTimestampAfter=zX9-marker"]
)
async def test_listings_that_cannot_be(served: Served, query: str) -> None:
    response = await served.http.get(f"{served.url}/tasks?{query}")
    assert response.status_code == 400
    assert MARKER not in response.text


async def test_listing(served: Served) -> None:
    await served.http.post(f"{served.url}/message:send", json=message_1_0("hello", contextId="c"))
    tasks = (await served.http.get(f"{served.url}/tasks?contextId=c&includeArtifacts=true")).json()
    assert tasks["totalSize"] == 1
    assert tasks["tasks"][0]["artifacts"][0]["name"] == "UserInputMetaData"
    assert (await served.http.get(f"{served.url}/tasks?contextId=other")).json()["tasks"] == []


async def test_in_0_3_the_clients_of_the_sdk_know_the_error(served: Served) -> None:
    response = await served.http.get(f"{served.url}/v1/tasks/nope")
    assert response.json()["type"] == "TaskNotFoundError"


async def test_what_goes_wrong_in_here_stays_in_here(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("hunter2")

    monkeypatch.setattr(served.log, "task", broken)
    for path in ("/tasks/x", "/v1/tasks/x"):
        response = await served.http.get(served.url + path)
        assert response.status_code == 500
        assert "hunter2" not in response.text
        assert response.json()["error"]["status"] == "INTERNAL"


async def test_whatever_is_mounted_behind_gets_every_other_path() -> None:
    async def catch_all(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"behind {request.url.path}")

    behind = Mount("/", routes=[Route("/{path:path}", catch_all, methods=["GET"])])
    async with serving(extra_routes=(behind,)) as served:
        for path in ("/", "/skills", "/skills/catalog", "/a/tasks", "/a/b/c", "/v1/skills"):
            assert (await served.http.get(served.url + path)).text == f"behind {path}"
        assert (await served.http.get(f"{served.url}/tasks")).json()["totalSize"] == 0


@pytest.fixture(scope="module")
def plain_client() -> Any:
    config = load_settings({}, None)
    log = MemoryEventLog(10)
    card = agent_card(name="x", description="x", url="http://x", version="1")
    handler = request_handler(ScriptedExecutor(log), log, card, config)
    with TestClient(Starlette(routes=a2a_routes(handler, card, config))) as client:
        yield client
        client.portal.call(handler.aclose)


names = st.sampled_from(["message", "request", "parts", "content", "text", "metadata", "id", "role", "url", MARKER])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.just(MARKER) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@given(
    resource=st.sampled_from(RESOURCES),
    task_id=st.just(MARKER) | st.text(min_size=1, max_size=5),
    query=st.dictionaries(
        st.sampled_from(["historyLength", "pageSize", "pageToken", "status", "contextId"]), st.text()
    ),
    body=values.map(json.dumps) | st.binary(max_size=20),
)
@settings(max_examples=150, deadline=None)
def test_no_request_breaks_it_or_comes_back(
    plain_client: TestClient, resource: Any, task_id: str, query: dict[str, str], body: bytes | str
) -> None:
    quoted = quote(task_id, safe="")
    path = resource.path.replace("{id}", quoted).replace("{push_id}", quoted)
    response = plain_client.request(resource.verb, path, params=query, content=body)
    assert response.status_code < 500
    if response.status_code >= 400:
        assert MARKER not in response.text
