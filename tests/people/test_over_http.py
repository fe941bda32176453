"""Forms over plain HTTP, in both protocols, as a client without any library of ours sends them."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.sandbox.records import GithubRepository
from ai_platform_engineering.sandbox.store import SandboxStore, sandbox_path
from tests.invariants import check_task
from tests.normalised import NormalRun, normalised
from tests.people.dialogues import Dialogue, placed
from tests.servers import calling, serving

OFFLINE = {"SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0"}


class Plain:
    """A client that knows JSON and one of the protocols."""

    def __init__(self, http: httpx.AsyncClient, url: str, protocol: str) -> None:
        self._http, self._url, self._protocol = http, url, protocol

    async def send(self, said: str | Mapping[str, Any], task_id: str = "") -> Any:
        """The task after a message of words or data, or the error."""
        old = self._protocol == "0.3"
        part: dict[str, Any] = {"text": said} if isinstance(said, str) else {"data": said}
        if old:
            part["kind"] = next(iter(part))
        message = {"messageId": os.urandom(8).hex(), "role": "user" if old else "ROLE_USER", "parts": [part]}
        if task_id:
            message["taskId"] = task_id
        body = {"jsonrpc": "2.0", "id": 1, "method": "message/send" if old else "SendMessage"}
        headers = {} if old else {"A2A-Version": "1.0"}
        answer = await self._http.post(self._url, json={**body, "params": {"message": message}}, headers=headers)
        data = answer.json()
        return data.get("error") or (data["result"] if old else data["result"]["task"])


def form_of(task: Any) -> Any:
    (artifact,) = [artifact for artifact in task["artifacts"] if artifact["name"] == "UserInputMetaData"]
    return next(part["data"] for part in artifact["parts"] if "data" in part)


def answer_of(task: Any) -> str:
    (artifact,) = [artifact for artifact in task["artifacts"] if artifact["name"] == "final_result"]
    return str(artifact["parts"][0]["text"])


def state_of(task: Any) -> str:
    return str(task["status"]["state"]).lower().removeprefix("task_state_").replace("_", "-")


def repositories(folder: Path, name: str) -> int:
    with SandboxStore(sandbox_path(folder)).read() as session:
        return sum(repository.name == name for repository in session.all(GithubRepository))


@pytest.mark.parametrize("protocol", ["0.3", "1.0"])
async def test_a_repository_is_created_with_two_requests_and_once_when_the_second_is_sent_twice(
    tmp_path: Path, protocol: str
) -> None:
    environ = {"DATA_DIR": str(tmp_path), **OFFLINE}
    async with serving(create_app, environ) as url, httpx.AsyncClient(timeout=60) as http:
        client = Plain(http, url, protocol)
        task = await client.send("Create GitHub Repo")
        assert state_of(task) == "input-required"
        form = form_of(task)
        assert form["user_input"] is True
        assert form["input_title"] == "Create GitHub Repo"
        resume = {"resume": {"form_id": form["form_id"], "values": {"repository": "demo-service", "private": False}}}
        first, second = await asyncio.gather(client.send(resume, task["id"]), client.send(resume, task["id"]))
        done = [answer for answer in (first, second) if "status" in answer]
        assert {state_of(answer) for answer in done} == {"completed"}
        assert all("demo-service" in answer_of(answer) for answer in done)
        refused = await client.send(resume, task["id"])
        assert "has ended" in refused["message"]
        assert repositories(tmp_path, "demo-service") == 1


@pytest.mark.parametrize("protocol", ["0.3", "1.0"])
async def test_integers_stay_integers(tmp_path: Path, protocol: str) -> None:
    async with placed(tmp_path, ("jira",)) as caller, httpx.AsyncClient(timeout=60) as http:
        client = Plain(http, caller.url, protocol)
        task = await client.send("ask jira")
        task = await client.send({"resume": {"values": {"name": "demo", "replicas": 3}}}, task["id"])
        assert '"replicas": 3}' in answer_of(task)


async def test_a_step_that_fails_stops_the_workflow_and_later_ones_are_not_done(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), **OFFLINE}
    async with serving(create_app, environ) as url, calling(url) as caller:
        talk = Dialogue(caller, "c")
        (form,) = await talk.ask("onboard service")
        assert not await talk.answer({"values": {"service": "payments-api"}}, form)
        check_task(talk.events)
        run = normalised(talk.events)
        assert [states for _, states in run.steps] == [("pending", "in_progress", "failed"), ("pending",), ("pending",)]
        assert "already" in str(run.ending)


PLACEMENTS = [
    remote
    for size in range(4)
    for remote in itertools.combinations(("argocd", "github", "jira"), size)
    if size in (0, 1, 3)
]


async def test_a_workflow_gives_the_same_events_wherever_its_agents_run(tmp_path: Path) -> None:
    results: dict[tuple[str, ...], NormalRun] = {}
    for remote in PLACEMENTS:
        folder = tmp_path / ("+".join(remote) or "none")
        folder.mkdir()
        environ = {"DATA_DIR": str(folder), **OFFLINE, "DISTRIBUTED_AGENTS": ",".join(remote)}
        async with AsyncExitStack() as stack:
            for name in remote:
                agent = serving(partial(create_agent_app, name=name), environ)
                environ[f"{name.upper()}_AGENT_URL"] = await stack.enter_async_context(agent)
            url = await stack.enter_async_context(serving(create_app, environ))
            talk = Dialogue(await stack.enter_async_context(calling(url)), "c")
            (form,) = await talk.ask("Onboard Service")
            assert not await talk.answer({"values": {"service": "ledger"}}, form)
            check_task(talk.events)
            results[remote] = normalised(talk.events)
            assert repositories(folder, "ledger") == 1
    expected = results[()]
    assert [states[-1] for _, states in expected.steps] == ["completed"] * 3
    for remote, run in results.items():
        assert run == expected, f"with {remote} remote"
