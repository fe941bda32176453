"""What runs use is counted for the person who asks, and budgets stop them with a sentence. Everything over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from a2a.utils.errors import A2AError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages.ai import UsageMetadata
from starlette.applications import Starlette

from ai_platform_engineering.cli.entry import main
from ai_platform_engineering.events import AgentFinished, Failed, FinalResult, InputRequired, ToolFinished
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.wire import Decoder
from tests.invariants import check
from tests.people.dialogues import agent_part, supervisor_part
from tests.servers import Caller, calling, serving

pytest_plugins = ("tests.services.fixtures",)

ADMIN, ANN, BOB = (f"{name}-0123456789abcdef" for name in ("admin", "ann", "bob"))
KEYS = {"A2A_AUTH_KEYS": f"ops:admin:{ADMIN}, ann:user:{ANN}, bob:user:{BOB}"}


def used(tokens: int) -> UsageMetadata:
    """Of one turn: as many input tokens, of which two are cached, and ten output tokens."""
    return UsageMetadata(
        input_tokens=tokens, output_tokens=10, total_tokens=tokens + 10, input_token_details={"cache_read": 2}
    )


def models(settings: Settings, manifest: AgentManifest | None) -> BaseChatModel:
    def part(cue: ModelInput) -> Turn:
        turn = supervisor_part(cue) if manifest is None else agent_part(cue)
        silent = "unreported" in cue.question
        return Turn(turn.text, turn.calls, usage=None if silent else used(100 if manifest is None else 1000))

    return ScriptedChatModel(script=part, delay=float(settings.environ.get("SCRIPT_DELAY", "0")))


def app_of(settings: Settings) -> Starlette:
    return create_app(settings, PlatformEngineerDeepAgent(settings, models=models))


@asynccontextmanager
async def platform(folder: Path, *, remote: bool = False, budgets: str = "", **more: str) -> AsyncIterator[Caller]:
    environ = {"DATA_DIR": str(folder), "SANDBOX": "true", "ENABLE_RAG": "false", "REQUIRE_APPROVAL": "never", **more}
    if budgets:
        path = folder / "budgets.yaml"
        path.write_text(f"version: 1\ncurrency: EUR\nprices: {{scripted: {{input: 1, output: 2}}}}\nlimits: {budgets}")
        environ["BUDGETS_FILE"] = str(path)
    async with AsyncExitStack() as stack:
        if remote:
            agent = partial(create_agent_app, name="argocd", models=models)
            address = await stack.enter_async_context(serving(agent, environ))
            environ |= {"DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": address}
        url = await stack.enter_async_context(serving(app_of, environ))
        yield await stack.enter_async_context(calling(url))


async def usage_of(here: Caller, key: str = "", **params: str) -> dict[str, Any]:
    response = await here.http.get(f"{here.url}/usage", params=params, headers=_bearer(key))
    found: dict[str, Any] = response.json()
    return found


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def counted(facts: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """The counts of each model, without times and zeros."""
    return {
        row["model"]: {name: row[name] for name in row if name not in {"day", "scope", "model", "run_ms"} and row[name]}
        for row in facts["usage"]
    }


QUESTION = "argocd: roll back"
SUPERVISOR = {"calls": 2, "input_tokens": 200, "output_tokens": 20, "cached_tokens": 4}
AGENT = {"calls": 2, "input_tokens": 2000, "output_tokens": 20, "cached_tokens": 4}
BOTH = {name: SUPERVISOR[name] + AGENT[name] for name in AGENT}


@pytest.mark.parametrize("remote", [False, True])
async def test_a_run_counts_for_the_caller_wherever_its_agents_run(tmp_path: Path, remote: bool) -> None:
    async with platform(tmp_path, remote=remote) as here:
        assert isinstance(check(await here.ask(QUESTION)), FinalResult)
        assert counted(await usage_of(here)) == {"": {"runs": 1}, "scripted": {**BOTH, "unpriced": 4}}
        await here.ask("unreported: argocd: roll back")
        twice = {**BOTH, "unpriced": 4, "calls": 8, "unreported": 4}
        assert counted(await usage_of(here)) == {"": {"runs": 2}, "scripted": twice}
    (tmp_path / "again").mkdir()
    async with platform(tmp_path) as here:
        assert counted(await usage_of(here)) == {"": {"runs": 2}, "scripted": twice}, "after a restart"


async def said(here: Caller, text: str, key: str = "", path: str = "", **message: Any) -> dict[str, Any]:
    """The response to a message in protocol 0.3."""
    parts = [{"kind": "text", "text": text}]
    sent = {"role": "user", "kind": "message", "messageId": uuid4().hex, "parts": parts, **message}
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": sent}}
    response = await here.http.post(f"{here.url}{path}", json=body, headers={**_bearer(key), "A2A-Version": "0.3"})
    found: dict[str, Any] = response.json()
    return found


async def test_each_principal_has_its_own_counts_and_admins_see_all(tmp_path: Path) -> None:
    budgets = "[{name: small, who: ['key:ann', 'group:team'], day: {runs: 1, tokens: 10000, cost: 0.01}}]"
    async with platform(tmp_path, budgets=budgets, **KEYS) as here:
        assert "result" in await said(here, QUESTION, ANN)
        refusal = (await said(here, QUESTION, ANN))["error"]
        assert refusal["code"] == -32004
        assert refusal["message"].startswith("Your daily budget of 1 run is used up (1 used). It resets at 20")
        assert "result" in await said(here, QUESTION, BOB)
        assert "result" in await said(here, QUESTION, BOB)
        mine = await usage_of(here, ANN)
        priced = {**BOTH, "cost": (2200 + 2 * 40) / 1e6}
        assert counted(mine) == {"": {"runs": 1}, "scripted": priced}
        assert {row["scope"] for row in mine["usage"]} == {mine["subject"]} == {"key:ann"}
        assert [(limit["kind"], limit["used"], limit["percent"]) for limit in mine["limits"]] == [
            ("tokens", 2240, 22),
            ("cost", pytest.approx(0.00228), 22),
            ("runs", 1, 100),
        ]
        assert mine["warning"].startswith("100 % of your daily budget of 1 run are used (1).")
        assert (await usage_of(here, BOB, subject="key:ann"))["error"] == "forbidden"
        assert (await usage_of(here, BOB, days="0"))["error"] == "invalid_request"
        assert (await usage_of(here, ADMIN, subject="key:ann"))["limits"] == mine["limits"]
        everybody = await usage_of(here, ADMIN, all="true")
        assert {row["scope"]: row["runs"] for row in everybody["usage"] if row["runs"]} == {"key:ann": 1, "key:bob": 2}


async def test_a_refused_message_starts_nothing_and_may_be_sent_later(tmp_path: Path) -> None:
    async with platform(tmp_path, budgets="[{who: ['*'], day: {runs: 1}}]") as here:
        await here.ask(QUESTION, context_id="c")
        with pytest.raises(A2AError, match=r"daily budget of 1 run is used up .1 used.\. .* Nothing was started\."):
            await here.ask("argocd: again", context_id="c")
        rest = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "q"}]}}
        response = await here.http.post(f"{here.url}/message:send", json=rest, headers={"A2A-Version": "1.0"})
        assert response.status_code == 429
        tasks = await here.http.get(f"{here.url}/tasks", headers={"A2A-Version": "1.0"})
        assert len(tasks.json()["tasks"]) == 1
        assert counted(await usage_of(here))[""] == {"runs": 1}


@pytest.mark.parametrize("remote", [False, True])
async def test_an_open_form_can_be_answered_without_a_budget(tmp_path: Path, remote: bool) -> None:
    budgets = "[{who: ['*'], day: {tokens: 1120, runs: 9}}]"
    async with platform(tmp_path, remote=remote, budgets=budgets) as here:
        asked = await here.ask("argocd: which?", context_id="c")
        assert isinstance(asked[-1], InputRequired)
        task_id = here.task_id
        with pytest.raises(A2AError, match=r"1,120 tokens is used up .1,120 used"):
            await here.ask(QUESTION, context_id="d")
        values = {"resume": {"values": {"name": "payments", "replicas": 2}}}
        answered = await here.ask(values, context_id="c", task_id=task_id)
        assert isinstance(answered[-1], FinalResult)
        assert "payments" in answered[-1].text
        assert counted(await usage_of(here)) == {
            "": {"runs": 1},
            "scripted": {**BOTH, "cost": pytest.approx(0.00228)},
        }


@pytest.mark.parametrize("limit", ["tokens: 1000", "cost: 0.001"])
@pytest.mark.parametrize("remote", [False, True])
async def test_a_run_ends_before_the_model_call_that_it_has_no_budget_for(
    tmp_path: Path, remote: bool, limit: str
) -> None:
    async with platform(tmp_path, remote=remote, budgets=f"[{{who: ['*'], day: {{{limit}}}}}]") as here:
        events = await here.ask(QUESTION, context_id="c")
        ending = check(events)
        assert isinstance(ending, Failed)
        assert ending.code == "budget"
        amounts = {"tokens: 1000": "1,000 tokens is used up (1,120", "cost: 0.001": "0.0010 EUR is used up (0.0011 EUR"}
        assert f"Your daily budget of {amounts[limit]} used). It resets at" in ending.message
        assert [event.ok for event in events if isinstance(event, ToolFinished)] == [True]
        assert [event.ok for event in events if isinstance(event, AgentFinished)] == [False]
        assert "Rollback_Application" in ending.message or "rollback_application" in ending.message
        assert counted(await usage_of(here))["scripted"]["calls"] == 2


@pytest.mark.parametrize("remote", [False, True])
async def test_people_are_warned_before_the_budget_is_used_up(tmp_path: Path, remote: bool) -> None:
    async with platform(tmp_path, remote=remote, budgets="[{who: ['*'], day: {tokens: 2500, runs: 9}}]") as here:
        updates = [update async for update in here.updates(QUESTION)]
        decoder = Decoder("supervisor")
        [ending] = [event for update in updates for event in decoder.feed(update) if isinstance(event, FinalResult)]
        assert ending.budget_warning is not None
        assert ending.budget_warning.startswith("89 % of your daily budget of 2,500 tokens are used (2,240). It resets")
        assert updates[-1].status_update.metadata["budget_warning"] == ending.budget_warning


async def test_a_person_has_a_limited_number_of_runs_at_the_same_time(tmp_path: Path) -> None:
    budgets = "[{who: ['*'], concurrent_runs: 1}]"
    async with platform(tmp_path, budgets=budgets, SCRIPT_DELAY="0.05") as here:
        first = asyncio.create_task(here.ask(QUESTION, context_id="c"))
        await here.heard.wait()
        with pytest.raises(A2AError, match=r"Your limit of 1 run at the same time is reached .1 in progress"):
            await here.ask(QUESTION, context_id="d")
        assert isinstance(check(await first), FinalResult)
        assert isinstance((await here.ask("argocd: which?", context_id="e"))[-1], InputRequired)
        assert isinstance(check(await here.ask(QUESTION, context_id="f")), FinalResult), "a form is no run in progress"


async def test_a_run_over_its_time_is_ended(tmp_path: Path) -> None:
    async with platform(tmp_path, budgets="[{who: ['*'], day: {run_seconds: 1}}]", SCRIPT_DELAY="20") as here:
        ending = check(await here.ask(QUESTION))
        assert isinstance(ending, Failed)
        assert ending.code == "budget"
        assert "Your daily budget of 1 seconds of run time is used up" in ending.message


async def test_the_command_shows_the_same_as_the_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with platform(tmp_path, budgets="[{who: ['*'], day: {tokens: 2500}}]", **KEYS) as here:
        await said(here, QUESTION, ANN)
        monkeypatch.setenv("A2A_AUTH_SHARED_KEY", ANN)
        assert await asyncio.to_thread(main, ["usage", "--url", here.url]) == 0
        mine = capsys.readouterr().out
        assert "key:ann" in mine
        assert "2,200" in mine
        assert "2,240 of 2,500" in mine
        assert "89 % of your daily budget" in mine
        assert await asyncio.to_thread(main, ["usage", "--url", here.url, "--all"]) == 1
        assert "Only admins" in capsys.readouterr().err
        await usage_of(here, ANN)
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv("BUDGETS_FILE", str(tmp_path / "budgets.yaml"))
    assert await asyncio.to_thread(main, ["usage", "--days", "7", "--json"]) == 0
    assert '"scope": "key:ann"' in capsys.readouterr().out
