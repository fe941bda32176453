"""A supervisor with scripted models, agents in it or on servers of their own, and a person who talks to it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from starlette.applications import Starlette

from ai_platform_engineering.events import Event, Form, InputRequired
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings
from tests.servers import Caller, calling, serving

AGENTS = ("argocd", "jira")

ROLLBACK = ("rollback_application", {"application": "payments-api"})
ASK = (
    "request_user_input",
    {"title": "Which application?", "fields": [{"name": "name"}, {"name": "replicas", "type": "number"}]},
)


def supervisor_part(cue: ModelInput) -> Turn:
    """Hands the question to every agent that it names, then repeats what they said."""
    if cue.turn == 0:
        agents = [name for name in AGENTS if name in cue.question]
        return Turn(
            "I hand it on.", [("task", {"description": cue.question, "subagent_type": name}) for name in agents]
        )
    return Turn(f"They said: {[str(message.text) for message in cue.messages if message.type == 'tool']}")


def agent_part(cue: ModelInput) -> Turn:
    """Rolls back or asks, as the question says, once or twice, then repeats what came of it."""
    if cue.turn < (2 if "twice" in cue.question else 1):
        return Turn("Let me see.", [ROLLBACK if "roll back" in cue.question else ASK])
    said = str(cue.messages[-1].text)
    return Turn(f"The result: {said if said.startswith('{') else said.splitlines()[0]}")


def models(settings: Settings, manifest: AgentManifest | None) -> BaseChatModel:
    part = supervisor_part if manifest is None else agent_part
    return ScriptedChatModel(script=part, delay=float(settings.environ.get("SCRIPT_DELAY", "0")))


def supervisor_app(settings: Settings) -> Starlette:
    return create_app(settings, PlatformEngineerDeepAgent(settings, models=models))


@asynccontextmanager
async def placed(folder: Path, remote: Sequence[str] = (), **more: str) -> AsyncIterator[Caller]:
    """The supervisor, with the agents in `remote` on servers of their own."""
    environ = environ_of(folder, remote) | more
    async with AsyncExitStack() as stack:
        for name in remote:
            agent = serving(partial(create_agent_app, name=name, models=models), environ)
            environ[f"{name.upper()}_AGENT_URL"] = await stack.enter_async_context(agent)
        url = await stack.enter_async_context(serving(supervisor_app, environ))
        yield await stack.enter_async_context(calling(url))


def environ_of(folder: Path, remote: Sequence[str]) -> dict[str, str]:
    environ = {"DATA_DIR": str(folder), "SANDBOX": "true", "DISTRIBUTED_AGENTS": ",".join(remote)}
    return environ | {f"ENABLE_{name}": "false" for name in ("PAGERDUTY", "GITHUB", "NETUTILS")}


def placements(agents: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Every way to have some of the agents on servers of their own."""
    for size in range(len(agents) + 1):
        yield from itertools.combinations(agents, size)


class Dialogue:
    """A task from its question to its end, with what people say to it in between."""

    def __init__(self, caller: Caller, context_id: str) -> None:
        self._caller = caller
        self._context_id = context_id
        self.task_id = ""
        self.events: list[Event] = []

    async def ask(self, question: str) -> Sequence[Form]:
        return await self._say(question)

    async def answer(self, said: str | Mapping[str, Any], form: Form | None = None) -> Sequence[Form]:
        """Say something to the task: words, or the object behind `resume`."""
        if isinstance(said, str):
            return await self._say(said)
        named = {"form_id": form.form_id} if form else {}
        return await self._say({"resume": {**named, **said}})

    async def _say(self, said: str | Mapping[str, Any]) -> Sequence[Form]:
        options = {"context_id": self._context_id, "task_id": self.task_id}
        self.events += await self._caller.ask(said, metadata={"stream_sub_agent_text": True}, **options)
        self.task_id = self._caller.task_id
        return self.events[-1].forms if isinstance(self.events[-1], InputRequired) else ()
