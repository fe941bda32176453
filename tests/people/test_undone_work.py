"""An agent that did not do what it was asked has failed, whatever it says, wherever it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from langchain_core.language_models import BaseChatModel

from ai_platform_engineering.events import AgentFinished, FinalResult, PlanUpdated, ToolFinished
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings
from tests.invariants import check
from tests.people.dialogues import environ_of
from tests.servers import Caller, calling, serving

GUESTBOOK = ("get_application", {"application": "guestbook"})
NO_SUCH = ("get_application", {"application": "nosuch"})


def supervisor_part(cue: ModelInput) -> Turn:
    if cue.turn == 0:
        steps = [{"content": "Look", "agent": "argocd"}, {"content": "Sum up"}]
        return Turn("", [("write_todos", {"title": "Look", "steps": steps})])
    if cue.turn == 1:
        return Turn("", [("task", {"description": cue.question, "subagent_type": "argocd"})])
    return Turn(f"It said: {cue.messages[-1].text}")


def agent_part(cue: ModelInput) -> Turn:
    calls = {"does nothing": [], "fails": [NO_SUCH], "fails in part": [NO_SUCH, GUESTBOOK]}
    if cue.turn == 0 and (wanted := calls.get(cue.question, [])):
        return Turn("", wanted)
    metadata = {"not_done": "No tool fits."} if cue.question == "does nothing" else {}
    return Turn("I looked around.\n\nAll is well.", metadata=metadata)


def models(_: Settings, manifest: AgentManifest | None) -> BaseChatModel:
    return ScriptedChatModel(script=supervisor_part if manifest is None else agent_part)


@asynccontextmanager
async def placed(folder: Path, remote: Sequence[str]) -> AsyncIterator[Caller]:
    environ = environ_of(folder, remote)
    async with AsyncExitStack() as stack:
        for name in remote:
            app = partial(create_agent_app, name=name, models=models)
            environ["ARGOCD_AGENT_URL"] = await stack.enter_async_context(serving(app, environ))
        supervisor = lambda settings: create_app(settings, PlatformEngineerDeepAgent(settings, models=models))  # noqa: E731
        url = await stack.enter_async_context(serving(supervisor, environ))
        yield await stack.enter_async_context(calling(url))


@pytest.mark.parametrize("remote", [(), ("argocd",)], ids=["inside", "remote"])
async def test_an_agent_whose_work_was_not_done_has_failed(tmp_path: Path, remote: tuple[str, ...]) -> None:
    async with placed(tmp_path, remote) as caller:
        for question, tools, done in [
            ("does nothing", [], False),
            ("fails", [False], False),
            ("fails in part", [False, True], True),
        ]:
            events = await caller.ask(question)
            ending = check(events)
            assert isinstance(ending, FinalResult)
            assert ending.text == "It said: I looked around.\n\nAll is well.", "the supervisor reads what it said"
            assert sorted(event.ok for event in events if isinstance(event, ToolFinished)) == tools
            (finished,) = [event for event in events if isinstance(event, AgentFinished)]
            assert (finished.ok, finished.reason) == (done, None if done else "I looked around.")
            plan = [event for event in events if isinstance(event, PlanUpdated)][-1]
            assert [step.status for step in plan.steps] == ["completed" if done else "failed", "completed"]
