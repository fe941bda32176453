"""A supervisor over HTTP with scripted models that keep what they were sent, and with a catalog to change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from starlette.applications import Starlette

from ai_platform_engineering.agents.manifest import AgentManifest
from ai_platform_engineering.events import Event
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.llm.scripted import Cue, ScriptedChatModel, Turn
from tests.invariants import check
from tests.servers import Caller, calling, serving

QUIET = {f"ENABLE_{name}": "false" for name in ("PAGERDUTY", "GITHUB", "NETUTILS", "JIRA", "RAG")}

Part = Callable[[Cue], Turn]


def answers(_cue: Cue) -> Turn:
    return Turn("Here is the answer.")


def skill_document(name: str, description: str, instructions: str) -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{instructions}\n"


@dataclass
class Desk:
    """`cues` has what the supervisor's model was sent, one entry for each turn."""

    folder: Path
    part: Part = answers
    cues: list[Cue] = field(default_factory=list)
    platform: PlatformEngineerDeepAgent | None = None
    caller: Caller | None = None

    @property
    def skills_dir(self) -> Path:
        return self.folder / "skills"

    async def add(self, name: str, description: str, instructions: str = "Do it.") -> None:
        folder = self.skills_dir / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(skill_document(name, description, instructions))
        await self._refresh()

    async def remove(self, name: str) -> None:
        (self.skills_dir / name / "SKILL.md").unlink()
        (self.skills_dir / name).rmdir()
        await self._refresh()

    async def ask(self, question: str, context_id: str = "c") -> list[Event]:
        assert self.caller is not None
        events = await self.caller.ask(question, context_id=context_id)
        check(events)
        return events

    @property
    def prompt(self) -> str:
        """The system prompt of the last turn."""
        return str(self.cues[-1].messages[0].text)

    async def _refresh(self) -> None:
        if self.platform is not None:
            await self.platform.skills.refresh()

    def app(self, settings: Settings) -> Starlette:
        self.platform = PlatformEngineerDeepAgent(settings, models=self._model)
        return create_app(settings, self.platform)

    def _model(self, _settings: Settings, manifest: AgentManifest | None) -> BaseChatModel:
        def part(cue: Cue) -> Turn:
            if manifest is not None:
                return answers(cue)
            self.cues.append(cue)
            return self.part(cue)

        return ScriptedChatModel(part=part)


@asynccontextmanager
async def desk(folder: Path, part: Part = answers, **environ: str) -> AsyncIterator[Desk]:
    here = Desk(folder, part)
    here.skills_dir.mkdir(exist_ok=True)
    settings = {"DATA_DIR": str(folder / "data"), "SKILLS_DIR": str(here.skills_dir), **QUIET, **environ}
    async with serving(here.app, settings) as url, calling(url) as caller:
        here.caller = caller
        yield here
