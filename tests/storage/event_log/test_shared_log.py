"""Two supervisors and the commands on one event log in Postgres."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ai_platform_engineering.events import FinalResult
from tests.conftest import Command
from tests.invariants import check
from tests.servers import Caller, CommandLine, calling
from tests.services.postgres import PASSWORD, PostgresServer, new_database

pytest_plugins = ("tests.services.fixtures",)

pytestmark = [pytest.mark.long, pytest.mark.process]

QUESTION = "show the status of the guestbook app"
RETURN_SECONDS = 60
ROUNDS = 20


@pytest.fixture
async def environ(postgres: PostgresServer, tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    with new_database(postgres.address()) as address:
        yield {"EVENT_LOG": "postgres", "LANGGRAPH_CHECKPOINT_POSTGRES_DSN": address}


def at(environ: dict[str, str], folder: Path) -> dict[str, str]:
    folder.mkdir()
    return {**environ, "DATA_DIR": str(folder), "SANDBOX": "true", "LOG_LEVEL": "warning"}


async def answer(caller: Caller, context: str) -> str:
    ending = check(await caller.ask(QUESTION, context_id=context))
    assert isinstance(ending, FinalResult)
    return ending.text


async def rpc(url: str, method: str, **params: object) -> dict[str, object]:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with httpx.AsyncClient(timeout=RETURN_SECONDS) as http:
        answered: dict[str, object] = (await http.post(url, json=body)).json()
    return answered


async def health(url: str) -> tuple[int, str]:
    async with httpx.AsyncClient(timeout=RETURN_SECONDS) as http:
        response = await http.get(f"{url}/readyz")
    return response.status_code, response.json()["status"]


async def test_any_supervisor_answers_for_the_tasks_of_all(environ: dict[str, str], tmp_path: Path) -> None:
    async with (
        CommandLine(["serve", "--port", "0"], at(environ, tmp_path / "one")) as one,
        CommandLine(["serve", "--port", "0"], at(environ, tmp_path / "two")) as two,
        calling(one.url) as caller,
        calling(two.url) as other,
    ):
        first = asyncio.Event()
        seen: list[float] = []

        async def ask() -> None:
            async for update in caller.updates(QUESTION, context_id="talk"):
                metadata = update.artifact_update.artifact.metadata or update.status_update.metadata
                if "seq" in metadata:
                    seen.append(metadata["seq"])
                    first.set()

        asking = asyncio.create_task(ask())
        await asyncio.wait_for(first.wait(), RETURN_SECONDS)
        followed = []
        async with (
            httpx.AsyncClient(timeout=RETURN_SECONDS) as http,
            http.stream(
                "POST",
                two.url,
                json={"jsonrpc": "2.0", "id": 1, "method": "tasks/resubscribe", "params": {"id": caller.task_id}},
                headers={"Last-Event-ID": "0"},
            ) as response,
        ):
            async for line in response.aiter_lines():
                if line.startswith("id:"):
                    followed.append(int(line.partition(":")[2]))
        await asyncio.wait_for(asking, RETURN_SECONDS)
        assert followed[-1] == seen[-1]
        assert [number for number in followed if number] == [*range(1, followed[-1] + 1)]

        both = [await rpc(url, "tasks/get", id=caller.task_id) for url in (one.url, two.url)]
        assert both[0] == both[1]
        assert "guestbook" in await answer(other, "talk")


async def streamed(url: str, text: str, message_id: str, context: str) -> list[tuple[str, dict[str, Any]]]:
    """The numbers and the results of a stream."""
    message = {
        "messageId": message_id,
        "contextId": context,
        "role": "user",
        "parts": [{"kind": "text", "text": text}],
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {"message": message}}
    found = []
    async with httpx.AsyncClient(timeout=RETURN_SECONDS) as http, http.stream("POST", url, json=body) as response:
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if name == "id":
                number = value
            elif name == "data":
                found.append((number, json.loads(value)["result"]))
    return found


async def test_a_message_that_arrives_at_two_supervisors_at_once_is_worked_on_once(
    environ: dict[str, str], tmp_path: Path
) -> None:
    environ |= {"REQUIRE_APPROVAL_OVERRIDES": "argocd.version_service__version=always", "OFFLINE_MODEL_DELAY": "0"}
    async with (
        CommandLine(["serve", "--port", "0"], at(environ, tmp_path / "one")) as one,
        CommandLine(["serve", "--port", "0"], at(environ, tmp_path / "two")) as two,
    ):
        for number in range(ROUNDS):
            context = f"c{number}"
            for text in ("show argocd version", "approve"):
                streams = (streamed(url, text, f"{text} {number}", context) for url in (one.url, two.url))
                here, there = await asyncio.wait_for(asyncio.gather(*streams), RETURN_SECONDS)
                assert here[0][1]["id"] == there[0][1]["id"]
                assert here[1:] == there[1:]
            listed: Any = await rpc(one.url, "ListTasks", contextId=context)
            (task,) = listed["result"]["tasks"]
            assert task["status"]["state"] == "TASK_STATE_COMPLETED"
            sent = [message["messageId"] for message in task["history"] if message["role"] == "ROLE_USER"]
            assert sent == [f"show argocd version {number}", f"approve {number}"]


async def test_commands_read_and_delete_what_is_in_the_database(
    environ: dict[str, str], tmp_path: Path, platform_engineer: Command
) -> None:
    async with CommandLine(["serve", "--port", "0"], at(environ, tmp_path / "one")) as one, calling(one.url) as caller:
        await answer(caller, "talk")
        task_id = caller.task_id

    def run(*arguments: str) -> str:
        completed = platform_engineer(*arguments, SANDBOX="true", **environ)
        assert completed.returncode == 0, completed.stderr
        return completed.stdout

    listed = [json.loads(line) for line in run("tasks", "list", "--json").splitlines()]
    assert [(row["id"], row["context_id"], row["state"]) for row in listed] == [(task_id, "talk", "completed")]
    assert f"> {QUESTION}" in run("tasks", "show", task_id[:8])
    assert json.loads(run("tasks", "show", task_id, "--json"))["id"] == task_id
    assert len(run("tasks", "export", task_id).splitlines()) > 3
    assert "talk" in run("conversations", "list")
    assert "guestbook" in run("conversations", "show", "tal")
    assert "deleted, with 1 task" in run("conversations", "delete", "talk", "--yes")
    assert run("tasks", "list") == "There are no tasks.\n"
    missing = platform_engineer("tasks", "show", task_id, **environ)
    assert missing.returncode != 0
    assert "Postgres at " in missing.stderr
    assert PASSWORD not in missing.stderr
    assert '"tasks"' in run("doctor", "--offline", "--json")


async def test_without_its_database_a_supervisor_is_not_ready(
    environ: dict[str, str], tmp_path: Path, postgres: PostgresServer
) -> None:
    async with CommandLine(["serve", "--port", "0"], at(environ, tmp_path / "one")) as one, calling(one.url) as caller:
        assert await health(one.url) == (200, "ready")
        await asyncio.to_thread(postgres.stop)
        try:
            async with asyncio.timeout(RETURN_SECONDS):
                while await health(one.url) != (503, "degraded"):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            sent = await rpc(
                one.url,
                "message/send",
                message={"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": QUESTION}]},
            )
            assert "database" in json.dumps(sent["error"])
            assert PASSWORD not in json.dumps(sent)
        finally:
            await asyncio.to_thread(postgres.start)
        async with asyncio.timeout(RETURN_SECONDS):
            while await health(one.url) != (200, "ready"):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert "guestbook" in await answer(caller, "talk")


def test_a_start_without_the_database_names_the_setting(environ: dict[str, str], platform_engineer: Command) -> None:
    elsewhere = environ["LANGGRAPH_CHECKPOINT_POSTGRES_DSN"].replace("test_", "missing_")
    started = platform_engineer("serve", "--port", "0", EVENT_LOG="postgres", EVENT_LOG_POSTGRES_DSN=elsewhere)
    assert started.returncode == 2
    assert "cannot be used as the event log" in started.stderr
    assert "EVENT_LOG_POSTGRES_DSN" in started.stderr
    assert PASSWORD not in started.stderr
