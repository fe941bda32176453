"""`GET /conversations` and `GET /conversations/{id}` of a supervisor, as the web page uses them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.types.a2a_pb2 import Message, Part, Role, Task, TaskState, TaskStatus

from ai_platform_engineering.events import Event, FinalResult, InputRequired, TextDelta
from ai_platform_engineering.events_json import Asked, decode_line
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.storage.event_log.sqlite_log import SqliteEventLog
from ai_platform_engineering.utils.a2a_common.wire import StreamState, begin, encode
from tests.servers import Caller, calling, serving


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.chdir(tmp_path)
    return {"DATA_DIR": str(tmp_path / "data"), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0"}


@asynccontextmanager
async def supervisor(environ: dict[str, str]) -> AsyncIterator[tuple[Caller, httpx.AsyncClient]]:
    async with (
        serving(create_app, environ) as url,
        calling(url) as caller,
        httpx.AsyncClient(base_url=url, timeout=30) as http,
    ):
        yield caller, http


async def get(http: httpx.AsyncClient, path: str, **params: Any) -> dict[str, Any]:
    response = await http.get(path, params=params)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def events_in(task: dict[str, Any]) -> list[Event]:
    items = [decode_line(json.dumps(line)).item for line in task["events"]]
    return [item for item in items if not isinstance(item, Asked)]


@pytest.mark.parametrize("log", ["memory", "sqlite"])
async def test_a_conversation_is_listed_found_and_read(environ: dict[str, str], log: str) -> None:
    async with supervisor({**environ, "EVENT_LOG": log}) as (caller, http):
        assert await get(http, "/conversations") == {"conversations": [], "next": None}
        run = await caller.ask("show argocd version", context_id="talk")
        await caller.ask("Create GitHub Repo", context_id="form")
        task_id = caller.task_id
        page = await get(http, "/conversations", limit=1)
        (row,) = page["conversations"]
        assert (row["id"], row["name"], row["question"]) == ("form", None, "Create GitHub Repo")
        assert (row["state"], row["tasks"], row["created"] <= row["changed"]) == ("input-required", 1, True)
        rest = await get(http, "/conversations", limit=1, after=page["next"])
        assert ([row["id"] for row in rest["conversations"]], rest["next"]) == (["talk"], None)
        for search, found in (("ARGOCD version", ["talk"]), ("github", ["form"]), ("argocd github", [])):
            rows = (await get(http, "/conversations", search=search))["conversations"]
            assert [row["id"] for row in rows] == found

        talk = await get(http, "/conversations/talk")
        assert (talk["id"], talk["name"]) == ("talk", None)
        (task,) = talk["tasks"]
        assert events_in(task) == run
        assert (task["state"], task["question"], task["decisions"]) == ("completed", "show argocd version", [])
        assert [line["seq"] for line in task["events"]] == sorted(line["seq"] for line in task["events"])
        assert task["events"][-1]["seq"] == task["last_seq"] - 1, "the status after the answer is no event"
        times = [line["at"] for line in task["events"]]
        assert times == sorted(times)

        values = {"resume": {"values": {"repository": "Not valid!"}}}
        await caller.ask(values, context_id="form", task_id=task_id, metadata={"user": "ada"})
        values = {"resume": {"values": {"repository": "demo-service"}}}
        await caller.ask(values, context_id="form", task_id=task_id, metadata={"user": "ada"})
        (task,) = (await get(http, "/conversations/form"))["tasks"]
        assert task["state"] == "completed"
        (decision,) = task["decisions"]
        forms = [event.forms[0].form_id for event in events_in(task) if isinstance(event, InputRequired)]
        assert (decision["form_id"], decision["kind"], decision["by"]) == (forms[0], "values", "ada")
        assert decision["values"]["repository"] == "demo-service"
        assert task["created"] <= decision["at"] <= task["changed"]
        assert len(forms) == 2
        questions = [line["question"] for line in task["events"] if line["event"] == "asked"]
        assert (len(questions), questions[:2]) == (3, ["Create GitHub Repo", "Not valid!"])


@pytest.mark.parametrize("log", ["memory", "sqlite"])
async def test_a_conversation_is_renamed(environ: dict[str, str], log: str) -> None:
    async with supervisor({**environ, "EVENT_LOG": log}) as (caller, http):
        assert (await http.patch("/conversations/talk", json={"name": "x"})).status_code == 404
        await caller.ask("show argocd version", context_id="talk")
        for given, name in (
            ("Versions", "Versions"),
            ("  Versions\nof\tArgo \u202eCD\u0007 ", "Versions of Argo CD"),
            ("x" * 200, "x" * 200),
            ("", None),
            ("Größe", "Größe"),
            (None, None),
            (" \n", None),
        ):
            response = await http.patch("/conversations/talk", json={"name": given})
            assert (response.status_code, response.json()) == (200, {"id": "talk", "name": name})
            assert (await get(http, "/conversations/talk"))["name"] == name
            (row,) = (await get(http, "/conversations"))["conversations"]
            assert (row["name"], row["question"]) == (name, "show argocd version")
        for body in ({}, [], "Versions", {"name": 7}, {"name": ["x"]}, {"name": "x" * 201}):
            response = await http.patch("/conversations/talk", json=body)
            assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
            assert response.json()["message"].startswith("name: ")
        for content, code in ((b"{", 400), (b"\xff", 400), (b'"' + b"x" * 20_000 + b'"', 413)):
            response = await http.patch("/conversations/talk", content=content)
            assert (response.status_code, response.json()["error"]) == (code, "invalid_request")
        await http.patch("/conversations/talk", json={"name": "Kept"})
        assert (await http.delete("/conversations/talk")).status_code == 200
        await caller.ask("show argocd version", context_id="talk")
        assert (await get(http, "/conversations/talk"))["name"] is None


async def test_a_subscriber_continues_where_the_conversation_was_read(environ: dict[str, str]) -> None:
    async with supervisor({**environ, "OFFLINE_MODEL_DELAY": "0.02"}) as (caller, http):
        asking = asyncio.create_task(caller.ask("show argocd version", context_id="talk"))
        await caller.heard.wait()
        snapshots = []
        while not asking.done():
            (task,) = (await get(http, "/conversations/talk"))["tasks"]
            snapshots.append(task)
        run = await asking
        assert len({task["last_seq"] for task in snapshots}) > 2
        for task in snapshots[:: max(1, len(snapshots) // 8)]:
            headers = {"Last-Event-ID": str(task["last_seq"]), "A2A-Version": "0.3"}
            response = await http.get(f"/v1/tasks/{task['id']}:subscribe", headers=headers)
            numbers = [int(line[4:]) for line in response.text.splitlines() if line.startswith("id: ")]
            # First comes the task as of that event.
            assert numbers[0] == task["last_seq"]
            assert numbers[1:] == list(range(task["last_seq"] + 1, numbers[-1] + 1))
            assert events_in(task) == run[: len(events_in(task))]


async def test_bad_requests_are_refused(environ: dict[str, str]) -> None:
    key = "0123456789abcdef"
    async with supervisor({**environ, "A2A_AUTH_SHARED_KEY": key}) as (_, http):
        for path in ("/conversations", "/conversations/talk"):
            assert (await http.get(path)).status_code == 401
        assert (await http.patch("/conversations/talk", json={"name": "x"})).status_code == 401
        http.headers["Authorization"] = f"Bearer {key}"
        response = await http.get("/conversations/talk")
        assert response.status_code == 404
        assert response.json() == {"error": "not_found", "message": "There is no conversation 'talk'."}
        bad = {"limit": ["0", "201", "x", "-1", "²"], "after": ["x", "WzEsMl0", "WzEuNSwiYSJd"], "search": ["x" * 201]}
        for name, values in bad.items():
            for value in values:
                response = await http.get("/conversations", params={name: value})
                assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
                assert response.json()["message"].startswith(f"{name}: ")
        assert (await http.get("/skills")).status_code == 200


@pytest.mark.serial
async def test_a_conversation_of_two_thousand_events_is_read_fast(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    async with SqliteEventLog(tmp_path / "data" / "tasks.db").opened() as log:
        question = Message(message_id="q1", role=Role.ROLE_USER, parts=[Part(text="long")])
        status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        status.timestamp.GetCurrentTime()
        await log.create(Task(id="t", context_id="talk", status=status, history=[question]))
        state = StreamState("t", "talk", "trace")
        texts = [TextDelta("supervisor", "m1", f"word {number} ") for number in range(2_000)]
        answer = FinalResult("".join(text.text for text in texts), "m1")
        await log.append(
            "t", [*begin(state), *(update for event in (*texts, answer) for update in encode(state, event))]
        )
    async with supervisor(environ) as (_, http):
        await get(http, "/conversations")
        durations = []
        for _ in range(3):
            begun = time.process_time()
            (task,) = (await get(http, "/conversations/talk"))["tasks"]
            durations.append(time.process_time() - begun)
        assert len(task["events"]) == 2_002
        assert min(durations) < 0.3
