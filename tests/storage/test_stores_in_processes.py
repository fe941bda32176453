"""The supervisor's process with each store of conversations: restarts, outages and refused starts."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from a2a.types.a2a_pb2 import GetTaskRequest, TaskState

from ai_platform_engineering.events import FinalResult, InputRequired
from ai_platform_engineering.utils.a2a_common.wire import decode_task
from tests.invariants import check
from tests.servers import ROOT, Caller, CommandLine, calling
from tests.storage.stores import SERVERS, WRONG, Store, store_of, with_wrong_password

pytest_plugins = ("tests.services.fixtures",)

QUESTION = "show the status of the guestbook app"
FOLLOW_UP = "what about payments-api?"
RETURN_SECONDS = 30


async def answer(caller: Caller, text: str, context: str) -> str:
    ending = check(await caller.ask(text, context_id=context))
    assert isinstance(ending, FinalResult)
    return ending.text


async def health(url: str) -> tuple[int, dict[str, str]]:
    async with httpx.AsyncClient() as http:
        response = await http.get(f"{url}/readyz")
    return response.status_code, response.json()


async def until(url: str, status: str) -> tuple[int, dict[str, str]]:
    async with asyncio.timeout(RETURN_SECONDS):
        while (found := await health(url))[1]["status"] != status:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return found


def environ_of(store: Store, folder: Path, **more: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    base = {"SANDBOX": "true", "ENABLE_RAG": "false", "LOG_LEVEL": "warning"}
    return {**store.environ, "DATA_DIR": str(folder), **base, **more}


# The store in this process is tested with every server (`test_conversation_stores.py`).
in_each_server = pytest.mark.parametrize(
    "kind", ["postgres", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("mongodb", "redis"))]
)


@pytest.mark.parametrize("kind", ["sqlite", "memory", *SERVERS])
async def test_a_follow_up_question_after_a_restart(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """On a server the second process has another data directory: it can have the history from the store only."""
    with store_of(kind, tmp_path, request) as store:
        context = store.thread("talk")
        first = environ_of(store, tmp_path / "first")
        second = first if kind == "sqlite" else environ_of(store, tmp_path / "second")
        async with CommandLine(["--port", "0"], first) as supervisor, calling(supervisor.url) as caller:
            assert "guestbook" in await answer(caller, QUESTION, context)
            assert await health(supervisor.url) == (200, {"status": "ready"})
        async with CommandLine(["--port", "0"], second) as supervisor, calling(supervisor.url) as caller:
            said = await answer(caller, FOLLOW_UP, context)
            assert ("**Sync status:** Synced" in said) == (kind != "memory"), said


@in_each_server
async def test_a_supervisor_without_its_store_is_degraded_until_the_store_returns(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with store_of(kind, tmp_path, request) as store:
        context = store.thread("talk")
        environ = environ_of(store, tmp_path / "data", OFFLINE_MODEL_DELAY="0.02")
        with store.stopped() as start:
            async with CommandLine(["--port", "0"], environ) as supervisor, calling(supervisor.url) as caller:
                code, body = await health(supervisor.url)
                assert (code, body["status"]) == (200, "degraded")
                assert body["reason"].startswith("Conversations are in memory, because ")
                assert "guestbook" in await answer(caller, QUESTION, context)
                await asyncio.to_thread(start)
                await until(supervisor.url, "ready")

                # The server stops while a run is in progress.
                asked = asyncio.create_task(answer(caller, FOLLOW_UP, context))
                await asyncio.sleep(0.3)
                with store.stopped():
                    assert "payments-api" in await asked
                    await until(supervisor.url, "degraded")
                await until(supervisor.url, "ready")
        assert "".join(supervisor.output).count("CONVERSATIONS ARE NOT STORED") == 2
        async with CommandLine(["--port", "0"], environ) as supervisor, calling(supervisor.url) as caller:
            assert "guestbook" in await answer(caller, "and guestbook again?", context)


async def test_a_form_whose_conversation_cannot_be_read_now_is_answered_later(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with store_of("postgres", tmp_path, request) as store:
        context = store.thread("form")
        environ = environ_of(store, tmp_path / "data")
        async with CommandLine(["--port", "0"], environ) as supervisor, calling(supervisor.url) as caller:
            await caller.ask("Create GitHub Repo", context_id=context)
        with store.stopped() as start:
            async with CommandLine(["--port", "0"], environ) as supervisor, calling(supervisor.url) as caller:
                again = (await caller.ask("repository: demo-service", context_id=context))[-1]
                assert isinstance(again, InputRequired)
                (form,) = again.forms
                assert form.response.startswith("The answer was not used, because the conversation cannot be read now.")
                assert [field.value for field in form.fields if field.field_name == "repository"] == ["demo-service"]
                await asyncio.to_thread(start)
                await until(supervisor.url, "ready")
                done = (await caller.ask("repository: demo-service", context_id=context))[-1]
                assert isinstance(done, FinalResult)
                assert "demo-service" in done.text


async def test_a_killed_run_waits_for_its_store_and_continues(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with store_of("postgres", tmp_path, request) as store:
        environ = environ_of(store, tmp_path / "data", OFFLINE_MODEL_DELAY="0.05")
        async with CommandLine(["--port", "0"], environ) as supervisor, calling(supervisor.url) as caller:
            async for update in caller.updates(QUESTION, context_id=store.thread("talk")):
                if update.artifact_update.artifact.name == "tool_notification_end":
                    break
            await supervisor.stop(signal.SIGKILL)
        with store.stopped() as start:
            async with CommandLine(["--port", "0"], environ) as supervisor, calling(supervisor.url) as again:
                assert (await health(supervisor.url))[1]["status"] == "degraded"
                task = await again.client.get_task(GetTaskRequest(id=caller.task_id))
                assert task.status.state == TaskState.TASK_STATE_WORKING
                await asyncio.to_thread(start)
                async with asyncio.timeout(RETURN_SECONDS):
                    while task.status.state == TaskState.TASK_STATE_WORKING:
                        await asyncio.sleep(0.1)
                        task = await again.client.get_task(GetTaskRequest(id=caller.task_id))
                ending = check(decode_task(task))
                assert isinstance(ending, FinalResult)
                assert "guestbook" in ending.text
        assert "the run is resumed when its conversation can be read" in "".join(supervisor.output)


@in_each_server
async def test_required_persistence_refuses_the_start_and_later_readiness(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with store_of(kind, tmp_path, request) as store:
        environ = environ_of(store, tmp_path / "data", REQUIRE_PERSISTENCE="true")
        wrong = {**environ, **with_wrong_password(store), "DATA_DIR": environ["DATA_DIR"]}
        command = [sys.executable, "-m", "ai_platform_engineering.cli", "--port", "0"]
        base = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
        refused = await asyncio.to_thread(
            subprocess.run,
            command,
            env=base | wrong,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert refused.returncode == 2, refused.stderr
        assert "REQUIRE_PERSISTENCE=true does not allow conversations in memory." in refused.stderr
        assert "Traceback" not in refused.stderr
        assert WRONG not in refused.stderr + refused.stdout

        async with CommandLine(["--port", "0"], environ) as supervisor:
            with store.stopped():
                assert (await until(supervisor.url, "degraded"))[0] == 503
            assert (await until(supervisor.url, "ready"))[0] == 200
