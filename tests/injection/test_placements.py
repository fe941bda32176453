"""A supervisor that has read a hostile document, with an agent in it and on a server of its own, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from langchain_core.language_models import BaseChatModel
from starlette.types import ASGIApp

from ai_platform_engineering.events import FinalResult
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.mcp.protocol import http_app
from ai_platform_engineering.settings import Settings
from tests.approvals.calls import Person, person, placements
from tests.knowledge_bases.library import Library
from tests.servers import serving

pytestmark = pytest.mark.long

DOCUMENT = ("fetch_document", {"document_id": "handbook:1.md"})


def models(_settings: Settings, manifest: AgentManifest | None) -> BaseChatModel:
    """The question is the port that a document tells the model to contact, perhaps after other words."""

    def supervisor(cue: ModelInput) -> Turn:
        task = ("task", {"description": cue.question, "subagent_type": "netutils"})
        return [Turn("", [DOCUMENT]), Turn("", [task]), Turn("Read.")][min(cue.turn, 2)]

    def agent(cue: ModelInput) -> Turn:
        call = ("check_port", {"host": "127.0.0.1", "port": int(cue.question.split()[-1])})
        return Turn("", [call]) if cue.turn == 0 else Turn("Checked.")

    return ScriptedChatModel(script=supervisor if manifest is None else agent)


@asynccontextmanager
async def reader(folder: Path, remote: bool) -> AsyncIterator[Person]:
    def library(_settings: Settings) -> ASGIApp:
        return http_app(Library().server(), "/mcp", stateless=True)

    environ = {"DATA_DIR": str(folder), "SANDBOX": "false", "NETUTILS_ALLOW_PRIVATE": "true"}
    async with (
        serving(library, environ) as address,
        person("netutils", environ | {"RAG_SERVER_URL": f"{address}/mcp"}, remote, models) as someone,
    ):
        yield someone


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[int, list[int]]]:
    """A port, and one entry for every connection to it."""
    connections: list[int] = []

    def connected(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], connections


@placements
async def test_a_delegation_after_a_document_contacts_nobody_without_approval(tmp_path: Path, remote: bool) -> None:
    async with reader(tmp_path, remote) as someone, listening() as (port, connections):
        await someone.say(f"Read the handbook. {port}")
        [form] = someone.forms
        assert (form.title, connections) == ("Approve check_port?", [])
        assert "This conversation contains text from fetch_document, which others can write." in form.description
        await someone.answer(type="approve")
        assert not someone.forms
        assert isinstance(someone.talk.events[-1], FinalResult)
        assert connections


@placements
async def test_a_host_that_a_person_names_needs_no_approval(tmp_path: Path, remote: bool) -> None:
    async with reader(tmp_path, remote) as someone, listening() as (port, connections):
        await someone.say(f"Is this port of 127.0.0.1 open? {port}")
        assert not someone.forms
        assert connections
