"""Every route and method with no, a wrong, another's, a member's, the owner's and an admin's credential."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from starlette.routing import Mount, Route

from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.server.jsonrpc_methods import METHODS
from tests.oauth_issuer import issuing
from tests.servers import serving

OPS = "ops-0123456789abcdef"
WHO = ("none", "wrong", "stranger", "member", "owner", "admin")
OPEN = (200,) * 6
"""Everybody, without a credential."""
TASK = (401, 401, 404, 200, 200, 200)
"""The owner of the conversation, the groups that it is shared with, and admins."""
ANY = (401, 401, 200, 200, 200, 200)
"""Everybody with a credential; each sees what is theirs."""
ADMIN = (401, 401, 403, 403, 403, 200)

ROUTES: dict[tuple[str, str], tuple[int, ...]] = {
    ("GET", "/healthz"): OPEN,
    ("GET", "/readyz"): OPEN,
    ("GET", "/.well-known/agent-card.json"): OPEN,
    ("GET", "/.well-known/agent.json"): OPEN,
    ("GET", "/session"): OPEN,
    ("GET", "/tools"): ANY,
    ("GET", "/agents"): ANY,
    ("GET", "/about"): ANY,
    ("GET", "/workflows"): ANY,
    ("GET", "/metrics"): ANY,
    ("GET", "/tasks"): ANY,
    ("GET", "/conversations"): ANY,
    ("GET", "/feedback"): ANY,
    ("GET", "/memories"): ANY,
    ("GET", "/usage"): ANY,
    ("GET", "/audit"): ADMIN,
    ("GET", "/tasks/{task}"): TASK,
    ("GET", "/v1/tasks/{task}"): TASK,
    ("GET", "/tasks/{task}/pushNotificationConfigs"): TASK,
    ("GET", "/v1/tasks/{task}/pushNotificationConfigs"): TASK,
    ("GET", "/conversations/{conversation}"): TASK,
    ("GET", "/approvals/{task}/{form}"): TASK,
}
STREAMS_AND_CHANGES = {
    ("POST", "/"),
    ("POST", "/session"),
    ("DELETE", "/session"),
    ("POST", "/feedback"),
    ("DELETE", "/memories"),
    ("DELETE", "/memories/{id}"),
    ("PATCH", "/conversations/{id}"),
    ("DELETE", "/conversations/{id}"),
    ("GET", "/v1/card"),
    ("GET", "/extendedAgentCard"),
    *(
        (method, f"{prefix}{path}")
        for prefix in ("", "/v1")
        for method, path in (
            ("POST", "/message:send"),
            ("POST", "/message:stream"),
            ("POST", "/tasks/{id}:cancel"),
            ("GET", "/tasks/{id}:subscribe"),
            ("POST", "/tasks/{id}:subscribe"),
            ("POST", "/tasks/{id}/pushNotificationConfigs"),
            ("GET", "/tasks/{id}/pushNotificationConfigs/{push_id}"),
            ("DELETE", "/tasks/{id}/pushNotificationConfigs/{push_id}"),
        )
    ),
}
"""Routes that `test_methods_and_changes` calls, or that only need a credential."""


@asynccontextmanager
async def matrix(tmp_path: Path) -> AsyncIterator[tuple[httpx.AsyncClient, dict[str, dict[str, str]], dict[str, str]]]:
    """A client, the headers of each credential, and the ids of a shared task that waits for an approval."""
    async with issuing() as issuer:
        environ = {
            "DATA_DIR": str(tmp_path),
            "A2A_OAUTH_ISSUER": issuer.url,
            "A2A_AUTH_KEYS": f"ops:admin:{OPS}",
            "REQUIRE_APPROVAL": "writes",
            "LANGGRAPH_STORE_TYPE": "memory",
            "ENABLE_RAG": "false",
        }
        tokens = {
            "wrong": "wrong-0123456789abcdef",
            "stranger": issuer.token(sub="mallory", groups=["hr"]),
            "member": issuer.token(sub="bob", groups=["sre"]),
            "owner": issuer.token(sub="ann"),
            "admin": OPS,
        }
        headers = {who: {"Authorization": f"Bearer {token}"} for who, token in tokens.items()} | {"none": {}}
        async with serving(create_app, environ) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
            asked = (await call(http, headers["owner"], "message/send", text="sync the guestbook app"))["result"]
            assert asked["status"]["state"] == "input-required"
            ids = {"task": asked["id"], "conversation": asked["contextId"], "form": form_of(asked)}
            path = f"/conversations/{ids['conversation']}"
            assert (await http.patch(path, json={"groups": ["sre"]}, headers=headers["owner"])).status_code == 200
            yield http, headers, ids


async def call(http: httpx.AsyncClient, who: dict[str, str], method: str, text: str = "", **params: Any) -> Any:
    if text:
        message = {"role": "user", "messageId": uuid4().hex, "parts": [{"kind": "text", "text": text}], **params}
        params = {"message": message}
    response = await http.post("/", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers=who)
    if response.status_code != 200 or not response.headers["content-type"].startswith("application/json"):
        return {"status": response.status_code}
    return response.json()


def form_of(task: dict[str, Any]) -> str:
    parts = [part for artifact in task["artifacts"] for part in artifact["parts"] if part["kind"] == "data"]
    found: str = next(part["data"]["form_id"] for part in parts if part["data"].get("user_input"))
    return found


async def test_reading(tmp_path: Path) -> None:
    async with matrix(tmp_path) as (http, headers, ids):
        for (method, path), expected in ROUTES.items():
            version = {"A2A-Version": "1.0"} if path.startswith("/tasks") else {}
            found = []
            for who in WHO:
                response = await http.request(method, path.format(**ids), headers=headers[who] | version)
                found.append(response.status_code)
            assert (path, tuple(found)) == (path, expected)
        for path, rows in (("/conversations", "conversations"), ("/tasks", "tasks")):
            seen = {
                who: len((await http.get(path, headers={**headers[who], "A2A-Version": "1.0"})).json().get(rows, []))
                for who in WHO[2:]
            }
            assert seen == {"stranger": 0, "member": 1, "owner": 1, "admin": 1}


async def test_callers_see_their_own_groups_and_their_rights_in_a_conversation(tmp_path: Path) -> None:
    async with matrix(tmp_path) as (http, headers, ids):
        groups = {who: (await http.get("/session", headers=headers[who])).json()["groups"] for who in WHO}
        assert groups == {"none": [], "wrong": [], "stranger": ["hr"], "member": ["sre"], "owner": [], "admin": []}
        for who, owned, may_share in (("member", False, False), ("owner", True, True), ("admin", False, True)):
            expected = {"owner": "token:ann", "owned": owned, "groups": ["sre"], "may_share": may_share}
            (row,) = (await http.get("/conversations", headers=headers[who])).json()["conversations"]
            one = (await http.get(f"/conversations/{ids['conversation']}", headers=headers[who])).json()
            assert [{name: found[name] for name in expected} for found in (row, one)] == [expected, expected]


async def test_methods_and_changes(tmp_path: Path) -> None:
    """Strangers and callers without a credential change nothing; the owner still can, afterwards."""
    async with matrix(tmp_path) as (http, headers, ids):
        task, conversation = ids["task"], ids["conversation"]
        named = {"id": task, "taskId": task, "pushNotificationConfigId": "p"}
        push = {"taskId": task, "pushNotificationConfig": {"url": "https://example.com/"}}
        for method in METHODS:
            for who in ("none", "wrong"):
                assert (await call(http, headers[who], method, id=task))["status"] == 401
            if "ist" in method or "ard" in method:  # listings and cards have no task
                continue
            if "essage" in method:
                for place in ({"taskId": task}, {"contextId": conversation}):
                    answer = await call(http, headers["stranger"], method, text="approve", **place)
                    assert "result" not in answer, method
                continue
            params = push if method.endswith("set") else {**named, "url": "https://example.com/"}
            answer = await call(http, headers["stranger"], method, **params)
            assert answer.get("error", {}).get("code", answer.get("status")) in {-32001, 404}, (method, answer)
        for path in (f"/tasks/{task}:cancel", f"/v1/tasks/{task}:cancel", f"/tasks/{task}:subscribe"):
            codes = [(await http.post(path, headers=headers[who])).status_code for who in ("none", "wrong", "stranger")]
            assert (path, codes) == (path, [401, 401, 404])
        path = f"/conversations/{conversation}"
        for method in ("PATCH", "DELETE"):
            codes = [
                (await http.request(method, path, headers=headers[who], json={"groups": []})).status_code
                for who in ("none", "wrong", "stranger", "member")
            ]
            assert (method, codes) == (method, [401, 401, 404, 403])
        approved = {
            "parts": [{"kind": "data", "data": {"resume": {"decisions": [{"type": "approve"}]}}}],
            "taskId": task,
        }
        done = (await call(http, headers["owner"], "message/send", text="-", **approved))["result"]
        assert done["status"]["state"] == "completed"
        assert (await http.delete(path, headers=headers["owner"])).status_code == 200


def test_no_route_is_forgotten(tmp_path: Path) -> None:
    """A new route must be in the matrix."""
    settings = Settings(DATA_DIR=tmp_path, LANGGRAPH_STORE_TYPE="memory")
    app = create_app(settings)
    known = {(method, path.format(task="{id}", conversation="{id}", form="{form_id}")) for method, path in ROUTES}
    # Of the page: the names of its files are public paths.
    known |= {*STREAMS_AND_CHANGES, ("GET", "/assets/{name:path}")}
    found = {
        (method, route.path.replace("{task_id}", "{id}"))
        for route in app.routes
        if isinstance(route, Route) and not isinstance(route, Mount) and route.path not in app.state.public_paths
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert found - known == set()
