"""The agents as they are built, over the sandbox: what waits for a person, and who remembers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel

from ai_platform_engineering.forms.answers import Approved, Rejected
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.multi_agents.agent_registry import AgentRegistry
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.settings import Settings, load_settings
from tests.approvals.conversations import Conversation

ROLLBACK = ("rollback_application", {"name": "checkout"})


def models(_settings: Settings, manifest: AgentManifest | None) -> BaseChatModel:
    """The supervisor asks argocd, twice on every question; argocd rolls back."""

    def asks(cue: ModelInput) -> Turn:
        call = ("task", {"description": "roll back", "subagent_type": "argocd"})
        return Turn("", [call]) if cue.turn < 2 else Turn("Done.")

    def rolls_back(cue: ModelInput) -> Turn:
        return Turn("", [ROLLBACK]) if cue.turn == 0 else Turn("Rolled back.")

    return ScriptedChatModel(script=asks if manifest is None else rolls_back)


@asynccontextmanager
async def conversation(tmp_path: Path, **environ: str) -> AsyncIterator[Conversation]:
    settings = load_settings({"DATA_DIR": str(tmp_path), "MCP_START_TIMEOUT": "60", **environ}, env_file=None)
    platform = PlatformEngineerDeepAgent(settings, AgentRegistry.load(settings), models=models)
    await platform.start()
    try:
        yield Conversation(platform.graph)
    finally:
        await platform.aclose()


def asked(waiting: Any) -> dict[str, Any]:
    [request] = waiting.value["action_requests"]
    return dict(request)


async def test_a_rollback_waits_and_is_remembered_by_the_supervisor(tmp_path: Path) -> None:
    async with conversation(tmp_path) as talk:
        [waiting] = await talk.ask()
        assert (asked(waiting)["agent"], asked(waiting)["tool"]) == ("argocd", "rollback_application")
        assert waiting.value["input_description"].startswith("Argo CD wants to call rollback_application with name=")
        assert await talk.answer(waiting, Approved(remember=True)) == []
        [grant] = (await talk.state())["approvals"]
        assert (grant["agent"], grant["tool"]) == ("argocd", "rollback_application")
        assert await talk.ask("again") == []


async def test_a_rejection_is_asked_for_again(tmp_path: Path) -> None:
    async with conversation(tmp_path) as talk:
        [waiting] = await talk.ask()
        [again] = await talk.answer(waiting, Rejected("not now"))
        assert asked(again) == asked(waiting)
        assert await talk.answer(again, Rejected()) == []


@pytest.mark.parametrize(
    "environ", [{"REQUIRE_APPROVAL": "never"}, {"REQUIRE_APPROVAL_OVERRIDES": "argocd.rollback_application=never"}]
)
async def test_where_the_settings_say_so_nothing_waits(tmp_path: Path, environ: dict[str, str]) -> None:
    async with conversation(tmp_path, **environ) as talk:
        assert await talk.ask() == []


def test_an_agent_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "REQUIRE_APPROVAL_OVERRIDES": "argcd.sync=always"}
    [problem] = AgentRegistry.load(load_settings(environ, env_file=None)).problems
    assert "Did you mean 'argocd'?" in problem
