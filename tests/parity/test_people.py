"""Placement cannot be seen by the people who are asked: forms, approvals and their answers give the same events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from ai_platform_engineering.sandbox.store import reset_sandbox, sandbox_path
from tests.invariants import check_task
from tests.normalised import NormalCall, NormalRun, normalised
from tests.people.dialogues import AGENTS, Dialogue, placed, placements


async def form_then_submit(talk: Dialogue) -> None:
    (form,) = await talk.ask("ask jira")
    assert not await talk.answer({"values": {"name": "demo", "replicas": 3}}, form)


async def bad_value_then_good(talk: Dialogue) -> None:
    await talk.ask("ask jira")
    (again,) = await talk.answer({"values": {"name": "demo", "replicas": "many"}})
    assert again.fields[0].value == "demo"
    assert again.fields[1].error
    assert not await talk.answer({"values": {"replicas": 3}}, again)


async def form_then_cancel(talk: Dialogue) -> None:
    await talk.ask("ask jira")
    assert not await talk.answer("cancel")


async def approve(talk: Dialogue) -> None:
    (form,) = await talk.ask("argocd: roll back")
    assert form.action_requests[0]["tool"] == "rollback_application"
    assert not await talk.answer({"decisions": [{"type": "approve"}]}, form)


async def approve_for_good(talk: Dialogue) -> None:
    await talk.ask("argocd: roll back twice")
    assert not await talk.answer({"decisions": [{"type": "approve", "remember": True}]})


async def edit(talk: Dialogue) -> None:
    await talk.ask("argocd: roll back")
    decision = {"type": "edit", "edited_action": {"name": "rollback_application", "args": {"application": "guestbook"}}}
    assert not await talk.answer({"decisions": [decision]})


async def reject(talk: Dialogue) -> None:
    await talk.ask("argocd: roll back")
    assert not await talk.answer({"decisions": [{"type": "reject", "message": "not on a Friday"}]})


async def two_at_once(talk: Dialogue) -> None:
    first, second = await talk.ask("argocd and jira, ask")
    assert (first.agent, second.agent) == ("argocd", "jira")
    values = {"values": {"name": "demo", "replicas": 3}}
    assert await talk.answer(values, second) == (first,)
    (once_more,) = await talk.answer(values, second)
    assert "answered" in once_more.response
    assert not await talk.answer(values, first)


async def asked_twice(talk: Dialogue) -> None:
    (first,) = await talk.ask("ask jira twice")
    (second,) = await talk.answer({"values": {"name": "one", "replicas": 1}}, first)
    (still,) = await talk.answer({"values": {"name": "one", "replicas": 1}}, first)
    assert still.form_id == second.form_id
    assert not await talk.answer("name: two\nreplicas: 2")


STORIES: tuple[Callable[[Dialogue], Awaitable[None]], ...] = (
    form_then_submit,
    bad_value_then_good,
    form_then_cancel,
    approve,
    approve_for_good,
    edit,
    reject,
    two_at_once,
    asked_twice,
)


@pytest.mark.timeout(300)
async def test_people_cannot_see_where_agents_run(tmp_path: Path) -> None:
    results: dict[tuple[str, ...], dict[str, NormalRun]] = {}
    for remote in placements(AGENTS):
        folder = tmp_path / ("+".join(remote) or "none")
        folder.mkdir()
        async with placed(folder, remote) as caller:
            results[remote] = {}
            for story in STORIES:
                reset_sandbox(sandbox_path(folder))
                talk = Dialogue(caller, story.__name__)
                await story(talk)
                check_task(talk.events)
                results[remote][story.__name__] = normalised(talk.events)
    expected = results[()]
    assert_worth_comparing(expected)
    for remote, runs in results.items():
        for name in expected:
            assert runs[name] == expected[name], f"{name} with {remote} remote"


def assert_worth_comparing(runs: Mapping[str, NormalRun]) -> None:
    """Equal runs prove nothing if they are not about what they should be about."""
    assert '"name": "demo", "replicas": 3}' in str(runs["form_then_submit"].ending)
    assert "canceled the form" in str(runs["form_then_cancel"])
    assert "not on a Friday" in str(runs["reject"].ending)
    assert "guestbook" in str(runs["edit"].ending)
    (rolled_back,) = [call for call in runs["approve_for_good"].items if isinstance(call, NormalCall)]
    assert [call.ok for call in rolled_back.inside if isinstance(call, NormalCall)] == [True, True]
    asked = [item for item in runs["two_at_once"].items if isinstance(item, tuple)]
    assert [len(forms) for _, forms in asked] == [2, 1, 1]
