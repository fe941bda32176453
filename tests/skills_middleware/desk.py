"""A supervisor over HTTP with scripted models that keep what they were sent, and with a catalog to change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from starlette.applications import Starlette

from ai_platform_engineering.events import Event
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.skill import Access
from tests.invariants import check
from tests.servers import Caller, calling, serving
from tests.skills_middleware.store_contract import new_skill

QUIET = {f"ENABLE_{name}": "false" for name in ("PAGERDUTY", "GITHUB", "NETUTILS", "JIRA", "RAG")}

Part = Callable[[ModelInput], Turn]


def answers(_cue: ModelInput) -> Turn:
    return Turn("Here is the answer.")


@dataclass
class Desk:
    """`cues` has what the supervisor's model was sent, one entry for each turn."""

    folder: Path
    part: Part = answers
    cues: list[ModelInput] = field(default_factory=list)
    platform: PlatformEngineerDeepAgent | None = None
    caller: Caller | None = None

    async def add(self, name: str, description: str, instructions: str = "Do it.", **more: Any) -> None:
        """Create a skill over REST."""
        assert self.caller is not None
        content = f"---\nname: {name}\ndescription: {description}\n---\n\n{instructions}"
        response = await self.caller.http.post(f"{self.caller.url}/skills", json={"content": content, **more})
        assert response.status_code == 201, response.text

    async def add_for(self, access: Access, name: str, description: str) -> None:
        """Create a skill of any caller."""
        assert self.platform is not None
        assert self.platform.skills.store is not None
        await self.platform.skills.store.create(new_skill(name, description, access), None)

    async def remove(self, name: str) -> None:
        assert self.caller is not None
        response = await self.caller.http.delete(f"{self.caller.url}/skills/{name}", headers={"If-Match": "*"})
        assert response.status_code == 204, response.text

    async def ask(self, question: str, context_id: str = "c") -> list[Event]:
        assert self.caller is not None
        events = await self.caller.ask(question, context_id=context_id)
        check(events)
        return events

    @property
    def prompt(self) -> str:
        """The system prompt of the last turn."""
        return str(self.cues[-1].messages[0].text)

    def app(self, settings: Settings) -> Starlette:
        self.platform = PlatformEngineerDeepAgent(settings, models=self._model)
        return create_app(settings, self.platform)

    def _model(self, _settings: Settings, manifest: AgentManifest | None) -> BaseChatModel:
        def part(cue: ModelInput) -> Turn:
            if manifest is not None:
                return answers(cue)
            self.cues.append(cue)
            return self.part(cue)

        return ScriptedChatModel(script=part)


@asynccontextmanager
async def desk(folder: Path, part: Part = answers, **environ: str) -> AsyncIterator[Desk]:
    here = Desk(folder, part)
    settings = {"DATA_DIR": str(folder / "data"), **QUIET, **environ}
    async with serving(here.app, settings) as url, calling(url) as caller:
        here.caller = caller
        yield here
