"""Approvals that bind, through the front door: who may decide, for how long, and that one decision runs one call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ai_platform_engineering.events import InputRequired, ToolFinished, ToolStarted
from tests.approvals.calls import Person, person, placements
from tests.servers import calling

pytestmark = pytest.mark.process

ROLLBACK = {"tool": "rollback_application", "application": "payments-api"}
ROLES = {"ada": "user", "bob": "admin", "eve": "user"}
"""Bob sees the conversation of Ada, Eve does not."""
APPROVE, REJECT = {"type": "approve"}, {"type": "reject"}


def environ_of(folder: Path, **more: str) -> dict[str, str]:
    off = {f"ENABLE_{name}": "false" for name in ("PAGERDUTY", "GITHUB", "JIRA", "NETUTILS", "RAG")}
    return {"DATA_DIR": str(folder), "SANDBOX": "true", **off, **more}


@asynccontextmanager
async def people(folder: Path, remote: bool, **more: str) -> AsyncIterator[Person]:
    """A person who is Ada at first."""
    keys = ", ".join(f"{name}:{role}:{key_of(name)}" for name, role in ROLES.items())
    more |= {"A2A_AUTH_KEYS": keys, "A2A_AGENTS_AUTH_KEY": key_of("agents")}
    async with person("argocd", environ_of(folder, **more), remote) as asked:
        sign_in(asked, "ada")
        yield asked


def key_of(name: str) -> str:
    return f"{name}-signs-in-with-this"


def sign_in(asked: Person, name: str) -> None:
    asked.signs_in(key_of(name))


def runs(asked: Person) -> int:
    """How many calls of tools of the agent have succeeded."""
    return sum(isinstance(event, ToolFinished) and event.agent == "argocd" and event.ok for event in asked.talk.events)


@placements
async def test_only_a_decider_approves_and_the_form_stays_open(tmp_path: Path, remote: bool) -> None:
    async with people(tmp_path, remote, APPROVERS="key:bob, group:sre") as asked:
        await asked.ask(**ROLLBACK)
        [form] = asked.forms
        assert form.description.endswith("Only key:bob and members of sre may approve this.")
        await asked.answer(**APPROVE)
        [again] = asked.forms
        assert again.response == "Only key:bob and members of sre may approve this. You are key:ada."
        assert (again.form_id, runs(asked)) == (form.form_id, 0)
        sign_in(asked, "bob")
        await asked.answer(**APPROVE)
        assert (asked.forms, runs(asked)) == ((), 1)


@placements
async def test_four_eyes_refuse_the_approval_but_not_the_rejection_of_ones_own_request(
    tmp_path: Path, remote: bool
) -> None:
    async with people(tmp_path, remote, APPROVAL_FOUR_EYES="true") as asked:
        await asked.ask(**ROLLBACK)
        await asked.answer(**APPROVE, remember=True)
        [again] = asked.forms
        assert "another person has to approve it" in again.response
        await asked.answer(**REJECT)
        assert (asked.forms, runs(asked)) == ((), 0)
        for _ in range(2):  # an approval of one call does not approve the next one
            await asked.ask(**ROLLBACK)
            sign_in(asked, "bob")
            await asked.answer(**APPROVE, remember=True)
            sign_in(asked, "ada")
        assert (asked.forms, runs(asked)) == ((), 2)


@placements
async def test_an_approval_that_comes_too_late_runs_nothing(tmp_path: Path, remote: bool) -> None:
    async with person("argocd", environ_of(tmp_path, APPROVAL_EXPIRY="0.001"), remote) as asked:
        await asked.ask(**ROLLBACK)
        await asked.answer(**APPROVE)
        assert (asked.forms, runs(asked)) == ((), 0)
        assert "the request for its approval expired at" in (asked.outcome().reason or "")


async def test_an_agent_refuses_a_decision_that_its_supervisor_has_not_signed(tmp_path: Path) -> None:
    async with person("argocd", environ_of(tmp_path), remote=True) as asked:
        await asked.ask(**ROLLBACK)
        [task] = (await asked.caller.http.get(f"{asked.agent_url}/tasks", headers={"A2A-Version": "1.0"})).json()[
            "tasks"
        ]
        async with calling(asked.agent_url, "argocd") as intruder:
            resume = {"resume": {"decisions": [APPROVE]}}
            events = await intruder.ask(resume, context_id=task["contextId"], task_id=task["id"])
        assert isinstance(events[-1], InputRequired)
        assert "only a decision that it has signed counts" in events[-1].forms[0].response
        assert not any(isinstance(event, ToolStarted) for event in events)
        await asked.answer(**APPROVE)
        assert (asked.forms, runs(asked)) == ((), 1)


@placements
async def test_one_approval_runs_one_call_however_often_it_is_sent(tmp_path: Path, remote: bool) -> None:
    async with person("argocd", environ_of(tmp_path), remote) as asked:
        await asked.ask(**ROLLBACK)
        await asked.answer(**APPROVE)
        with pytest.raises(Exception, match="has ended"):
            await asked.talk.answer({"decisions": [APPROVE]})
        assert runs(asked) == 1


@placements
async def test_all_that_runs_can_be_read_before_and_the_record_after_the_decision(tmp_path: Path, remote: bool) -> None:
    """The tail of a long argument is shown: nothing runs that a person could not read."""
    async with people(tmp_path, remote, APPROVERS="key:bob") as asked:
        revision = f"{'x' * 6_000} and the tail"
        await asked.ask("rollback_application", application="payments-api", note=revision)
        [form] = asked.forms
        assert form.action_requests[0]["args"]["note"] == revision
        route = f"{asked.caller.url}/approvals/{asked.talk.task_id}/{form.form_id}"
        open_record = (await asked.caller.http.get(route)).json()
        assert open_record["action_requests"][0]["args"]["note"] == revision
        assert (open_record["requested_by"], open_record["decision"]) == ("key:ada", None)
        assert open_record["may_decide"] == "Only key:bob may approve this."
        assert open_record["expires"] > open_record["created"]
        await asked.answer(**APPROVE)  # refused: the page must not show it as a decision
        sign_in(asked, "bob")
        await asked.answer(**APPROVE)
        record = (await asked.caller.http.get(route)).json()
        assert (record["decision"], record["decided_by"]) == ("approve", "key:bob")
        assert record["approved_digest"] == record["digest"] == open_record["digest"]
        assert record["used_at"] >= record["decided_at"] >= record["created"]
        page = (await asked.caller.http.get(f"{asked.caller.url}/conversations/one")).json()
        assert [decision["by"] for decision in page["tasks"][0]["decisions"]] == ["key:bob"]
        assert (await asked.caller.http.get(f"{route}x")).status_code == 404
        sign_in(asked, "eve")
        assert (await asked.caller.http.get(route)).status_code == 404
