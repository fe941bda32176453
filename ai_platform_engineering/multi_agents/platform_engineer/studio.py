"""The supervisor's graph for LangGraph Studio (`langgraph dev`, configured by `langgraph.json`).

`app` has no routes: its lifespan starts the agents with Studio's server and stops them with it. `graph` is the factory
that the server calls for every request. There is no A2A server and no event log, and the checkpointer is Studio's.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from starlette.applications import Starlette

from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.settings import SettingsError, load_settings
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext

# Studio's server rejects every blocking call on its event loop, `os.getcwd` among them. SQLite statements run on the
# loop on purpose. The server reads this variable after it has imported this module; `--allow-blocking` sets it, too.
os.environ["LANGGRAPH_ALLOW_BLOCKING"] = "true"


def _new_id() -> str:
    return uuid4().hex


@dataclass(frozen=True, slots=True)
class StudioContext(RequestContext):
    """The context of a run in Studio, which sends none of its own."""

    context_id: str = field(default_factory=_new_id)
    task_id: str = field(default_factory=_new_id)
    trace_id: str = field(default_factory=_new_id)
    stream_sub_agent_text: bool = True
    resumed: bool = True
    """Studio does not say whether a run answers a form. With `True`, remote agents look for an open form first."""


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    settings = load_settings()
    if not settings.langgraph_dev:
        raise SettingsError("LangGraph Studio has its own checkpointer: set LANGGRAPH_DEV=true.")
    supervisor = PlatformEngineerDeepAgent(settings)
    await supervisor.start()
    app.state.supervisor = supervisor
    try:
        yield
    finally:
        await supervisor.aclose()


app = Starlette(lifespan=_lifespan)


def graph() -> Graph:
    """The supervisor's current graph."""
    supervisor: PlatformEngineerDeepAgent = app.state.supervisor
    return supervisor.graph.copy({"context_schema": StudioContext})
