"""The audit record of a supervisor that is used over HTTP, and the commands that read it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from ai_platform_engineering.audit.record import arguments_digest
from ai_platform_engineering.cli import main
from ai_platform_engineering.events import FinalResult, InputRequired, ToolFinished
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.audited import audited
from tests.oidc_provider import PAGE, decide, providing
from tests.servers import calling, serving

KEY = "correct-horse-battery"
USER_KEY = "correct-horse-of-ci"
CHANGE = "Sync the Argo CD application guestbook"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"DATA_DIR": str(tmp_path), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0", "LOG_LEVEL": "warning"}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command over the data directory of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", str(tmp_path))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def calls(entries: list[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    return [tuple(entry.get(name, "") for name in ("kind", "agent", "tool", "outcome")) for entry in entries]


async def test_an_approved_change_is_recorded_with_its_digest_and_outcome(
    environ: dict[str, str], tmp_path: Path, run: Run
) -> None:
    async with serving(create_app, environ | {"REQUIRE_APPROVAL": "writes"}) as url, calling(url) as caller:
        events = await caller.ask(CHANGE, context_id="talk")
        assert isinstance(events[-1], InputRequired)
        assert isinstance((await caller.ask("approve", task_id=caller.task_id, context_id="talk"))[-1], FinalResult)
        stored = (await caller.http.get(f"{url}/audit?before=4")).json()["entries"]
        assert (await caller.http.delete(f"{url}/conversations/talk")).status_code == 200
    recorded = audited(
        tmp_path, "approval_requested", "approval_decided", "tool_call_started", "tool_call_finished", "data_deleted"
    )
    assert calls(recorded) == [
        ("approval_requested", "argocd", "sync_application", ""),
        ("approval_decided", "argocd", "sync_application", "approved"),
        ("tool_call_started", "argocd", "sync_application", ""),
        ("tool_call_finished", "argocd", "sync_application", "ok"),
        ("data_deleted", "", "", ""),
    ]
    assert [entry["facts"] for entry in stored] == recorded[2::-1]
    digest = arguments_digest(events[-1].forms[0].action_requests[0]["args"])
    assert {entry["arguments"] for entry in recorded[:4]} == {digest}
    assert {entry["conversation"] for entry in recorded} == {"talk"}
    assert "guestbook" not in json.dumps(recorded)

    code, output, _ = run("audit", "list", "--task", caller.task_id, "--kind", "tool_call_finished")
    assert code == 0
    assert "anonymous  argocd.sync_application, ok, task " in output
    code, output, _ = run("audit", "list", "--json", "--limit", "1", "--since", "2026-01-01")
    assert json.loads(output)["facts"]["kind"] == "data_deleted"
    assert run("audit", "list", "--subject", "jane")[1] == "There are no entries.\n"
    assert run("audit", "export", "-o", str(tmp_path / "export.jsonl"))[0] == 0
    assert run("audit", "verify", "--file", str(tmp_path / "export.jsonl"))[0] == 0
    code, output, _ = run("audit", "verify")
    assert (code, output.startswith("The record is intact: 5 entries. Head: 5:")) == (0, True)
    assert run("backup", str(tmp_path / "copy"))[0] == 0
    assert len(audited(tmp_path / "copy", "tool_call_finished")) == 1
    with closing(sqlite3.connect(tmp_path / "audit.db")) as connection, connection:
        connection.execute("DELETE FROM entry WHERE seq = 3")
    assert run("audit", "verify") == (1, "", "platform-engineer: Entry 3 was removed: entry 4 follows entry 2.\n")


async def test_sign_ins_with_openid_connect_are_recorded(environ: dict[str, str], tmp_path: Path) -> None:
    async with providing() as provider, httpx.AsyncClient() as http:
        client = {"A2A_OAUTH_ISSUER": provider.url, "OIDC_CLIENT_ID": PAGE}
        async with serving(create_app, environ | client) as url:
            provider.clients[PAGE].redirect_uris.add(f"{url}/session/callback")
            for wrong in ({"nonce": "that of another sign-in"}, {}):
                provider.alter = wrong.__ror__
                started = await http.get(f"{url}/session/start")
                decided = await decide(http, started.headers["location"])
                await http.get(decided.headers["location"])
    assert len(audited(tmp_path, "sign_in_refused")) == 1
    assert [entry["subject"] for entry in audited(tmp_path, "sign_in")] == ["ada-1815"]


async def test_sign_ins_and_refusals_are_recorded(environ: dict[str, str], tmp_path: Path) -> None:
    accepted, refused, user = ({"Authorization": f"Bearer {key}"} for key in (KEY, "another-horse", USER_KEY))
    keys = {"A2A_AUTH_SHARED_KEY": KEY, "A2A_AUTH_KEYS": f"ci:user:{USER_KEY}"}
    async with serving(create_app, environ | keys) as url, httpx.AsyncClient() as http:
        for _ in range(8):
            assert (await http.get(f"{url}/tools", headers=refused)).status_code == 401
        for _ in range(2):
            assert (await http.get(f"{url}/tools", headers=accepted)).status_code == 200
        assert (await http.get(f"{url}/tools")).status_code == 401
        assert (await http.post(f"{url}/session", json={"key": "wrong"})).status_code == 401
        assert (await http.post(f"{url}/session", json={"key": KEY})).status_code == 200
        assert (await http.delete(f"{url}/conversations/x")).json()["error"] == "csrf"
        assert (await http.get(f"{url}/audit", headers=user)).status_code == 403
        assert (await http.get(f"{url}/audit?before=x", headers=accepted)).status_code == 400
    refusals = audited(tmp_path, "sign_in_refused")
    assert [entry["count"] for entry in refusals] == [1, 2, 3, 4, 5, 8, 1]
    sign_ins = audited(tmp_path, "sign_in")
    assert [(entry["subject"], entry.get("reason", "")) for entry in sign_ins] == [
        ("key", "first use"),
        ("key", ""),
        ("key:ci", "first use"),
    ]
    denied = audited(tmp_path, "denied")
    assert [(entry["subject"], entry["reason"]) for entry in denied] == [
        ("key", "the token of the session is missing or wrong"),
        ("key:ci", "only admins may read the audit record"),
    ]


@pytest.mark.parametrize("required", ["true", "false"])
async def test_a_record_that_cannot_be_written_degrades_the_server(
    environ: dict[str, str], tmp_path: Path, required: str
) -> None:
    (tmp_path / "audit.db").mkdir()
    async with serving(create_app, environ | {"AUDIT_REQUIRED": required}) as url, calling(url) as caller:
        ends = [event for event in await caller.ask(CHANGE) if isinstance(event, ToolFinished)]
        ready = (await caller.http.get(f"{url}/readyz")).json()
        assert ready["status"] == "degraded"
        assert "audit.db cannot be used for the audit record: Is a directory" in ready["reason"]
        (tmp_path / "audit.db").rmdir()
    assert [end.ok for end in ends] == [required == "false"]
    if required == "true":
        assert "a call that may change something has to be recorded first" in (ends[0].reason or "")
    outcomes = audited(tmp_path, "denied", "tool_call_started", "tool_call_finished")
    assert [entry["kind"] for entry in outcomes] == (
        ["denied"] if required == "true" else ["tool_call_started", "tool_call_finished"]
    )


async def test_without_audit_nothing_is_written(environ: dict[str, str], run: Run) -> None:
    async with serving(create_app, environ | {"AUDIT": "off"}) as url, calling(url) as caller:
        await caller.ask(CHANGE)
        assert "audit" not in (await caller.http.get(f"{url}/metrics")).text
    assert run("audit", "list") == (0, "There are no entries.\n", "")


def test_deletions_by_commands_are_recorded(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_STORE_TYPE", "sqlite")
    assert run("memories", "forget-all", "--yes", "--user", "jane")[0] == 0
    (entry,) = audited(tmp_path, "data_deleted")
    assert (entry["via"], entry["target"].partition(" of ")[0]) == ("command line", "all memories")
