"""The knowledge base through the supervisor's own doors: questions over A2A, REST beside it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from ai_platform_engineering.events import FinalResult, TextDelta, ToolFinished, ToolStarted
from ai_platform_engineering.knowledge_bases.rag import backend
from ai_platform_engineering.knowledge_bases.rag.stores.opening import open_store
from ai_platform_engineering.knowledge_bases.rag.stores.store import KnowledgeStore, KnowledgeStoreError
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings
from tests.invariants import check
from tests.servers import CommandLine, calling, serving


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("supervisor")
    return {"DATA_DIR": str(folder), "OFFLINE_MODEL_DELAY": "0", "A2A_PORT": "0", "SANDBOX": "true"}


async def test_the_first_run_answers_questions_about_itself(environ: dict[str, str]) -> None:
    with_vectors = environ | {"EMBEDDINGS_PROVIDER": "offline"}
    async with CommandLine(["serve"], with_vectors) as supervisor, calling(supervisor.url) as caller:
        events = await caller.ask("how do I run ArgoCD remotely?")
        ending = check(events)
        assert isinstance(ending, FinalResult)
        assert "DISTRIBUTED_AGENTS=argocd" in ending.text
        assert "Sources:" in ending.text
        assert "docs/deploy.md" in ending.text or "README.md" in ending.text
        tools = [event.tool for event in events if isinstance(event, ToolStarted)]
        assert tools[0] == "search"
        assert "fetch_document" in tools
        assert {event.agent for event in events if isinstance(event, ToolStarted)} == {"supervisor"}
        assert all(event.ok for event in events if isinstance(event, ToolFinished))
        first_tool = next(place for place, event in enumerate(events) if isinstance(event, ToolStarted))
        narration = "".join(event.text for event in events[:first_tool] if isinstance(event, TextDelta))
        assert "search the knowledge base" in narration

        nothing = check(await caller.ask("what is the migration pattern of zebras in Kenya?"))
        assert isinstance(nothing, FinalResult)
        assert "Sources:" not in nothing.text


async def test_what_is_put_in_over_rest_is_found_by_the_next_question(environ: dict[str, str]) -> None:
    async with CommandLine(["serve"], environ) as supervisor, calling(supervisor.url) as caller:
        page = "# Turbo encabulator\n\nThe turbo encabulator is restarted with `encabulate --again` on host quux7.\n"
        async with httpx.AsyncClient(base_url=f"{supervisor.url}/rag/v1", timeout=30) as rest:
            put = await rest.put(
                "/datasources/runbooks/documents/turbo.md", content=page, headers={"Content-Type": "text/markdown"}
            )
            assert put.status_code in {200, 201}, put.text
            found = await rest.post(
                "/search", json={"query": "restart the turbo encabulator", "datasource": "runbooks"}
            )
            assert found.json()["results"][0]["document_id"] == "runbooks:turbo.md"
        ending = check(await caller.ask("how do I restart the turbo encabulator?"))
        assert isinstance(ending, FinalResult)
        assert "encabulate --again" in ending.text
        assert "turbo.md" in ending.text


async def test_all_doors_lead_into_one_knowledge_base(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has its vectors in memory."""
    stores: list[KnowledgeStore] = []

    def opening(settings: Settings) -> KnowledgeStore:
        stores.append(open_store(settings))
        return stores[-1]

    monkeypatch.setattr(backend, "open_store", opening)
    here = environ | {"DATA_DIR": str(tmp_path)}
    async with serving(create_app, here) as url, calling(url) as caller, httpx.AsyncClient(timeout=60) as http:
        found = await http.post(f"{url}/rag/v1/search", json={"query": "remote agents"})
        assert found.json()["results"]
        ending = check(await caller.ask("how do I run ArgoCD remotely?"))
        assert isinstance(ending, FinalResult)
        assert "Sources:" in ending.text
    (store,) = stores
    with pytest.raises(KnowledgeStoreError):
        store.datasources()


async def test_a_knowledge_base_of_its_own_serves_a_supervisor_with_a_key(
    environ: dict[str, str], tmp_path: Path
) -> None:
    key = {"A2A_AUTH_SHARED_KEY": "correct-horse-battery", "A2A_AGENTS_AUTH_KEY": "staple-of-the-servers"}
    async with CommandLine(["rag", "serve", "--port", "0"], environ | key) as rag:
        away = environ | {"DATA_DIR": str(tmp_path), "RAG_SERVER_URL": rag.url}
        async with CommandLine(["serve"], away | key) as supervisor, httpx.AsyncClient(timeout=60) as http:
            bearer = {"Authorization": "Bearer correct-horse-battery"}
            tools = (await http.get(f"{supervisor.url}/tools", headers=bearer)).json()["tools"]
            assert {row["name"] for row in tools if row["agent"] == "knowledge base"} == {
                *("search", "fetch_document", "list_datasources", "fetch_url")
            }
            question = {"kind": "text", "text": "how do I run ArgoCD remotely?"}
            message = {"role": "user", "parts": [question], "messageId": "m1"}
            call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
            answer = (await http.post(supervisor.url, json=call, headers=bearer)).json()
            texts = [
                part["text"]
                for artifact in answer["result"]["artifacts"]
                if artifact["name"] == "final_result"
                for part in artifact["parts"]
            ]
            assert "DISTRIBUTED_AGENTS=argocd" in texts[0]
            assert not (tmp_path / "knowledge.db").exists(), "it is kept where the server is"
        async with CommandLine(["serve"], away) as supervisor, calling(supervisor.url) as caller:
            # Without the key it has no such tools, and says what it can do instead.
            ending = check(await asyncio.wait_for(caller.ask("how do I run ArgoCD remotely?"), 60))
            assert isinstance(ending, FinalResult)
            assert "Sources:" not in ending.text
