"""What a caller may not see is in no result, no list and no hint, in the supervisor and at a server of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.tools import BaseTool, ToolException

from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.identity.principal_token import PRINCIPAL_HEADER, derived_key, sign_principal
from ai_platform_engineering.knowledge_bases.rag.knowledge_base import KnowledgeBase
from ai_platform_engineering.knowledge_bases.rag.visibility import AUDIENCE, seen_by
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.mcp.on_behalf_of import Requester
from ai_platform_engineering.multi_agents.platform_engineer.rag_tools import (
    KNOWLEDGE_BASE,
    KNOWLEDGE_SERVER,
    knowledge_servers,
)
from ai_platform_engineering.policy.loading import load_policy
from ai_platform_engineering.settings import Settings, load_settings
from tests.knowledge_bases.rag_servers import environ_of, rag_server

KEY = "the-key-of-the-knowledge-base"
BEARER = {"Authorization": f"Bearer {KEY}"}
POLICY = """
version: 1
rules:
  - name: HR sees salaries
    who: ["group:hr", key]
    knowledge: [hr]
    action: allow
  - name: others do not
    who: ["*"]
    knowledge: [hr]
    action: deny
"""
ADA = Principal("token", "ada", frozenset({"hr"}))
BOB = Principal("token", "bob", frozenset({"dev"}))
DOCUMENTS = {
    "hr/salaries.md": "# Salaries\n\nThe vacation of a contractor is paid with the salary.",
    "hr/vacation.md": "# Vacation\n\nVacation, vacation and vacation: everything about vacation.",
    "wiki/vacation.md": "# Deploys\n\nThere are no deploys while the release manager is on vacation.",
}

Tools = dict[str, BaseTool]
Open = Callable[[Path], AbstractAsyncContextManager[Callable[[Principal], Any]]]


async def upload(http: httpx.AsyncClient) -> None:
    for name, text in DOCUMENTS.items():
        datasource, _, path = name.partition("/")
        answer = await http.put(
            f"/rag/v1/datasources/{datasource}/documents/{path}",
            content=text.encode(),
            headers=BEARER | {"Content-Type": "text/markdown"},
        )
        assert answer.status_code == 201, answer.text


def environ_with_policy(folder: Path) -> dict[str, str]:
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    return environ_of(folder, POLICY_FILE=str(folder / "policy.yaml"), A2A_AGENTS_AUTH_KEY=KEY)


async def called(tools: Tools, name: str, **arguments: Any) -> str:
    try:
        return str(await tools[name].ainvoke(arguments))
    except ToolException as error:
        return str(error)


@asynccontextmanager
async def started(settings: Settings, **options: Any) -> AsyncIterator[Tools]:
    """The knowledge base tools of a supervisor."""
    servers = McpServers(settings, **options)
    await servers.start(knowledge_servers(settings), deadline=20)
    try:
        yield {tool.name: tool for tool in servers.tools(KNOWLEDGE_BASE)}
    finally:
        await servers.aclose()


@asynccontextmanager
async def in_process(folder: Path) -> AsyncIterator[Callable[[Principal], Any]]:
    """A supervisor whose knowledge base is in its process."""
    settings = load_settings(environ_with_policy(folder), env_file=None)
    knowledge, policy = KnowledgeBase(settings), load_policy(settings)
    for name, text in DOCUMENTS.items():
        datasource, _, path = name.partition("/")
        await knowledge.store_document(datasource, path, text.encode(), "text/markdown")
    async with started(settings, factory_arguments={KNOWLEDGE_SERVER: knowledge}) as tools:

        def as_principal(principal: Principal) -> Any:
            async def call(name: str, **arguments: Any) -> str:
                with seen_by(policy.of(principal)):
                    return await called(tools, name, **arguments)

            return call

        yield as_principal
    await knowledge.aclose()


@asynccontextmanager
async def at_a_server(folder: Path) -> AsyncIterator[Callable[[Principal], Any]]:
    """A supervisor without a policy of its own: the server applies its policy to the signed user."""
    requester: ContextVar[Requester] = ContextVar("requester")
    async with rag_server(folder, **environ_with_policy(folder)) as http:
        await upload(http)
        environ = {"DATA_DIR": str(folder), "RAG_SERVER_URL": f"{http.base_url}/mcp", "A2A_AGENTS_AUTH_KEY": KEY}
        async with started(load_settings(environ, env_file=None), requester=requester.get) as tools:

            def as_principal(principal: Principal) -> Any:
                async def call(name: str, **arguments: Any) -> str:
                    requester.set(Requester(principal))
                    return await called(tools, name, **arguments)

                return call

            yield as_principal


@pytest.mark.parametrize("opened", [in_process, at_a_server])
async def test_a_hidden_datasource_leaves_no_trace(tmp_path: Path, opened: Open) -> None:
    async with opened(tmp_path) as tools_of:
        ada, bob = tools_of(ADA), tools_of(BOB)
        # The hidden documents fit better. They take no place of the ones that can be seen.
        found = json.loads(await bob("search", query="vacation", limit=1))["results"]
        assert [row["document_id"] for row in found] == ["wiki:vacation.md"]
        found = json.loads(await ada("search", query="vacation", limit=3))["results"]
        assert {row["datasource"] for row in found} == {"hr", "wiki"}
        listed = json.loads(await bob("list_datasources"))["datasources"]
        assert [row["name"] for row in listed] == ["wiki"]
        assert "everything about vacation" in await ada("fetch_document", document_id="hr:vacation.md")
        for arguments in (
            {"name": "fetch_document", "document_id": "hr:vacation.md"},
            {"name": "fetch_document", "document_id": "hr:vacation.md#1"},
            {"name": "fetch_document", "document_id": "wiki:salaries.md"},
            {"name": "search", "query": "vacation", "datasource": "hr"},
            {"name": "search", "query": "vacation", "datasource": "hrr"},
            {"name": "search", "query": "vacation", "filters": {"document_id": "hr:vacation.md"}},
        ):
            answer = await bob(**arguments)
            asked = json.dumps(arguments)
            assert answer.startswith("There is no "), (asked, answer)
            hints = answer.partition(";")[2]
            assert "hr" not in hints, (asked, answer)


async def test_a_server_believes_only_its_own_key(tmp_path: Path) -> None:
    async with rag_server(tmp_path, **environ_with_policy(tmp_path)) as http:
        await upload(http)

        async def listed(token: str | None) -> httpx.Response:
            headers = BEARER if token is None else BEARER | {PRINCIPAL_HEADER: token}
            return await http.get("/rag/v1/datasources", headers=headers)

        def names(answer: httpx.Response) -> list[str]:
            return [row["name"] for row in answer.json()["datasources"]]

        assert names(await listed(None)) == ["hr", "wiki"], "the holder of the key is in the policy"
        assert names(await listed(sign_principal(derived_key(KEY), BOB, AUDIENCE))) == ["wiki"]
        for token, reason in (
            (sign_principal(derived_key("another-key-than-that"), ADA, AUDIENCE), "not signed with the key"),
            (sign_principal(derived_key(KEY), ADA, "another"), "for another server"),
            (sign_principal(derived_key(KEY), ADA, AUDIENCE, lambda: 1_700_000_000), "has expired"),
            ("not a token", "not signed with the key"),
        ):
            answer = await listed(token)
            assert (answer.status_code, reason in answer.json()["message"]) == (403, True), answer.text
