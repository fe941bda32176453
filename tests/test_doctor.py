from __future__ import annotations

import asyncio
import io
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from ai_platform_engineering.cli.doctor import diagnose
from ai_platform_engineering.cli.doctor_report import AgentReport, Report, show, to_json
from ai_platform_engineering.knowledge_bases.rag.chunking import chunks_of
from ai_platform_engineering.knowledge_bases.rag.documents import Document
from ai_platform_engineering.knowledge_bases.rag.stores.opening import knowledge_file, open_store
from ai_platform_engineering.knowledge_bases.rag.stores.store import DocumentVersion
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.settings import Settings, load_settings
from tests.llm.openai_server import openai_server
from tests.multi_agents.loopback import Answer, Request, card, response, serving
from tests.servers import serving as serving_app
from tests.skills_middleware.git_server import commit

MANIFEST = """
name: {name}
description: All about {name}.
prompt: You help.
{rest}
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def agents_dir(tmp_path: Path) -> Path:
    directory = tmp_path / "agents"
    directory.mkdir()
    return directory


def settings_of(agents_dir: Path, **environ: str) -> Settings:
    variables = {"AGENTS_DIR": str(agents_dir), "DATA_DIR": str(agents_dir.parent / "data"), "MCP_START_TIMEOUT": "60"}
    return load_settings({**variables, **environ}, env_file=None)


def add_agent(directory: Path, name: str, rest: str = "") -> None:
    (directory / f"{name}.yaml").write_text(MANIFEST.format(name=name, rest=rest))


async def row(settings: Settings, name: str) -> AgentReport:
    report = await diagnose(settings)
    return next(agent for agent in report.agents if agent.name == name)


class TestLocalAgents:
    async def test_its_tools_are_those_of_its_running_server(self, agents_dir: Path) -> None:
        add_agent(agents_dir, "shop", "requires: [SHOP_URL]\nsandbox: ai_platform_engineering.sandbox.argocd:server")
        shop = await row(settings_of(agents_dir), "shop")
        assert (shop.enabled, shop.where, shop.why) == (True, "in-process", "sandbox")
        assert (shop.reachable, shop.problem, shop.usable) == (None, None, True)
        assert "version_service__version" in shop.tools

    async def test_a_server_that_does_not_start_is_a_problem(self, agents_dir: Path) -> None:
        server = "servers: [{name: shop, transport: stdio, command: /no/such/command}]"
        add_agent(agents_dir, "shop", server)
        settings = settings_of(agents_dir)
        report = await diagnose(settings)
        [shop] = [agent for agent in report.agents if agent.name == "shop"]
        assert (shop.tools, shop.usable, report.ok) == ((), False, False)
        assert shop.problem
        assert "shop" in shop.problem

    async def test_what_is_switched_off_is_left_alone(self, agents_dir: Path) -> None:
        server = "servers: [{name: shop, transport: stdio, command: /no/such/command}]"
        add_agent(agents_dir, "shop", server)
        report = await diagnose(settings_of(agents_dir, ENABLE_SHOP="false"))
        [shop] = [agent for agent in report.agents if agent.name == "shop"]
        assert (shop.enabled, shop.why, shop.problem) == (False, "ENABLE_SHOP=false", None)
        assert report.ok


class TestApproval:
    SHOP = "requires: [SHOP_URL]\nsandbox: ai_platform_engineering.sandbox.argocd:server"

    @pytest.mark.parametrize(
        ("manifest", "environ", "waiting"),
        [
            ("", {}, {"rollback_application"}),
            ("", {"REQUIRE_APPROVAL": "never"}, set()),
            ("approval: never", {"REQUIRE_APPROVAL": "writes"}, set()),
            ("approval: never", {"REQUIRE_APPROVAL_OVERRIDES": "SHOP=destructive"}, {"rollback_application"}),
            (
                "",
                {"REQUIRE_APPROVAL_OVERRIDES": "shop=never, shop.version_service__version=always"},
                {"version_service__version"},
            ),
        ],
    )
    async def test_it_names_the_tools_that_wait_for_a_person(
        self, agents_dir: Path, manifest: str, environ: dict[str, str], waiting: set[str]
    ) -> None:
        add_agent(agents_dir, "shop", f"{self.SHOP}\n{manifest}")
        report = await diagnose(settings_of(agents_dir, **environ))
        [shop] = [agent for agent in report.agents if agent.name == "shop"]
        assert set(shop.approval or ()) == waiting
        assert report.approval == environ.get("REQUIRE_APPROVAL", "destructive on the sandbox, writes on real backends")

    async def test_a_misspelt_tool_is_a_problem(self, agents_dir: Path) -> None:
        add_agent(agents_dir, "shop", self.SHOP)
        report = await diagnose(settings_of(agents_dir, REQUIRE_APPROVAL_OVERRIDES="shop.rolback_application=never"))
        assert any("Did you mean 'rollback_application'?" in problem for problem in report.problems)


class TestOfflineModel:
    REAL = "servers: [{name: shop, transport: stdio, command: /no/such/command}]"

    @pytest.mark.parametrize(
        ("rest", "environ", "warned"),
        [
            (REAL, {}, True),
            (REAL, {"SHOP_LLM_PROVIDER": "openai", "OPENAI_API_KEY": "k", "LLM_PROVIDER": "offline"}, False),
            (REAL, {"OPENAI_API_KEY": "k", "OPENAI_MODEL_NAME": "m", "SHOP_LLM_PROVIDER": "offline"}, True),
            (REAL, {"OPENAI_API_KEY": "k", "OPENAI_MODEL_NAME": "m"}, False),
            (TestApproval.SHOP, {}, False),
            ("servers: [{name: n, transport: memory, module: 'tests.mcp.tool_depot:plain'}]", {}, False),
        ],
    )
    async def test_it_warns_where_the_offline_model_drives_a_real_backend(
        self, agents_dir: Path, rest: str, environ: dict[str, str], warned: bool
    ) -> None:
        add_agent(agents_dir, "shop", rest)
        # The models of these settings are at providers.
        report = await diagnose(settings_of(agents_dir, **environ), offline=True)
        warnings = [problem for problem in report.problems if "The offline model is used with real" in problem]
        assert bool(warnings) == warned
        assert all("(shop)" in warning and "LLM_PROVIDER" in warning for warning in warnings)
        out = io.StringIO()
        show(report, out)
        assert ("can only read there" in out.getvalue()) == warned


def agent_that_lists(tools: list[str] | None) -> Answer:
    async def answer(request: Request) -> bytes:
        if request[0] != "/tools":
            return response(200, card())
        return response(404, b"") if tools is None else response(200, {"tools": [{"name": name} for name in tools]})

    return answer


BACKEND = """
import os
from mcp.server.fastmcp import FastMCP

server = FastMCP("shop")

@server.tool()
def whoami() -> str:
    if os.environ.get("SHOP_TOKEN") != "right":
        raise ValueError("401 Unauthorized")
    return "me"

@server.tool(name="delete.everything")
def delete_everything() -> str:
    return "done"

server.run()
"""


class TestChecks:
    """One test call of a backend, and one question to a model."""

    @pytest.fixture
    def shop(self, agents_dir: Path) -> None:
        (agents_dir / "backend.py").write_text(BACKEND)
        add_agent(
            agents_dir,
            "shop",
            "requires: [SHOP_URL, SHOP_TOKEN]\n"
            "sandbox: ai_platform_engineering.sandbox.argocd:server\n"
            f"servers: [{{name: shop, transport: stdio, command: {sys.executable}, args: [{agents_dir}/backend.py], "
            "env: {SHOP_TOKEN: '${SHOP_TOKEN}'}, tools: [whoami, delete.everything], check: {tool: whoami}}]",
        )

    async def test_a_backend_that_refuses_makes_its_agent_unusable(self, agents_dir: Path, shop: None) -> None:
        expired = {"SHOP_URL": "http://shop.test", "SHOP_TOKEN": "expired"}
        settings = settings_of(agents_dir, **expired)
        refused = await row(settings, "shop")
        assert (refused.reachable, refused.usable, len(refused.tools)) == (False, False, 2)
        assert "Its backend did not answer a test call (whoami): " in (refused.failure or "")
        assert "401 Unauthorized" in (refused.failure or "")
        [unasked] = [agent for agent in (await diagnose(settings, offline=True)).agents if agent.name == "shop"]
        assert (unasked.reachable, unasked.usable) == (None, True)
        accepted = await row(settings_of(agents_dir, **{**expired, "SHOP_TOKEN": "right"}), "shop")
        assert (accepted.reachable, accepted.usable) == (True, True)
        [warning] = accepted.warnings
        assert "delete.everything" in warning

    async def test_a_remote_agent_checks_its_own_backend(self, agents_dir: Path, shop: None) -> None:
        inside = settings_of(agents_dir, SHOP_URL="http://shop.test", SHOP_TOKEN="expired").environ
        async with serving_app(partial(create_agent_app, name="shop"), inside) as address:
            remote = await row(settings_of(agents_dir, SHOP_AGENT_URL=address, DISTRIBUTED_AGENTS="shop"), "shop")
        assert (remote.reachable, remote.usable) == (True, False)
        assert "401 Unauthorized" in (remote.failure or "")

    async def test_an_agent_with_half_of_its_settings_cannot_be_used_as_configured(
        self, agents_dir: Path, shop: None
    ) -> None:
        report = await diagnose(settings_of(agents_dir, SHOP_URL="http://shop.test"))
        [shop_row] = [agent for agent in report.agents if agent.name == "shop"]
        missing = "SHOP_URL is set, but SHOP_TOKEN is not set, so it answers from the sandbox."
        assert (shop_row.failure, report.ok, report.unusable) == (missing, False, ("shop",))

    @pytest.mark.long
    async def test_a_server_that_is_still_downloading_is_said_to_be_starting(self, agents_dir: Path) -> None:
        launcher = agents_dir / "uvx"
        launcher.write_text("#!/bin/sh\ncase $1 in --offline) exit 1;; esac\nexec sleep 60\n")
        launcher.chmod(0o755)
        add_agent(agents_dir, "shop", f"servers: [{{name: shop, transport: stdio, command: {launcher}, args: [shop]}}]")
        report = await diagnose(settings_of(agents_dir, MCP_START_TIMEOUT="2", MCP_ALLOW_DOWNLOADS="true"))
        assert (report.ok, report.starting) == (False, ("shop",))
        file = io.StringIO()
        show(report, file)
        assert (
            file.getvalue().splitlines()[-1] == "Still starting: shop. Raise MCP_START_TIMEOUT to wait for a download."
        )

    async def test_a_stdio_server_that_is_not_confined_is_reported(self, agents_dir: Path) -> None:
        add_agent(agents_dir, "shop", "servers: [{name: shop, transport: stdio, command: /nowhere/shop}]")
        gap = "stdio servers run as the same user and can read its files, because MCP_CONFINE is off."
        assert gap in (await diagnose(settings_of(agents_dir, MCP_CONFINE="false"))).problems
        assert not any("same user" in problem for problem in (await diagnose(settings_of(agents_dir))).problems)

    async def test_a_model_that_refuses_is_a_failure(self, agents_dir: Path) -> None:
        with openai_server() as server:
            settings = settings_of(
                agents_dir, OPENAI_ENDPOINT=server.address, OPENAI_API_KEY="sk-0123456789abc", OPENAI_MODEL_NAME="gpt"
            )
            assert (await diagnose(settings)).ok
            assert len(server.requests) == 1
            assert (await diagnose(settings, offline=True)).ok
            assert len(server.requests) == 1
            server.failures = [(401, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}})]
            report = await diagnose(settings)
        [failure] = report.model_failures
        assert failure.startswith("openai gpt: ")
        assert not report.ok
        file = io.StringIO()
        show(report, file)
        assert file.getvalue().splitlines()[-1] == "Not usable: the model."
        assert "0123456789abc" not in file.getvalue()


class TestRemoteAgents:
    @pytest.mark.parametrize(
        ("listed", "tools", "usable"),
        [(["forecast", "tides"], ("forecast", "tides"), True), (None, ("Forecast",), True), ([], (), False)],
    )
    async def test_its_tools_are_what_it_says(
        self, agents_dir: Path, listed: list[str] | None, tools: tuple[str, ...], usable: bool
    ) -> None:
        async with serving(agent_that_lists(listed)) as server:
            weather = await row(settings_of(agents_dir, WEATHER_AGENT_URL=server.address), "weather")
        assert (weather.reachable, weather.tools, weather.usable) == (True, tools, usable)
        assert (weather.where, weather.address) == ("remote", server.address)

    async def test_one_that_cannot_be_reached(self, agents_dir: Path, unused_port: int) -> None:
        # A doctor who is asked looks, whatever is skipped at start.
        settings = settings_of(
            agents_dir,
            WEATHER_AGENT_URL=f"http://bob:hunter2@127.0.0.1:{unused_port}",
            SKIP_AGENT_CONNECTIVITY_CHECK="true",
        )
        report = await diagnose(settings)
        [weather] = [agent for agent in report.agents if agent.name == "weather"]
        assert (weather.reachable, weather.problem, report.ok) == (False, "connection refused", False)
        assert "hunter2" not in to_json(report)


class TestFacts:
    async def test_with_nothing_configured(self, agents_dir: Path) -> None:
        settings = settings_of(agents_dir, DISTRIBUTED_AGENTS="nosuch")
        report = await diagnose(settings)
        assert (report.model, report.offline, report.sandbox) == ("offline", True, True)
        assert report.data_dir == str(settings.data_dir)
        [problem] = report.problems
        assert "'nosuch'" in problem

    async def test_a_model_that_cannot_be_made(self, agents_dir: Path) -> None:
        report = await diagnose(settings_of(agents_dir, OPENAI_API_KEY="sk-0123456789abc", SANDBOX="false"))
        assert (report.model, report.offline, report.sandbox, report.ok) == (None, False, False, False)
        assert "OPENAI_MODEL_NAME" in report.problems[0]


REPORT = Report(
    version="1.2.3",
    model="offline",
    offline=True,
    sandbox=True,
    data_dir="/var/lib/platform-engineer",
    approval="writes",
    problems=("DISTRIBUTED_AGENTS names 'argcd', which is not a known agent. Did you mean 'argocd'?",),
    agents=(
        AgentReport(
            "argocd",
            True,
            "in-process",
            "sandbox",
            tools=("list_applications", "sync_application"),
            approval=("sync_application",),
        ),
        AgentReport("jira", False, "in-process", "JIRA_URL, JIRA_USERNAME and JIRA_API_TOKEN are not set"),
        AgentReport(
            "weather_and_climate",
            True,
            "remote",
            "its address is set and nothing else is configured",
            address="http://weather-and-climate-agent.platform-agents.svc.cluster.local:8000/[a2a]",
            reachable=False,
            problem="connection refused",
        ),
    ),
)


class TestShowing:
    def test_plain_lines_elsewhere(self) -> None:
        file = io.StringIO()
        show(REPORT, file)
        lines = file.getvalue().splitlines()
        assert "Sandbox   on (/var/lib/platform-engineer)" in lines
        assert "Approval  writes" in lines
        heading = next(line for line in lines if line.startswith("Agent"))
        argocd = next(line for line in lines if line.startswith("argocd"))
        weather = next(line for line in lines if line.startswith("weather"))
        assert argocd.split() == ["argocd", "yes", "in-process", "-", "2", "sandbox"]
        assert heading.index("Why") == argocd.index("sandbox") == weather.index("its address")
        assert lines[-3:] == [
            f"weather_and_climate at {REPORT.agents[-1].address}: connection refused",
            REPORT.problems[0],
            "Not usable: weather_and_climate.",
        ]
        assert "\x1b" not in file.getvalue()

    def test_a_table_that_fits_a_terminal_of_80_columns(self) -> None:
        file = Terminal()
        show(REPORT, file, width=80)
        lines = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue()).splitlines()
        assert max(map(len, lines)) <= 80
        assert not any("…" in line for line in lines)
        assert any(line.split() == ["argocd", "yes", "in-process", "-", "2", "sandbox"] for line in lines)
        text = "".join(lines)
        assert "connection refused" in text
        assert "/[a2a]" in text

    def test_json_has_everything(self) -> None:
        content = json.loads(to_json(REPORT))
        assert (content["ok"], content["model"], content["sandbox"]) == (False, "offline", True)
        argocd, jira, weather = content["agents"]
        assert argocd["tools"] == ["list_applications", "sync_application"]
        assert (content["approval"], argocd["approval"], weather["approval"]) == ("writes", ["sync_application"], None)
        assert (jira["enabled"], jira["reachable"]) == (False, None)
        assert (weather["reachable"], weather["problem"]) == (False, "connection refused")


@asynccontextmanager
async def silent_server() -> AsyncIterator[int]:
    """Takes connections and says nothing; yields its port."""
    open_connections: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _reader, writer: open_connections.append(writer), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        for connection in open_connections:
            connection.close()


class TestKnowledge:
    async def test_inside_the_supervisor_before_anything_was_ingested(self, agents_dir: Path) -> None:
        report = await diagnose(settings_of(agents_dir))
        assert str(report.knowledge) == "in-process, nothing ingested yet"
        assert not (agents_dir.parent / "data" / "knowledge.db").exists(), "looking changes nothing"

    async def test_what_was_ingested_is_counted(self, agents_dir: Path) -> None:
        settings = settings_of(agents_dir)
        store = open_store(settings)
        document = Document("handbook", "a.md", "A", "Text.", "a.md")
        store.put(document, DocumentVersion("1"), chunks_of(document), None, "")
        store.close()
        report = await diagnose(settings)
        assert str(report.knowledge) == "in-process, 1 document"

    async def test_a_file_that_is_no_database(self, agents_dir: Path) -> None:
        settings = settings_of(agents_dir)
        settings.data_dir.mkdir()
        knowledge_file(settings).write_text("not a database, but long enough to be taken for one" * 100)
        report = await diagnose(settings)
        assert report.unusable == ("the knowledge base",)
        assert report.knowledge is not None
        assert "knowledge.db" in (report.knowledge.problem or "")
        assert not report.ok

    async def test_a_server_that_does_not_answer(self, agents_dir: Path, unused_port: int) -> None:
        report = await diagnose(settings_of(agents_dir, RAG_SERVER_URL=f"http://127.0.0.1:{unused_port}/mcp"))
        assert report.knowledge is not None
        assert "RAG_SERVER_URL" in (report.knowledge.problem or "")
        assert not report.ok

    async def test_a_server_that_is_silent(self, agents_dir: Path) -> None:
        async with asyncio.timeout(90), silent_server() as port:
            address = f"http://127.0.0.1:{port}/mcp"
            report = await diagnose(settings_of(agents_dir, RAG_SERVER_URL=address, MCP_START_TIMEOUT="0.5"))
        assert report.knowledge is not None
        said = f"The knowledge base at {address} (RAG_SERVER_URL) did not answer within 0.5 seconds."
        assert report.knowledge.problem == said

    async def test_keywords_alone_is_said_and_is_no_problem(self, agents_dir: Path) -> None:
        report = await diagnose(settings_of(agents_dir, EMBEDDINGS_PROVIDER="none"))
        out = io.StringIO()
        show(report, out)
        assert "Search is by keywords alone" in out.getvalue()
        assert report.knowledge is not None
        assert report.knowledge.problem is None

    async def test_switched_off(self, agents_dir: Path) -> None:
        report = await diagnose(settings_of(agents_dir, ENABLE_RAG="false"))
        assert report.knowledge is None


class TestSkills:
    async def test_skills_are_counted_by_source_and_nothing_is_written(self, agents_dir: Path) -> None:
        report = await diagnose(settings_of(agents_dir), offline=True)
        assert re.fullmatch(r"\d+ \(built-in \d+\)", str(report.skills))
        assert not (agents_dir.parent / "data" / "skills.db").exists(), "looking changes nothing"

    async def test_a_skill_that_cannot_be_used_is_named_with_its_file_and_is_no_failure(self, agents_dir: Path) -> None:
        skills = agents_dir.parent / "skills"
        for name, text in {
            "good": "---\nname: good\ndescription: Fine.\n---\nDo it.\n",
            "bad": "no front matter",
        }.items():
            (skills / name).mkdir(parents=True)
            (skills / name / "SKILL.md").write_text(text)
        report = await diagnose(settings_of(agents_dir, SKILLS_DIR=str(skills)))
        assert report.ok
        assert ", directory 1)" in str(report.skills)
        assert report.skills is not None
        (problem,) = report.skills.problems
        assert problem.startswith("Skills, directory: ")
        assert str(skills / "bad" / "SKILL.md") in problem
        out = io.StringIO()
        show(report, out)
        assert f"Skills    {report.skills}" in out.getvalue()
        assert problem in out.getvalue()
        assert json.loads(to_json(report))["skills"]["problems"] == [problem]

    async def test_a_skill_that_a_manifest_names_and_no_source_has_is_named(self, agents_dir: Path) -> None:
        sandbox = "sandbox: ai_platform_engineering.sandbox.argocd:server"
        add_agent(agents_dir, "shop", f"skills: [incident-triage, no-such-skill]\n{sandbox}")
        report = await diagnose(settings_of(agents_dir), offline=True)
        assert report.skills is not None
        (problem,) = report.skills.problems
        assert problem.startswith("Skills, shop: its manifest names 'no-such-skill'")

    async def test_repositories_are_read_now_unless_offline_and_their_copies_stay(self, agents_dir: Path) -> None:
        work = agents_dir.parent / "work"
        (work / "rollback").mkdir(parents=True)
        (work / "rollback" / "SKILL.md").write_text("---\nname: rollback\ndescription: Fine.\n---\nDo it.\n")
        commit(work)
        settings = settings_of(agents_dir, SKILLS_GIT=f"{work},nowhere")
        report = await diagnose(settings)
        assert f"git:{work} 1" in str(report.skills)
        assert report.skills is not None
        (problem,) = report.skills.problems
        assert "nowhere" in problem
        assert "SKILLS_GIT" in problem
        assert not (settings.data_dir / "skills").exists(), "looking changes nothing"

        offline = await diagnose(settings, offline=True)
        assert offline.skills is not None
        assert "git:" not in str(offline.skills)
        assert not (settings.data_dir / "skills").exists()

    async def test_switched_off(self, agents_dir: Path) -> None:
        report = await diagnose(settings_of(agents_dir, ENABLE_SKILLS="false"), offline=True)
        assert report.skills is None
