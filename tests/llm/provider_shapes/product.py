"""The product with a provider's stand-in as its model: the supervisor and one agent with one tool, asked over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest
import yaml

from ai_platform_engineering.events import Event, FinalResult, ToolFinished
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.invariants import check
from tests.llm.provider_shapes.recorder import EXECUTED
from tests.llm.provider_shapes.server import ShapeServer, shape_server
from tests.llm.provider_shapes.turns import WireCall, WireFormat, WireTurn
from tests.servers import Caller, calling, serving
from tests.services.environment import not_here

AGENT = "librarian"

_conversations = count(1)


@dataclass
class Product:
    wire: WireFormat
    server: ShapeServer
    caller: Caller

    async def run(self, *turns: WireTurn, agent_text: bool = True) -> list[Event]:
        """The events of one question, for which the model takes exactly these turns."""
        EXECUTED.clear()
        self.server.play(*turns)
        events = await self.caller.ask(
            "How is guestbook?",
            context_id=f"{self.wire.name}-{next(_conversations)}",
            metadata={"stream_sub_agent_text": agent_text},
        )
        check(events)
        assert not self.server.script, "the model was asked less often than expected"
        self.server.histories()
        return events


@asynccontextmanager
async def product(wire: WireFormat, folder: Path, *, remote: bool = False) -> AsyncIterator[Product]:
    if find_spec(wire.package) is None:
        not_here(f"{wire.package} is not installed: run make setup EXTRAS=all.")
    async with AsyncExitStack() as stack:
        server = stack.enter_context(shape_server(wire))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv(wire.address_variable, server.address)
        patch.setenv("AWS_ACCESS_KEY_ID", "not-a-key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret")
        environ = environ_of(server, folder)
        if remote:
            agent = {**environ, "DATA_DIR": str(folder / "agent")}
            address = await stack.enter_async_context(
                serving(lambda settings: create_agent_app(settings, AGENT), agent)
            )
            environ |= {"DISTRIBUTED_AGENTS": AGENT, f"{AGENT.upper()}_AGENT_URL": address}
        url = await stack.enter_async_context(serving(create_app, environ))
        yield Product(wire, server, await stack.enter_async_context(calling(url)))


def environ_of(server: ShapeServer, folder: Path) -> dict[str, str]:
    agents = folder / "agents"
    agents.mkdir(parents=True)
    recorder = {"name": "recorder", "transport": "memory", "module": "tests.llm.provider_shapes.recorder:server"}
    manifest = {
        "name": AGENT,
        "prompt": "You look applications up.",
        "description": "Looks applications up.",
        "keywords": ["application"],
        "servers": [recorder],
    }
    (agents / f"{AGENT}.yaml").write_text(yaml.safe_dump(manifest))
    return {
        "AGENTS_DIR": str(agents),
        "DATA_DIR": str(folder),
        "ENABLE_RAG": "false",
        "LLM_MAX_RETRIES": "0",
        **server.wire.settings,
        server.wire.address_variable: server.address,
    }


def delegation(*, thinking: str = "") -> WireTurn:
    call = WireCall.of("task", description="Look up guestbook.", subagent_type=AGENT)
    return WireTurn(("I ask ", "the librarian."), (call,), thinking=thinking)


def look_up(name: str = "guestbook") -> WireCall:
    return WireCall.of("look_up", name=name)


def answer(*, thinking: str = "") -> WireTurn:
    return WireTurn(("All of it ", "is healthy, ", "as the librarian says."), thinking=thinking)


def final(events: list[Event]) -> FinalResult:
    ending = events[-1]
    assert isinstance(ending, FinalResult), ending
    return ending


def tools(events: list[Event]) -> list[tuple[str, bool, str]]:
    return [(event.tool, event.ok, event.reason or "") for event in events if isinstance(event, ToolFinished)]
