"""What the models of a supervisor and its agents get to see, whatever they are asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from starlette.applications import Starlette

from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings
from tests.people.dialogues import agent_part, environ_of, supervisor_part
from tests.servers import Caller, calling, serving


class Seen:
    """One entry for each turn of a model: whose it is, its prompt, and all the messages."""

    def __init__(self) -> None:
        self.turns: list[tuple[str, str, str]] = []

    def models(self, settings: Settings, manifest: AgentManifest | None) -> BaseChatModel:
        part = supervisor_part if manifest is None else agent_part
        name = manifest.name if manifest else "supervisor"

        def play(cue: ModelInput) -> Turn:
            system, *others = cue.messages
            assert system.type == "system"
            self.turns.append((name, str(system.text), "\n".join(str(message) for message in others)))
            return part(cue)

        return ScriptedChatModel(script=play)

    def prompts(self, name: str) -> list[str]:
        found = [system for who, system, _ in self.turns if who == name]
        assert found
        return found


@asynccontextmanager
async def watched(folder: Path, seen: Seen, remote: Sequence[str] = (), **more: str) -> AsyncIterator[Caller]:
    """A supervisor, with the agents in `remote` on servers of their own, whose models are watched."""

    def app(settings: Settings) -> Starlette:
        return create_app(settings, PlatformEngineerDeepAgent(settings, models=seen.models))

    environ = environ_of(folder, remote) | {"ENABLE_RAG": "false"} | more
    async with AsyncExitStack() as stack:
        for name in remote:
            agent = serving(partial(create_agent_app, name=name, models=seen.models), environ)
            environ[f"{name.upper()}_AGENT_URL"] = await stack.enter_async_context(agent)
        url = await stack.enter_async_context(serving(app, environ))
        yield await stack.enter_async_context(calling(url))
