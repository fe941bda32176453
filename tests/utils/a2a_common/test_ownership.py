"""Tasks and conversations belong to the principal who began them; others get "not found", unless they are shared."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from a2a.types.a2a_pb2 import Message, Part

from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.utils.a2a_common.codec.parts import message_digest
from ai_platform_engineering.utils.users import User, sign_user
from tests.audited import audited
from tests.oauth_issuer import TestIssuer, issuing
from tests.servers import serving as serving_app

SHARED, CI, SLACK, OPS = (f"{name}-0123456789abcdef" for name in ("shared", "ci", "slack", "ops"))
NOT_FOUND = -32001


@dataclass(frozen=True)
class Desk:
    url: str
    http: httpx.AsyncClient
    issuer: TestIssuer

    def bearer(self, who: str, *groups: str) -> dict[str, str]:
        keys = {"shared": SHARED, "ci": CI, "slack": SLACK, "ops": OPS}
        return {"Authorization": f"Bearer {keys.get(who) or self.issuer.token(sub=who, groups=[*groups])}"}

    async def call(self, who: dict[str, str], method: str, params: dict[str, Any]) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response = await self.http.post(self.url, json=body, headers=who)
        assert response.status_code == 200
        if response.headers["content-type"].startswith("application/json"):
            found: dict[str, Any] = response.json()
            return found
        return {"result": response.text}

    async def ask(self, who: dict[str, str], text: str = "hello", **message: Any) -> dict[str, Any]:
        said = {"role": "user", "messageId": uuid4().hex, "parts": [{"kind": "text", "text": text}], **message}
        return await self.call(who, "message/send", {"message": said})


@asynccontextmanager
async def desk(tmp_path: Path, **environ: str) -> AsyncIterator[Desk]:
    keys = {"A2A_AUTH_SHARED_KEY": SHARED, "A2A_AUTH_KEYS": f"ci:user:{CI}, slack:bot:{SLACK}, ops:admin:{OPS}"}
    async with issuing() as issuer, httpx.AsyncClient(timeout=30) as http:
        given = {"DATA_DIR": str(tmp_path), "ENABLE_RAG": "false", "A2A_OAUTH_ISSUER": issuer.url, **keys, **environ}
        async with serving_app(create_app, given) as url:
            yield Desk(url, http, issuer)


@pytest.mark.parametrize("log", ["memory", "sqlite"])
async def test_a_task_is_hidden_from_everybody_but_its_owner_and_admins(tmp_path: Path, log: str) -> None:
    async with desk(tmp_path, EVENT_LOG=log) as here:
        task = (await here.ask(here.bearer("ann"), "create a GitHub repo"))["result"]
        assert task["status"]["state"] == "input-required"
        identity = {"id": task["id"]}
        form = {"kind": "data", "data": {"resume": {"values": {"name": "stolen"}}}}
        for who in ("bob", "ci", "slack"):
            stranger = here.bearer(who)
            refused = [
                await here.call(stranger, "tasks/get", identity),
                await here.call(stranger, "tasks/resubscribe", identity),
                await here.call(stranger, "tasks/cancel", identity),
                await here.ask(stranger, taskId=task["id"]),
                await here.ask(stranger, taskId=task["id"], parts=[form]),
                await here.call(stranger, "tasks/pushNotificationConfig/list", identity),
                await here.call(
                    stranger,
                    "tasks/pushNotificationConfig/set",
                    {"taskId": task["id"], "pushNotificationConfig": {"url": "https://example.com/"}},
                ),
            ]
            assert [answer["error"]["code"] for answer in refused] == [NOT_FOUND] * len(refused)
            assert (
                "no conversation of yours"
                in (await here.ask(stranger, contextId=task["contextId"]))["error"]["message"]
            )
            for method in ("GET", "PATCH", "DELETE"):
                path = f"{here.url}/conversations/{task['contextId']}"
                response = await here.http.request(method, path, headers=stranger, json={"name": "mine"})
                assert (method, response.status_code) == (method, 404)
            listed = (await here.http.get(f"{here.url}/conversations", headers=stranger)).json()
            assert listed["conversations"] == []
            tasks = await here.http.get(f"{here.url}/tasks", headers={**stranger, "A2A-Version": "1.0"})
            assert tasks.json().get("tasks", []) == []
        for who in ("ann", "ops", "shared"):
            assert (await here.call(here.bearer(who), "tasks/get", identity))["result"]["id"] == task["id"]
        listed = (await here.http.get(f"{here.url}/conversations", headers=here.bearer("ann"))).json()
        assert [row["id"] for row in listed["conversations"]] == [task["contextId"]]
        assert (await here.call(here.bearer("ann"), "tasks/cancel", identity))["result"]["status"][
            "state"
        ] == "canceled"
    denied = audited(tmp_path, "denied")
    assert {entry["subject"] for entry in denied} == {"bob", "key:ci", "key:slack"}
    assert {(entry["reason"], entry["conversation"]) for entry in denied} == {
        ("the conversation belongs to another principal", task["contextId"])
    }


async def test_a_bot_speaks_for_its_users_and_a_conversation_is_shared_with_groups(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        bot = here.bearer("slack")

        async def ask(user: User, key: str = SLACK, who: str = "slack", **message: Any) -> dict[str, Any]:
            message_id = uuid4().hex
            said = Message(message_id=message_id, context_id=message.get("contextId", ""), parts=[Part(text="hello")])
            digest = message_digest(said)
            token = sign_user(key, user, message_id=message_id, now=time.time(), digest=digest)
            return await here.ask(here.bearer(who), messageId=message_id, metadata={"user_token": token}, **message)

        channel = frozenset({"slack:T1/C1"})
        ann = User("slack:T1/ann", groups=channel, shared_with=channel)
        member, other = User("slack:T1/bob", groups=channel), User("slack:T1/carl", groups=frozenset({"slack:T1/C2"}))
        task = (await ask(ann))["result"]
        context_id = task["contextId"]
        path = f"{here.url}/conversations/{context_id}"
        stored = (await here.http.get(path, headers=bot)).json()
        assert (stored["owner"], stored["groups"]) == ("statement:slack:T1/ann", ["slack:T1/C1"])
        assert (await here.call(bot, "tasks/get", {"id": task["id"]}))["result"]["id"] == task["id"]
        assert "result" in await ask(member, contextId=context_id)
        assert "error" in await ask(other, contextId=context_id)
        # The bot may follow a conversation, but only its owner, or an admin, shares and deletes it.
        for method in ("PATCH", "DELETE"):
            assert (await here.http.request(method, path, headers=bot, json={"groups": []})).status_code == 403
        ops = here.bearer("ops")
        assert (await here.http.patch(path, headers=ops, json={"groups": ["", 7]})).status_code == 400
        changed = await here.http.patch(path, headers=ops, json={"groups": ["slack:T1/C2"]})
        assert changed.json() == {"id": context_id, "groups": ["slack:T1/C2"]}
        assert "error" in await ask(member, contextId=context_id)
        assert "result" in await ask(other, contextId=context_id)
        # A direct message belongs to one person, also where the bot sends for others.
        direct = (await ask(User("slack:T1/ann")))["result"]["contextId"]
        assert "error" in await ask(member, contextId=direct)
        # Neither a user's key nor a token speaks for others, and a statement that another key signed is refused.
        assert "user_token" in (await ask(ann, key=CI))["error"]["message"]
        own = (await ask(ann, key=CI, who="ci"))["result"]["contextId"]
        found = await here.http.get(f"{here.url}/conversations/{own}", headers=here.bearer("ci"))
        assert found.json()["owner"] == "key:ci"
    (entry,) = audited(tmp_path, "conversation_shared")
    assert (entry["subject"], entry["conversation"], entry["target"]) == ("key:ops", context_id, "slack:T1/C2")
