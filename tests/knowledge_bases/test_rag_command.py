"""`platform-engineer rag`: search, list and remove, here and at a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ai_platform_engineering.cli import main
from ai_platform_engineering.knowledge_bases.rag.knowledge_base import KnowledgeBase
from ai_platform_engineering.settings import load_settings
from tests.knowledge_bases.rag_servers import HANDBOOK, environ_of, rag_server, upload_handbook

pytestmark = pytest.mark.process

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    for name, value in environ_of(tmp_path / "data").items():
        monkeypatch.setenv(name, value)

    def run_rag(*arguments: str) -> tuple[int, str, str]:
        code = main(["rag", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_rag


@pytest.fixture
def handbook(tmp_path: Path) -> None:
    async def keep() -> None:
        base = KnowledgeBase(load_settings(environ_of(tmp_path / "data"), env_file=None))
        for file in sorted(HANDBOOK.glob("*.md")):
            await base.store_document("handbook", file.name, file.read_bytes(), "text/markdown")
        nasty = b"# Nasty\n\nThe \x1b[31m xylophone \x1b[0m \xe2\x80\xaeplays."
        await base.store_document("nasty", "a.md", nasty, "text/markdown")
        await base.aclose()

    asyncio.run(keep())


@pytest.mark.usefixtures("handbook")
def test_search(run: Run) -> None:
    code, output, notes = run("search", "roll back a release", "--limit", "2")
    assert code == 0
    first, snippet, source, *_ = output.splitlines()
    assert first.startswith("1. Rolling back a release  ")
    assert "**" in snippet
    assert source == "   rollback.md  [handbook:rollback.md]"
    assert output.count("[handbook:") == 2
    assert "EMBEDDINGS_PROVIDER=none" in notes


@pytest.mark.usefixtures("handbook")
def test_search_as_json(run: Run) -> None:
    code, output, notes = run("search", "minute", "--json", "--datasource", "handbook")
    assert (code, notes) == (0, "")
    answer = json.loads(output)
    assert answer["query"] == "minute"
    assert {result["datasource"] for result in answer["results"]} == {"handbook"}


@pytest.mark.usefixtures("handbook")
def test_what_documents_say_does_nothing_to_the_terminal(run: Run) -> None:
    _, output, _ = run("search", "xylophone")
    assert "xylophone" in output
    assert "\x1b" not in output
    assert "\u202e" not in output


@pytest.mark.usefixtures("handbook")
def test_nothing_found(run: Run) -> None:
    code, output, notes = run("search", "zebra")
    assert (code, output) == (0, "")
    assert "Nothing was found." in notes


@pytest.mark.usefixtures("handbook")
def test_listing_and_removing(run: Run) -> None:
    code, output, _ = run("list")
    assert code == 0
    head, handbook, nasty = output.splitlines()
    assert head.split() == ["DATASOURCE", "DOCUMENTS", "CHUNKS", "UPDATED", "ORIGIN"]
    assert handbook.split()[:2] == ["handbook", "3"]
    assert nasty.split()[:2] == ["nasty", "1"]
    assert [json.loads(line)["name"] for line in run("list", "--json")[1].splitlines()] == ["handbook", "nasty"]

    assert run("remove", "nasty") == (0, "The datasource nasty was removed.\n", "")
    code, output, error = run("remove", "nasty")
    assert (code, output) == (1, "")
    assert error == "platform-engineer: There is no datasource 'nasty'; known are handbook.\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["search", "x", "--datasource", "nope"], "There is no datasource 'nope'"),
        (["search", " "], "The query is empty"),
    ],
)
def test_what_cannot_be_done(run: Run, arguments: list[str], sentence: str) -> None:
    code, output, error = run(*arguments)
    assert (code, output) == (1, "")
    assert sentence in error


@pytest.mark.parametrize("arguments", [["search", "x"], ["list"], ["remove", "x"]])
def test_a_store_that_cannot_be_used(run: Run, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "knowledge.db").write_bytes(b"these are not the bytes of a database" * 100)
    code, output, error = run(*arguments)
    assert (code, output) == (1, "")
    assert "knowledge.db" in error
    assert "Traceback" not in error


def test_wrong_settings_stop_the_server_at_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FETCH_URL_ALLOWED_HOSTS", "https://example.com/")
    code, output, error = run("serve", "--port", "0")
    assert (code, output) == (2, "")
    assert "FETCH_URL_ALLOWED_HOSTS" in error


async def test_at_a_server(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with rag_server(tmp_path / "there", A2A_AGENTS_AUTH_KEY="secret-key-of-ours") as http:
        http.headers["Authorization"] = "Bearer secret-key-of-ours"
        await upload_handbook(http)
        monkeypatch.setenv("RAG_SERVER_URL", f"{http.base_url}/mcp")
        code, _, error = await asyncio.to_thread(run, "list")
        assert (code, "401" in error, "A2A_AGENTS_AUTH_KEY" in error) == (1, True, True)

        monkeypatch.setenv("A2A_AGENTS_AUTH_KEY", "secret-key-of-ours")
        code, output, _ = await asyncio.to_thread(run, "search", "roll back", "--json")
        assert (code, json.loads(output)["results"][0]["document_id"]) == (0, "handbook:rollback.md")
        code, output, _ = await asyncio.to_thread(run, "list")
        assert (code, output.splitlines()[1].split()[0]) == (0, "handbook")
        code, _, error = await asyncio.to_thread(run, "search", "x", "--datasource", "nope")
        assert (code, "There is no datasource 'nope'" in error) == (1, True)
        code, _, error = await asyncio.to_thread(run, "remove", "handbook")
        assert (code, "RAG_SERVER_URL" in error) == (1, True)
    code, _, error = await asyncio.to_thread(run, "list")
    assert (code, "platform-engineer rag serve" in error) == (1, True)
    assert "secret-key" not in error
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("arguments", [["search", "x"], ["list"], ["remove", "x"]])
def test_credentials_in_the_address_of_a_server_are_not_shown(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("RAG_SERVER_URL", "http://someone:correct-horse@127.0.0.1:1/mcp?token=battery-staple")
    code, output, error = run(*arguments)
    assert (code, output) == (1, "")
    assert "127.0.0.1:1/mcp" in error
    assert "horse" not in error
    assert "staple" not in error
