"""The MCP server: a real client over streamable HTTP, and the transport inside the supervisor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.types import CallToolResult

from ai_platform_engineering.knowledge_bases.rag.knowledge_base import KnowledgeBase
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.multi_agents.platform_engineer.rag_tools import (
    KNOWLEDGE_BASE,
    KNOWLEDGE_SERVER,
    knowledge_servers,
)
from ai_platform_engineering.settings import load_settings
from tests.knowledge_bases.rag_servers import HANDBOOK, call, mcp_session, rag_server, text_of, upload_handbook
from tests.knowledge_bases.websites import website
from tests.servers import CommandLine

pytestmark = pytest.mark.process

KEY = "correct-horse-battery"


def found(result: CallToolResult) -> list[str]:
    assert not result.isError, text_of(result)
    assert result.structuredContent is not None
    return [each["document_id"] for each in result.structuredContent["results"]]


async def test_a_process_of_its_own_answers_from_the_documentation_of_the_product(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "EMBEDDINGS_PROVIDER": "none"}
    async with CommandLine(["rag", "serve", "--port", "0"], environ) as command:
        url = command.url.removesuffix("/mcp")
        assert url != command.url
        async with mcp_session(url) as session:
            result = await call(session, "search", query="how do I run ArgoCD remotely?", limit=3)
            assert found(result)[0].startswith("platform-engineer:")
            document = text_of(await call(session, "fetch_document", document_id=found(result)[0]))
            assert "DISTRIBUTED_AGENTS" in document
        async with httpx.AsyncClient() as http:
            assert (await http.get(f"{url}/readyz")).json() == {"status": "ready"}
            listed = (await http.get(f"{url}/rag/v1/datasources")).json()["datasources"]
        assert [each["name"] for each in listed] == ["platform-engineer"]
        assert await command.stop() == 0
    assert "Traceback" not in "".join(command.output)


async def test_the_tools_say_what_they_take_and_that_they_only_read(tmp_path: Path) -> None:
    async with rag_server(tmp_path) as http, mcp_session(str(http.base_url)) as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
    arguments = {name: set(tool.inputSchema["properties"]) for name, tool in tools.items()}
    assert arguments == {
        "search": {"query", "limit", "filters", "datasource"},
        "fetch_document": {"document_id"},
        "list_datasources": set(),
        "fetch_url": {"url"},
    }
    assert {name: tool.inputSchema.get("required", []) for name, tool in tools.items()} == {
        "search": ["query"],
        "fetch_document": ["document_id"],
        "list_datasources": [],
        "fetch_url": ["url"],
    }
    for tool in tools.values():
        assert tool.annotations is not None
        assert tool.annotations.readOnlyHint
        assert tool.description
        assert all(schema["description"] for schema in tool.inputSchema["properties"].values())


async def test_results_are_text_and_data_alike(tmp_path: Path) -> None:
    async with rag_server(tmp_path) as http, mcp_session(str(http.base_url)) as session:
        await upload_handbook(http)
        result = await call(session, "search", query="roll back a release with argocd", limit=2)
        listed = await call(session, "list_datasources")
    assert json.loads(text_of(result)) == result.structuredContent
    assert "\n" not in text_of(result)
    first = (result.structuredContent or {})["results"][0]
    assert first["document_id"] == "handbook:rollback.md"
    assert first["title"] == "Rolling back a release"
    assert first["link"] == "https://handbook.example/rollback"
    assert 0 < first["score"] <= 1
    assert "**roll" in first["snippet"].lower()
    assert "keywords alone" in (result.structuredContent or {})["note"]
    (datasource,) = json.loads(text_of(listed))["datasources"]
    assert (datasource["name"], datasource["documents"]) == ("handbook", 3)
    assert listed.structuredContent == json.loads(text_of(listed))


async def test_a_document_comes_whole_under_a_few_lines_about_it(tmp_path: Path) -> None:
    async with rag_server(tmp_path) as http, mcp_session(str(http.base_url)) as session:
        await upload_handbook(http)
        result = await call(session, "fetch_document", document_id="handbook:rollback.md")
        same = await call(session, "fetch_document", document_id=" handbook:rollback.md#3 ")
    head, _, text = text_of(result).partition("\n\n")
    title, document, source, updated = head.split("\n")
    assert (title, document) == ("Title: Rolling back a release", "Document: handbook:rollback.md")
    assert source == "Source: https://handbook.example/rollback"
    assert updated.startswith("Updated: 20")
    assert text == (HANDBOOK / "rollback.md").read_text(encoding="utf-8")
    assert (result.structuredContent or {})["text"] == text
    assert text_of(same) == text_of(result)


SLOPPY: list[tuple[dict[str, Any], int]] = [
    ({"limit": "1"}, 1),
    ({"limit": 1.7}, 1),
    ({"limit": 0}, 1),
    ({"limit": -5}, 1),
    ({"limit": 10**30}, 3),
    ({"limit": "lots"}, 3),
    ({"limit": None}, 3),
    ({"limit": []}, 3),
    ({"limit": "1e999"}, 3),
    ({"filters": ""}, 3),
    ({"filters": {}}, 3),
    ({"filters": "null"}, 3),
    ({"filters": '{"path_prefix": "on-"}'}, 1),
    ({"filters": {"path_prefix": "on-", "document_id": ""}}, 1),
    ({"filters": {"document_id": "handbook:on-call.md"}}, 1),
    ({"filters": {"updated_after": "2001-01-01"}}, 3),
    ({"filters": {"updated_after": "2999-01-01"}}, 0),
    ({"datasource": ""}, 3),
    ({"datasource": " handbook "}, 3),
]


async def test_arguments_are_taken_as_models_send_them(tmp_path: Path) -> None:
    async with rag_server(tmp_path) as http, mcp_session(str(http.base_url)) as session:
        await upload_handbook(http)
        for sloppy, results in SLOPPY:
            result = await call(session, "search", query="minute", **sloppy)
            assert len(set(found(result))) == results, sloppy


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("search", {"query": "x", "datasource": "handbok"}, "There is no datasource 'handbok'; known are handbook."),
    ("search", {"query": "x " * 10_000}, "The query is longer than 10000 characters"),
    ("search", {"query": " \n"}, "The query is empty; say in a few words what to look for."),
    ("search", {"query": "x", "filters": {"document_id": "handbook:rollback"}}, "nearest are handbook:rollback.md"),
    ("search", {"query": "x", "filters": {"team": "a"}}, "team"),
    ("search", {"query": "x", "filters": "team a"}, "filters"),
    ("fetch_document", {"document_id": "handbook:roll-back.md"}, "nearest are handbook:rollback.md"),
    ("fetch_document", {"document_id": "on-call.md"}, "nearest are handbook:on-call.md"),
    ("fetch_document", {"document_id": "zzz"}, "search gives the ids"),
    ("fetch_url", {"url": "ftp://example.com/"}, "only addresses with http:// or https://"),
    ("fetch_url", {"url": "http://127.0.0.1:1/"}, "127.0.0.1"),
    ("fetch_url", {"url": "http://169.254.169.254/latest/meta-data"}, "169.254.169.254"),
]


async def test_what_cannot_be_done_is_an_error_with_a_sentence(tmp_path: Path) -> None:
    async with rag_server(tmp_path) as http, mcp_session(str(http.base_url)) as session:
        await upload_handbook(http)
        for tool, arguments, sentence in REFUSED:
            result = await call(session, tool, **arguments)
            assert result.isError, (tool, arguments)
            assert sentence in text_of(result), (tool, arguments)


async def test_nothing_found_is_said(tmp_path: Path) -> None:
    async with rag_server(tmp_path) as http, mcp_session(str(http.base_url)) as session:
        await upload_handbook(http)
        result = await call(session, "search", query="zebra migration patterns in Kenya")
    assert found(result) == []
    assert "Nothing was found." in text_of(result)


@pytest.mark.parametrize("tool", ["search", "list_datasources", "fetch_document"])
async def test_a_store_that_cannot_be_used_is_an_error_until_it_can(tmp_path: Path, tool: str) -> None:
    arguments = {"search": {"query": "minute"}, "fetch_document": {"document_id": "handbook:on-call.md"}}.get(tool, {})
    (tmp_path / "knowledge.db").write_bytes(b"these are not the bytes of a database" * 100)
    async with rag_server(tmp_path) as http, mcp_session(str(http.base_url)) as session:
        result = await call(session, tool, **arguments)
        assert result.isError
        assert "knowledge.db" in text_of(result)
        assert (await http.get("/readyz")).status_code == 503
        assert (await http.get("/healthz")).status_code == 200
        (tmp_path / "knowledge.db").unlink()
        await upload_handbook(http)
        assert not (await call(session, tool, **arguments)).isError
        assert (await http.get("/readyz")).status_code == 200


async def test_a_web_page_is_read_as_text(tmp_path: Path) -> None:
    page = "<html><title>Status</title><body><nav>Menu</nav><main><h1>Health</h1>All is well.</main></body></html>"
    async with (
        website({"/": page}) as site,
        rag_server(tmp_path, FETCH_URL_ALLOW_PRIVATE="true") as http,
        mcp_session(str(http.base_url)) as session,
    ):
        result = await call(session, "fetch_url", url=site.url())
    assert text_of(result).startswith(f"Title: Health\nSource: {site.url()}\n")
    assert "All is well" in text_of(result)
    assert "Menu" not in text_of(result)
    assert (result.structuredContent or {})["url"] == site.url()


async def test_with_a_key_set_only_health_is_open(tmp_path: Path) -> None:
    async with rag_server(tmp_path, A2A_AGENTS_AUTH_KEY=KEY) as http:
        for path in ("/rag/v1/datasources", "/rag/docs", "/rag/openapi.json", "/mcp"):
            assert (await http.get(path)).status_code == 401, path
        assert (await http.post("/mcp", json={})).status_code == 401
        assert (await http.get("/healthz")).status_code == 200
        with pytest.raises(BaseExceptionGroup) as refused:
            async with mcp_session(str(http.base_url)):
                pass
        assert refused.group_contains(httpx.HTTPStatusError)
        async with mcp_session(str(http.base_url), KEY) as session:
            assert not (await call(session, "list_datasources")).isError


async def test_pages_of_other_sites_may_not_call(tmp_path: Path) -> None:
    async with rag_server(tmp_path) as http:
        headers = {"Origin": "https://evil.example", "Accept": "application/json, text/event-stream"}
        assert (await http.post("/mcp", json={}, headers=headers)).status_code == 403


async def test_a_message_larger_than_the_limit_is_not_read(tmp_path: Path) -> None:
    async with rag_server(tmp_path, MAX_REQUEST_BYTES="2048") as http:
        answer = await http.post("/mcp", content=b"x" * 4096, headers={"Content-Type": "application/json"})
        assert answer.status_code == 413


async def test_inside_the_supervisor_it_is_called_without_a_network(tmp_path: Path) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path), "EMBEDDINGS_PROVIDER": "none"}, env_file=None)
    knowledge = KnowledgeBase(settings)
    servers = McpServers(settings, factory_arguments={KNOWLEDGE_SERVER: knowledge})
    await servers.start(knowledge_servers(settings), deadline=20)
    try:
        tools = {tool.name: tool for tool in servers.tools(KNOWLEDGE_BASE)}
        answer = json.loads(await tools["search"].ainvoke({"query": "how do I run ArgoCD remotely?", "limit": "2"}))
        assert answer["results"][0]["datasource"] == "platform-engineer"
        assert all((tool.metadata or {})["read_only"] for tool in tools.values())
    finally:
        await servers.aclose()
        await knowledge.aclose()
