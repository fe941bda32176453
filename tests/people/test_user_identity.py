"""The person who asks: proved by a signature, known to the operators, and never to a model."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from ai_platform_engineering.utils.users import User, sign_user
from tests.people.model_inputs import Seen, watched

KEY = "signing-key-of-the-tests"
CHANNEL = frozenset({"slack:T1/C1"})
JANE = User("slack:T1/U1", "Jane Doe", CHANNEL, CHANNEL)
OMAR = User("slack:T1/U2", "Omar Haddad", CHANNEL, CHANNEL)


def signed(
    user: User,
    message_id: str,
    said: str | Mapping[str, Any] = "jira, please",
    *,
    context: str = "",
    task: str = "",
    key: str = KEY,
    ago: float = 0,
) -> dict[str, str]:
    part = {"text": said} if isinstance(said, str) else {"data": said}
    covered = json.dumps([message_id, context, task, [part]], sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(covered.encode()).hexdigest()
    return {"user_token": sign_user(key, user, message_id=message_id, now=time.time() - ago, digest=digest)}


async def send(url: str, said: str | Mapping[str, Any], metadata: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """One message of protocol 0.3, and what came of it."""
    part = {"kind": "text", "text": said} if isinstance(said, str) else {"kind": "data", "data": dict(said)}
    message_id = fields.pop("message_id", None) or uuid4().hex
    message = {"role": "user", "messageId": message_id, "parts": [part], "metadata": dict(metadata), **fields}
    call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
    async with httpx.AsyncClient(timeout=30) as http:
        answer: dict[str, Any] = (await http.post(url, json=call)).json()
    return answer


def users(answer: Mapping[str, Any]) -> list[str | None]:
    """The users of the messages of a stored task."""
    messages = [message for message in answer["result"]["history"] if message["role"] == "user"]
    assert all("user_token" not in message.get("metadata", {}) for message in messages)
    return [message.get("metadata", {}).get("user") for message in messages]


async def test_a_signed_user_is_accepted_logged_and_stored_but_never_shown_to_a_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen()
    caplog.set_level(logging.INFO)
    async with watched(tmp_path, seen, ["argocd"], USER_SIGNING_KEY=KEY) as caller:
        question = "argocd and jira, please"
        asked = await send(caller.url, question, signed(JANE, "m-1", question), message_id="m-1")
        assert asked["result"]["status"]["state"] == "input-required"
        assert users(asked) == [JANE.id]
        lines = [record.getMessage() for record in caplog.records if JANE.id in record.getMessage()]
        # The supervisor's line, and that of the agent on a server of its own, which believes its supervisor.
        assert len(lines) == 2
        assert all(asked["result"]["metadata"]["trace_id"] in line for line in lines)
        caplog.clear()

        task = {"taskId": asked["result"]["id"], "contextId": asked["result"]["contextId"]}
        resume = {"resume": {"values": {"name": "guestbook", "replicas": 2}}}
        forms = [
            part["data"] for artifact in asked["result"]["artifacts"] for part in artifact["parts"] if "data" in part
        ]
        for number, form in enumerate(form for form in forms if form.get("user_input")):
            resume["resume"]["form_id"] = form["form_id"]
            message_id = f"r-{number}"
            proof = signed(OMAR, message_id, resume, context=task["contextId"], task=task["taskId"])
            answered = await send(caller.url, resume, proof, message_id=message_id, **task)
        assert answered["result"]["status"]["state"] == "completed"
        assert users(answered) == [JANE.id, OMAR.id, OMAR.id]
        assert any(OMAR.id in record.getMessage() for record in caplog.records)
        assert not any(JANE.id in record.getMessage() for record in caplog.records)
    assert {who for who, _, _ in seen.turns} == {"supervisor", "argocd", "jira"}
    for turn in seen.turns:
        for user in (JANE, OMAR):
            assert user.id not in str(turn)
            assert user.name not in str(turn)


@pytest.mark.parametrize(
    ("proof", "why"),
    [
        (signed(JANE, "m-2"), "another message"),
        (signed(JANE, "m-1", key="guessed"), "not signed with the key"),
        (signed(JANE, "m-1", ago=400), "expired"),
        (signed(JANE, "m-1", "delete it all"), "does not cover this content"),
        (signed(JANE, "m-1", context="another conversation"), "does not cover this content"),
        ({"user_token": sign_user(KEY, JANE, message_id="m-1", now=time.time())}, "does not cover this content"),
        ({"user_token": "jane"}, "not signed with the key"),
        ({"user_token": {"sub": "jane"}}, "not signed with the key"),
        ({**signed(JANE, "m-2"), "user": JANE.id}, "another message"),
    ],
)
async def test_a_proof_that_does_not_hold_is_refused(tmp_path: Path, proof: Mapping[str, Any], why: str) -> None:
    seen = Seen()
    async with watched(tmp_path, seen, USER_SIGNING_KEY=KEY) as caller:
        refused = await send(caller.url, "jira, please", proof, message_id="m-1")
        assert refused["error"]["code"] == -32602
        assert "message.metadata.user_token" in refused["error"]["message"]
        assert why in refused["error"]["message"]
        async with httpx.AsyncClient() as http:
            assert not (await http.get(f"{caller.url}/tasks")).json()["tasks"]
    assert not seen.turns


async def test_a_statement_is_used_once(tmp_path: Path) -> None:
    async with watched(tmp_path, Seen(), USER_SIGNING_KEY=KEY) as caller:
        proof = signed(JANE, "m-1", "no agent")
        first, second = [await send(caller.url, "no agent", proof, message_id="m-1") for _ in range(2)]
        assert first["result"]["id"] == second["result"]["id"]
        async with httpx.AsyncClient() as http:
            assert len((await http.get(f"{caller.url}/tasks")).json()["tasks"]) == 1


async def test_an_answer_without_a_proof_is_not_of_the_one_who_asked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with watched(tmp_path, Seen(), USER_SIGNING_KEY=KEY) as caller:
        asked = await send(caller.url, "jira, please", signed(JANE, "m-1"), message_id="m-1")
        caplog.set_level(logging.INFO)
        caplog.clear()
        resume = {"resume": {"values": {"name": "guestbook", "replicas": 2}}}
        answered = await send(caller.url, resume, {"user": JANE.id}, taskId=asked["result"]["id"])
        assert users(answered) == [JANE.id, None]
        assert not any(JANE.id in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("claim", [{"user": "jane"}, {"user": "jane", "delegated": True}])
async def test_with_a_key_set_a_user_without_a_proof_is_dropped(tmp_path: Path, claim: Mapping[str, Any]) -> None:
    async with watched(tmp_path, Seen(), USER_SIGNING_KEY=KEY) as caller:
        assert users(await send(caller.url, "no agent", claim)) == [None]


async def test_without_one_people_are_who_they_say(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with watched(tmp_path, Seen()) as caller:
        assert users(await send(caller.url, "no agent", {"user": "jane"})) == ["jane"]
        for number in range(2):
            message_id = f"m-{number}"
            assert users(await send(caller.url, "no agent", signed(JANE, message_id), message_id=message_id)) == [None]
    assert sum("USER_SIGNING_KEY" in record.getMessage() for record in caplog.records) == 1
