"""Feedback through the front door: kept, listed, and sent on to Langfuse."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import stat
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from ai_platform_engineering.multi_agents.platform_engineer.feedback.file import FeedbackFile, FeedbackFileError
from ai_platform_engineering.multi_agents.platform_engineer.feedback.routes import FeedbackRoutes
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings, SettingsError, load_settings
from ai_platform_engineering.utils.a2a_common.server.auth import auth_middleware
from ai_platform_engineering.utils.users import User, sign_user
from tests.langfuse_standin import LangfuseStandIn, langfuse
from tests.servers import Command, serving
from tests.utils.a2a_common.serving import until

LIKED = {"trace_id": "t-1", "message_id": "m-1", "rating": "up", "user": "jane", "surface": "slack"}
KEY = "signing-key-for-the-tests"


def routes_app(settings: Settings) -> Starlette:
    routes = FeedbackRoutes(settings)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with routes.running():
            yield

    return Starlette(routes=routes.routes(), lifespan=lifespan, middleware=auth_middleware(settings))


@asynccontextmanager
async def routes(folder: Path, **environ: str) -> AsyncIterator[httpx.AsyncClient]:
    """The two routes alone, behind the door."""
    async with (
        serving(routes_app, {"DATA_DIR": str(folder)} | environ) as url,
        httpx.AsyncClient(base_url=url) as http,
    ):
        yield http


async def listed(http: httpx.AsyncClient, **params: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await http.get("/feedback", params=params)).json()["feedback"]
    return found


async def test_the_supervisor_keeps_it_behind_its_own_door(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "SANDBOX": "true", "ENABLE_RAG": "false", "A2A_AUTH_SHARED_KEY": KEY}
    async with serving(create_app, environ) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await http.post("/feedback", json=LIKED)).status_code == 401
        assert (await http.get("/feedback")).status_code == 401
        http.headers["Authorization"] = f"Bearer {KEY}"
        user = sign_user(KEY, User("slack:T1/U1", "Jane"), message_id="t-1", now=time.time())
        assert (await http.post("/feedback", json=LIKED | {"user": user})).status_code == 201
        [kept] = await listed(http)
    assert (kept["user"], kept["user_name"], kept["rating"]) == ("slack:T1/U1", "Jane", "up")


async def test_one_opinion_of_one_person_of_one_answer(tmp_path: Path) -> None:
    async with routes(tmp_path) as http:
        first = await http.post("/feedback", json=LIKED | {"task_id": "task-1", "reason": "  quick "})
        assert (first.status_code, first.json()["replaced"]) == (201, False)
        again = await http.post("/feedback", json=LIKED | {"rating": "down", "reason": "wrong cluster"})
        assert (again.status_code, again.json()) == (200, {"id": first.json()["id"], "replaced": True})
        for other in ({"user": "omar"}, {"message_id": "m-2"}, {"trace_id": "t-2"}):
            assert (await http.post("/feedback", json=LIKED | other)).status_code == 201
        found = await listed(http)
        assert [(row["trace_id"], row["message_id"], row["user"]) for row in found] == [
            ("t-2", "m-1", "jane"),
            ("t-1", "m-2", "jane"),
            ("t-1", "m-1", "omar"),
            ("t-1", "m-1", "jane"),
        ]
        assert (found[-1]["rating"], found[-1]["reason"], "task_id" in found[-1]) == ("down", "wrong cluster", False)
        assert await listed(http, limit=2) == found[:2]
    async with routes(tmp_path) as http:
        assert await listed(http) == found, "it is still there after a restart"
    assert stat.S_IMODE((tmp_path / "feedback.sqlite").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({**LIKED, "rating": "meh"}, "rating: must be up or down"),
        ({**LIKED, "rating": 1}, "rating: must be up or down"),
        ({name: LIKED[name] for name in ("rating", "surface")}, "trace_id: must be the trace id"),
        ({**LIKED, "trace_id": " "}, "trace_id: must be the trace id"),
        ({**LIKED, "trace_id": "t" * 201}, "trace_id: must be the trace id"),
        ({**LIKED, "surface": "Slack!"}, "surface: must be a word"),
        ({**LIKED, "reason": "x" * 4001}, "reason: must be a text of at most 4000"),
        ({**LIKED, "secret-stuff": 1}, "Unknown field"),
        ([LIKED], "must be a JSON object"),
        ("up", "must be a JSON object"),
    ],
)
async def test_what_cannot_be_taken_is_said_in_a_sentence(tmp_path: Path, body: Any, why: str) -> None:
    async with routes(tmp_path) as http:
        refused = await http.post("/feedback", json=body)
        assert refused.status_code == 400
        assert why in refused.json()["message"]
        assert "secret-stuff" not in refused.text
        assert not await listed(http)


async def test_bodies_and_limits_are_bounded(tmp_path: Path) -> None:
    async with routes(tmp_path) as http:
        assert (await http.post("/feedback", content=b"x" * 40_000)).status_code == 413
        assert (await http.post("/feedback", content=b"{nonsense")).status_code == 400
        for limit in ("0", "1001", "-1", "all", "1" * 9):
            assert (await http.get("/feedback", params={"limit": limit})).status_code == 400


@pytest.mark.parametrize(
    "user",
    ["jane", sign_user("guessed", User("u"), message_id="t-1", now=time.time())],
)
async def test_with_a_key_set_nobody_speaks_for_somebody_else(tmp_path: Path, user: str) -> None:
    async with routes(tmp_path, USER_SIGNING_KEY=KEY) as http:
        refused = await http.post("/feedback", json=LIKED | {"user": user})
        assert refused.status_code == 400
        assert "user: must be signed" in refused.json()["message"]
        other = sign_user(KEY, User("u"), message_id="t-2", now=time.time())
        assert "another message" in (await http.post("/feedback", json=LIKED | {"user": other})).json()["message"]
        anonymous = {name: value for name, value in LIKED.items() if name != "user"}
        assert (await http.post("/feedback", json=anonymous)).status_code == 201
        [kept] = await listed(http)
        assert "user" not in kept


async def test_without_one_a_signature_proves_nothing(tmp_path: Path) -> None:
    async with routes(tmp_path) as http:
        user = sign_user(KEY, User("u"), message_id="t-1", now=time.time())
        assert (await http.post("/feedback", json=LIKED | {"user": user})).status_code == 201
        [kept] = await listed(http)
        assert "user" not in kept


async def test_nothing_is_written_where_nothing_is_kept(tmp_path: Path) -> None:
    async with routes(tmp_path, EVENT_LOG="memory") as http:
        await http.post("/feedback", json=LIKED)
        assert len(await listed(http)) == 1
    assert not (tmp_path / "feedback.sqlite").exists()


async def test_a_file_that_cannot_be_used_says_so_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "feedback.sqlite"
    path.write_bytes(b"this is not a database" * 100)
    async with routes(tmp_path) as http:
        refused = await http.post("/feedback", json=LIKED)
        assert refused.status_code == 503
        assert str(tmp_path) not in refused.text
    assert str(path) in caplog.text
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(FeedbackFileError, match="format 7, not 1"):
        FeedbackFile(path).newest(1)


async def test_the_command_lists_it_while_the_server_runs(tmp_path: Path, platform_engineer: Command) -> None:
    folder = tmp_path / "data"
    empty = platform_engineer("feedback", "list")
    assert (empty.returncode, empty.stdout) == (0, "There is no feedback.\n")
    async with routes(folder) as http:
        await http.post("/feedback", json=LIKED | {"reason": "two\nlines", "task_id": "task-1"})
        await http.post("/feedback", json=LIKED | {"rating": "down", "user": "omar"})
        plain = await asyncio.to_thread(platform_engineer, "feedback", "list")
        one = await asyncio.to_thread(platform_engineer, "feedback", "list", "--json", "--limit", "1")
        rows = await listed(http)
    newest, oldest = plain.stdout.splitlines()
    assert newest.split()[2:5] == ["down", "slack", "omar"]
    assert oldest.endswith("task-1  two lines")
    assert [json.loads(line) for line in one.stdout.splitlines()] == rows[:1]
    (folder / "feedback.sqlite").write_bytes(b"nonsense" * 200)
    broken = platform_engineer("feedback", "list")
    assert broken.returncode == 1
    assert "feedback.sqlite cannot be used to store feedback" in broken.stderr


def nothing_waits(folder: Path) -> bool:
    file = FeedbackFile(folder / "feedback.sqlite")
    try:
        return not file.pending(1)
    finally:
        file.close()


def scores(standin: LangfuseStandIn) -> list[Mapping[str, Any]]:
    return [{name: value for name, value in score.items() if name != "id"} for score in standin.scores.values()]


async def test_langfuse_gets_one_score_for_each_opinion(tmp_path: Path) -> None:
    async with langfuse() as standin, routes(tmp_path, **standin.environ()) as http:
        await http.post("/feedback", json=LIKED)
        await until(lambda: standin.calls == 1)
        liked = {"traceId": "t-1", "name": "user-feedback", "value": 1, "dataType": "BOOLEAN", "comment": ""}
        assert scores(standin) == [liked]
        await http.post("/feedback", json=LIKED | {"rating": "down", "reason": "wrong cluster"})
        await until(lambda: standin.calls == 2)
        assert scores(standin) == [liked | {"value": 0, "comment": "wrong cluster"}]
        assert "jane" not in str(standin.scores)
        await until(lambda: nothing_waits(tmp_path))
    async with langfuse() as other, routes(tmp_path, **other.environ()) as http:
        await http.post("/feedback", json=LIKED | {"trace_id": "t-2"})
        await until(lambda: bool(other.calls))
        assert [score["traceId"] for score in scores(other)] == ["t-2"], "what was taken is not sent again"


async def test_what_langfuse_did_not_take_is_sent_after_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    away = {"LANGFUSE_HOST": "http://127.0.0.1:9", "LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk-hidden"}
    async with routes(tmp_path, **away) as http:
        for number in range(3):
            began = time.monotonic()
            assert (await http.post("/feedback", json=LIKED | {"trace_id": f"t-{number}"})).status_code == 201
            assert time.monotonic() - began < 30
        await until(lambda: "connection refused" in caplog.text)
        await asyncio.sleep(0.1)
    warned = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warned) == 1
    assert "sk-hidden" not in caplog.text
    async with langfuse() as standin, routes(tmp_path, **standin.environ()):
        await until(lambda: len(standin.scores) == 3)
        assert [score["traceId"] for score in scores(standin)] == ["t-0", "t-1", "t-2"]


async def test_langfuse_is_tried_again_but_not_after_a_rejection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with langfuse() as standin, routes(tmp_path, **standin.environ()) as http:
        standin.codes = [400, 503]
        await http.post("/feedback", json=LIKED)
        await until(lambda: standin.calls == 1)
        await http.post("/feedback", json=LIKED | {"trace_id": "t-2"})
        await until(lambda: standin.calls == 3)
        assert [score["traceId"] for score in scores(standin)] == ["t-2"]
        assert len(await listed(http)) == 2
    assert "rejected the feedback" in caplog.text
    assert "HTTP 503" in caplog.text


async def test_wrong_keys_are_said_by_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with langfuse() as standin:
        environ = standin.environ() | {"LANGFUSE_SECRET_KEY": "sk-guessed"}
        async with routes(tmp_path, **environ) as http:
            await http.post("/feedback", json=LIKED)
            await until(lambda: "check LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY" in caplog.text)
    assert "sk-guessed" not in caplog.text


def test_a_host_without_keys_does_not_start() -> None:
    with pytest.raises(SettingsError, match="LANGFUSE_HOST needs"):
        FeedbackRoutes(load_settings({"LANGFUSE_HOST": "https://langfuse.example"}, None))
    FeedbackRoutes(load_settings({"LANGFUSE_SECRET_KEY": "sk"}, None))
