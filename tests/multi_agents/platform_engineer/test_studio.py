"""LangGraph Studio's server with this repository's `langgraph.json`, and the supervisor with `LANGGRAPH_DEV`."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from ai_platform_engineering.events import Failed, FinalResult
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.invariants import check
from tests.people.dialogues import Dialogue
from tests.servers import ROOT, calling, serving
from tests.services.environment import download_lock, not_here
from tests.test_docs import UVX, clean_environ

INSTALL_SECONDS = 240
START_SECONDS = 120


def documented_command() -> list[str]:
    """The command of docs/agents.md, run from another directory."""
    (command,) = UVX
    program, *words = command.words
    assert program == ".venv/bin/uvx"
    return [str(Path(sys.executable).with_name("uvx")), *(str(ROOT) if word == "." else word for word in words)]


@asynccontextmanager
async def studio(folder: Path, port: int) -> AsyncIterator[httpx.AsyncClient]:
    command = documented_command()
    environ = clean_environ(folder / "data")
    installing = [*command[: command.index("dev")], "--version"]
    with download_lock("uvx"):
        installed = await asyncio.to_thread(
            subprocess.run, installing, env=environ, cwd=folder, capture_output=True, timeout=INSTALL_SECONDS
        )
    if installed.returncode != 0:
        not_here(f"langgraph-cli cannot be installed: {installed.stderr.decode(errors='replace')[-400:]}")
    with (folder / "output").open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command,
            *("--config", str(ROOT / "langgraph.json"), "--port", str(port), "--no-reload"),
            env={**environ, "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0"},
            cwd=folder,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
            await asyncio.wait_for(answering(http, process), START_SECONDS)
            yield http
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def answering(http: httpx.AsyncClient, process: asyncio.subprocess.Process) -> None:
    while True:
        try:
            if (await http.get("/ok")).is_success:
                return
        except httpx.TransportError:
            assert process.returncode is None, "langgraph dev has stopped"
        await asyncio.sleep(0.1)


async def run(http: httpx.AsyncClient, thread_id: str, **work: Any) -> Any:
    response = await http.post(f"/threads/{thread_id}/runs/wait", json={"assistant_id": "platform_engineer", **work})
    return response.raise_for_status().json()


def question(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


@pytest.mark.slow
@pytest.mark.timeout(INSTALL_SECONDS + START_SECONDS + 120)
async def test_studio_answers_questions_and_resumes_after_a_form(tmp_path: Path, unused_port: int) -> None:
    async with studio(tmp_path, unused_port) as http:
        thread_id = (await http.post("/threads", json={})).raise_for_status().json()["thread_id"]
        answered = await run(http, thread_id, input=question("show argocd version"))
        assert "v3.1.8" in answered["messages"][-1]["content"]

        waiting = await run(http, thread_id, input=question("Create GitHub Repo"))
        (form,) = waiting["__interrupt__"]
        assert form["value"]["input_title"] == "Create GitHub Repo"
        done = await run(
            http, thread_id, command={"resume": {"values": {"repository": "demo-service", "private": False}}}
        )
        assert "demo-service" in done["messages"][-1]["content"]
        state = (await http.get(f"/threads/{thread_id}/state")).raise_for_status().json()
        questions = [message["content"] for message in state["values"]["messages"] if message["type"] == "human"]
        assert questions == ["show argocd version", "Create GitHub Repo"]
    assert "there is no such setting" not in (tmp_path / "output").read_text(errors="replace")


async def test_a_form_fails_with_a_sentence_where_no_conversation_is_stored(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0"}
    async with serving(create_app, environ) as url, calling(url) as caller:
        talk = Dialogue(caller, "begun-before")
        assert await talk.ask("Create GitHub Repo")

    async with serving(create_app, {**environ, "LANGGRAPH_DEV": "true"}) as url, calling(url) as caller:
        answered = await caller.ask({"resume": {"values": {"repository": "demo"}}}, context_id="begun-before")
        for ending in (answered[-1], check(await caller.ask("Create GitHub Repo"))):
            assert isinstance(ending, Failed)
            assert "LANGGRAPH_DEV is set" in ending.message
        assert isinstance(check(await caller.ask("show argocd version")), FinalResult)
