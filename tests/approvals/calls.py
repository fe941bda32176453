"""A person who has an agent call tools, through the supervisor, with the agent in it or on a server of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel

from ai_platform_engineering.events import Form, ToolFinished
from ai_platform_engineering.graphs.agent_models import ModelFactory
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings
from tests.people.dialogues import Dialogue
from tests.servers import Caller, calling, serving

placements = pytest.mark.parametrize("remote", [False, True], ids=["in-process", "remote"])


@dataclass
class Person:
    """A conversation with the supervisor, and the forms that are open in it."""

    agent: str
    talk: Dialogue
    caller: Caller
    agent_url: str = ""
    forms: Sequence[Form] = field(default_factory=list)

    def signs_in(self, token: str) -> None:
        """Sends what comes next with this access token."""
        self.caller.http.headers["Authorization"] = f"Bearer {token}"

    async def ask(self, tool: str, **args: Any) -> None:
        """Has the agent make this call."""
        await self.say(json.dumps([self.agent, tool, args]))

    async def say(self, words: str) -> None:
        self.talk.task_id = ""
        self.forms = await self.talk.ask(words)

    async def answer(self, **decision: Any) -> None:
        [form] = self.forms
        self.forms = await self.talk.answer({"decisions": [decision]}, form)

    def effect_asked(self) -> str:
        """The effect that the one open form tells people, in data and in words."""
        [form] = self.forms
        [request] = form.action_requests
        assert ("This is destructive" in form.description) == (request["effect"] == "destructive")
        return str(request["effect"])

    def outcome(self) -> ToolFinished:
        """How the agent's last tool call ended."""
        return [event for event in self.talk.events if isinstance(event, ToolFinished) and event.agent == self.agent][
            -1
        ]


def scripted(_settings: Settings, manifest: AgentManifest | None) -> BaseChatModel:
    """The question is the call that the agent makes."""

    def supervisor(cue: ModelInput) -> Turn:
        call = ("task", {"description": cue.question, "subagent_type": json.loads(cue.question)[0]})
        return Turn("", [call]) if cue.turn == 0 else Turn("Asked.")

    def agent(cue: ModelInput) -> Turn:
        _, tool, args = json.loads(cue.question)
        return Turn("", [(tool, args)]) if cue.turn == 0 else Turn("Called.")

    return ScriptedChatModel(script=supervisor if manifest is None else agent)


@asynccontextmanager
async def person(
    agent: str, environ: Mapping[str, str], remote: bool, models: ModelFactory = scripted
) -> AsyncIterator[Person]:
    environ = dict(environ)
    async with AsyncExitStack() as stack:
        if remote:
            served = serving(partial(create_agent_app, name=agent, models=models), environ)
            address = await stack.enter_async_context(served)
            environ |= {"DISTRIBUTED_AGENTS": agent, f"{agent.upper()}_AGENT_URL": address}

        def app(settings: Settings) -> Any:
            return create_app(settings, PlatformEngineerDeepAgent(settings, models=models))

        caller = await stack.enter_async_context(calling(await stack.enter_async_context(serving(app, environ))))
        yield Person(agent, Dialogue(caller, "one"), caller, environ.get(f"{agent.upper()}_AGENT_URL", ""))
