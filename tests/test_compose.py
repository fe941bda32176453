"""The compose files, as compose itself understands them: one supervisor, and every agent where the supervisor looks."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from ai_platform_engineering.cli import build_parser
from ai_platform_engineering.manifest import builtin_directory, load_manifests
from ai_platform_engineering.multi_agents.placement import resolve_address, sandbox_is_on
from ai_platform_engineering.settings import Settings, load_settings, secret_variables
from ai_platform_engineering.settings.fields import field_extra
from ai_platform_engineering.settings.loading import fields_by_variable
from ai_platform_engineering.utils.redact import looks_secret
from integration.quick_sanity import ENV_FILE, compose_command
from tests.made_once import made_once

ROOT = Path(__file__).parents[1]
parser = functools.cache(build_parser)
FILES = ["docker-compose.yaml", "docker-compose.dev.yaml"]
SUPERVISOR = "caipe-supervisor"
KNOWLEDGE_BASE = "caipe-rag"
SLACK_BOT = "caipe-slack"
MANIFESTS = load_manifests([builtin_directory()])
AGENTS = sorted(MANIFESTS)

every_file = pytest.mark.parametrize("file", FILES)


def service_of(agent: str) -> str:
    """The container that the supervisor looks for when it is told nothing."""
    host = urlsplit(resolve_address(agent, {})).hostname
    assert host
    return host


def field_group(variable: str) -> str:
    return field_extra(fields_by_variable()[variable])["group"]


@pytest.fixture(scope="session")
def compose(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that is compose, in version 2; fetched where the tests may not be skipped."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]):
            result = subprocess.run([*command, "version", "--short"], capture_output=True, check=False, text=True)
            if result.returncode == 0 and re.match(r"v?([2-9]|\d\d)\.", result.stdout):
                return command
    reason = "docker compose is not installed: run deploy/fetch-compose /usr/local/bin"
    if os.environ.get("REQUIRE_SERVICES") != "1":
        pytest.skip(reason)

    def fetch(directory: Path) -> None:
        command = [ROOT / "deploy/fetch-compose", directory]
        fetched = subprocess.run(command, capture_output=True, check=False, text=True)
        if fetched.returncode:
            pytest.fail(f"{reason}\n{fetched.stderr}")

    return [str(made_once(tmp_path_factory, "compose", fetch) / "docker-compose")]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The compose files in a directory where a test may put a .env."""
    for file in FILES:
        shutil.copy(ROOT / file, tmp_path)
    return tmp_path


def ask(command: Sequence[str], project: Path, **environ: str) -> str:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    result = subprocess.run(
        command, cwd=project, env={**kept, **environ}, capture_output=True, check=False, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert "level=warning" not in result.stderr, result.stderr
    return result.stdout


def services(compose: list[str], project: Path, file: str, *options: str, **environ: str) -> dict[str, Any]:
    command = [*compose, "--file", file, *(options or ("--profile", "*")), "config", "--format", "json"]
    found: dict[str, Any] = json.loads(ask(command, project, **environ))["services"]
    for service in found.values():
        # A variable without a value is not set in the container.
        service["environment"] = {name: value for name, value in service["environment"].items() if value is not None}
    return found


def supervisor_settings(found: dict[str, Any]) -> Settings:
    """The settings that the supervisor's container starts with."""
    return load_settings(found[SUPERVISOR]["environment"], env_file=None)


@pytest.fixture(scope="session")
def unconfigured(tmp_path_factory: pytest.TempPathFactory, compose: list[str]) -> Path:
    """A directory with the compose files and, for each, the services of all profiles where nothing is configured."""

    def write(directory: Path) -> None:
        for file in FILES:
            shutil.copy(ROOT / file, directory)
            found = services(compose, directory, file)
            (directory / f"{file}.json").write_text(json.dumps(found), encoding="utf-8")

    return made_once(tmp_path_factory, "compose-services", write)


def all_services(unconfigured: Path, file: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((unconfigured / f"{file}.json").read_text(encoding="utf-8"))
    return found


@every_file
def test_there_is_a_service_for_every_agent_one_supervisor_a_knowledge_base_and_a_slack_bot(file: str) -> None:
    listed = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))["services"]
    assert list(listed) == [SUPERVISOR, KNOWLEDGE_BASE, SLACK_BOT, *map(service_of, AGENTS)]


@every_file
def test_without_a_profile_the_supervisor_starts_alone(compose: list[str], project: Path, file: str) -> None:
    assert ask([*compose, "--file", file, "config", "--services"], project).split() == [SUPERVISOR]


@every_file
def test_each_agent_has_profiles_of_its_own(compose: list[str], unconfigured: Path, file: str) -> None:
    found = all_services(unconfigured, file)
    assert found.keys() == {SUPERVISOR, KNOWLEDGE_BASE, SLACK_BOT, *map(service_of, AGENTS)}
    for agent in AGENTS:
        assert found[service_of(agent)]["profiles"] == [agent, f"{agent}-agent", "all-agents"]
    chosen = services(compose, unconfigured, file, "--profile", "github", "--profile", "netutils-agent")
    assert chosen.keys() == {SUPERVISOR, "agent-github", "agent-netutils"}


@every_file
def test_each_service_runs_what_it_is_named_after_and_listens_where_it_is_looked_for(
    unconfigured: Path, file: str
) -> None:
    found = all_services(unconfigured, file)
    for agent in AGENTS:
        service = found[service_of(agent)]
        assert parser().parse_args(service["command"]).name == agent
        settings = load_settings(service["environment"], env_file=None)
        assert (settings.a2a_host, settings.public_url) == ("0.0.0.0", resolve_address(agent, {}))
        assert settings.a2a_port == urlsplit(resolve_address(agent, {})).port
        assert "ports" not in service
        # Nothing outside of the project reaches it, and the supervisor calls it by its name.
        assert settings.allow_anonymous
    supervisor = load_settings(found[SUPERVISOR]["environment"], env_file=None)
    assert not supervisor.allow_anonymous
    options = parser().parse_args(found[SUPERVISOR]["command"])
    assert (options.published_on, options.allowed_hosts) == ("127.0.0.1", [SUPERVISOR])
    (port,) = found[SUPERVISOR]["ports"]
    assert (port["host_ip"], port["published"], port["target"]) == ("127.0.0.1", "8000", supervisor.a2a_port)
    assert parser().parse_args(found[SUPERVISOR]["command"])


@every_file
def test_the_knowledge_base_listens_where_the_supervisor_is_told(
    compose: list[str], unconfigured: Path, file: str
) -> None:
    address = f"http://{KNOWLEDGE_BASE}:8000/mcp"
    found = services(compose, unconfigured, file, "--profile", "rag", RAG_SERVER_URL=address)
    assert found.keys() == {SUPERVISOR, KNOWLEDGE_BASE}
    assert supervisor_settings(found).rag_server_url == address
    service = found[KNOWLEDGE_BASE]
    options = parser().parse_args(service["command"])
    inside = load_settings(service["environment"], env_file=None)
    assert (inside.a2a_host, options.port, inside.rag_server_url) == ("0.0.0.0", urlsplit(address).port, None)
    # The health check asks at A2A_PORT.
    assert options.port == inside.a2a_port
    assert "ports" not in service
    assert supervisor_settings(all_services(unconfigured, file)).rag_server_url is None
    assert (inside.allow_anonymous, options.allowed_hosts) == (True, [KNOWLEDGE_BASE])
    comment = (ROOT / "docker-compose.yaml").read_text(encoding="utf-8")
    assert f"RAG_SERVER_URL={address} docker compose --profile rag up -d" in comment


@every_file
def test_the_slack_bot_finds_the_supervisor_and_is_found_by_slack(compose: list[str], project: Path, file: str) -> None:
    env = "SUPERVISOR_URL=http://127.0.0.1:9000\nSLACK_PORT=3001\nSLACK_BOT_TOKEN=xoxb-from-the-file\n"
    (project / ".env").write_text(env, encoding="utf-8")
    found = services(compose, project, file, "--profile", "slack")
    assert found.keys() == {SUPERVISOR, SLACK_BOT}
    service = found[SLACK_BOT]
    assert parser().parse_args(service["command"])
    inside = load_settings(service["environment"], env_file=None)
    supervisor = load_settings(found[SUPERVISOR]["environment"], env_file=None)
    assert inside.supervisor_url == f"http://{SUPERVISOR}:{supervisor.a2a_port}"
    # The health check asks at A2A_PORT.
    assert (inside.slack_host, inside.slack_port) == ("0.0.0.0", inside.a2a_port)
    (port,) = service["ports"]
    assert (port["host_ip"], port["published"], port["target"]) == ("127.0.0.1", "3001", inside.slack_port)
    assert inside.slack_bot_token
    assert inside.slack_bot_token.get_secret_value() == "xoxb-from-the-file"
    comment = (ROOT / "docker-compose.yaml").read_text(encoding="utf-8")
    assert "docker compose --profile slack up -d" in comment


@every_file
def test_a_setting_comes_from_the_shell_else_from_env_file_else_from_its_default(
    compose: list[str], project: Path, unconfigured: Path, file: str
) -> None:
    values = {
        "A2A_PUBLIC_URL": "https://supervisor.example",
        "DISTRIBUTED_AGENTS": "argocd",
        "DISTRIBUTED_MODE": "True",
        "RAG_SERVER_URL": "http://rag.example/mcp",
        "SEARCH_MAX_CALLS": "7",
        "FETCH_DOCUMENT_MAX_CALLS": "8",
        "RAG_MAX_OUTPUT_CHARS": "9000",
        "RAG_MAX_SEARCH_RESULTS": "4",
        "LANGGRAPH_RECURSION_LIMIT": "77",
    }

    def chosen(settings: Settings) -> dict[str, str]:
        return {name: str(getattr(settings, name.lower())) for name in values}

    def found(**environ: str) -> dict[str, str]:
        return chosen(supervisor_settings(services(compose, project, file, **environ)))

    defaults = load_settings({}, env_file=None)
    assert chosen(supervisor_settings(all_services(unconfigured, file))) == chosen(defaults)
    lines = [f"{name}={value}" for name, value in values.items()]
    (project / "prod.env").write_text("\n".join(lines), encoding="utf-8")
    assert found(ENV_FILE="prod.env") == values
    assert found(ENV_FILE="prod.env", DISTRIBUTED_AGENTS="jira") == {**values, "DISTRIBUTED_AGENTS": "jira"}
    assert found(**values) == values


@every_file
def test_services_share_image_and_data_and_wait_for_nobody(unconfigured: Path, file: str) -> None:
    found = all_services(unconfigured, file).values()
    assert len({service["image"] for service in found}) == 1
    assert len({json.dumps(service.get("build")) for service in found}) == 1
    assert all(("build" in service) == (file == "docker-compose.dev.yaml") for service in found)
    for service in found:
        assert [(volume["source"], volume["target"]) for volume in service["volumes"]] == [("data", "/data")]
        assert service["environment"]["DATA_DIR"] == "/data"
        assert service["healthcheck"]["test"] == ["CMD", "healthcheck", "/readyz"]
        assert "depends_on" not in service


@every_file
def test_the_image_is_built_from_files_that_are_there(unconfigured: Path, file: str) -> None:
    for service in all_services(unconfigured, file).values():
        if build := service.get("build"):
            assert Path(build["context"]) == unconfigured
            assert (ROOT / build["dockerfile"]).is_file()
            arguments = re.findall(r"^ARG (\w+)", (ROOT / build["dockerfile"]).read_text("utf-8"), re.MULTILINE)
            assert build["args"].keys() <= set(arguments)


@every_file
def test_settings_come_from_the_env_file_but_for_what_a_container_fixes(
    compose: list[str], project: Path, file: str
) -> None:
    env = "A2A_HOST=0.0.0.0\nA2A_PORT=9000\nDATA_DIR=/home/me\nTOOL_TIMEOUT=33\n"
    (project / ".env").write_text(env + "DISTRIBUTED_AGENTS=github\n", encoding="utf-8")
    found = services(compose, project, file)
    for name, service in found.items():
        inside = service["environment"]
        assert ("TOOL_TIMEOUT" in inside) == (name not in {KNOWLEDGE_BASE, SLACK_BOT})
        assert (inside["A2A_HOST"], inside["A2A_PORT"], inside["DATA_DIR"]) == ("0.0.0.0", "8000", "/data")
    supervisor = found[SUPERVISOR]
    assert (supervisor["ports"][0]["host_ip"], supervisor["ports"][0]["published"]) == ("0.0.0.0", "9000")
    assert supervisor_settings(found).public_url == "http://127.0.0.1:9000"
    assert supervisor_settings(found).distributed_agents == "github"
    shell = services(compose, project, file, DISTRIBUTED_AGENTS="jira,argocd")
    assert supervisor_settings(shell).distributed_agents == "jira,argocd"
    assert parser().parse_args(supervisor["command"]).published_on == "0.0.0.0"


@every_file
def test_nothing_secret_is_in_the_files(unconfigured: Path, file: str) -> None:
    for service in all_services(unconfigured, file).values():
        assert not [name for name, value in service["environment"].items() if value and looks_secret(name)]


def test_an_agent_gets_every_setting_that_it_may_use() -> None:
    """A new setting of these groups must be named in the compose file."""
    listed = yaml.safe_load((ROOT / FILES[0]).read_text(encoding="utf-8"))["services"]
    groups = {"Model", "Graph", "Approvals", "MCP", "Sandbox", "Limits", "Audit"}
    wanted = {name for name in fields_by_variable() if field_group(name) in groups}
    wanted -= {"LANGGRAPH_DEV", "MCP_SERVERS_DIR", "BUDGETS_FILE", "POLICY_FILE"}  # the last two are the supervisor's
    for agent in AGENTS:
        assert wanted <= listed[service_of(agent)]["environment"].keys()


@every_file
def test_each_container_gets_its_own_secrets_only(compose: list[str], project: Path, file: str) -> None:
    """With a value for every secret of the product and of the built-in agents in .env."""
    secrets = {name for name in secret_variables() if field_group(name) != "Model"}
    keys = secret_variables() - secrets
    of_agents = {name: {*manifest.requires, *manifest.variables()} for name, manifest in MANIFESTS.items()}
    every = {*secret_variables(), *(name for names in of_agents.values() for name in names)}
    (project / ".env").write_text("".join(f"{name}=value-of-{name}\n" for name in every), encoding="utf-8")
    found = services(compose, project, file)
    given = {
        name: {variable for variable, value in service["environment"].items() if value.startswith("value-of-")}
        for name, service in found.items()
    }
    slack = {name for name in secrets if name.startswith("SLACK_")}
    for agent, own in of_agents.items():
        assert given[service_of(agent)] == {*own, *keys, "A2A_AGENTS_AUTH_KEY", "AUDIT_KEY"}, agent
        settings = load_settings(found[service_of(agent)]["environment"], env_file=None)
        assert not sandbox_is_on(settings, MANIFESTS), "a real backend of any agent turns the sandbox off"
    clients = {"A2A_AUTH_SHARED_KEY", "SUPERVISOR_KEY", "USER_SIGNING_KEY", "A2A_OAUTH_CLIENT_SECRET"}
    assert given[SLACK_BOT] == {*slack, *clients}
    assert given[KNOWLEDGE_BASE] == {*keys, "RAG_DATABASE_URL", "RERANK_API_KEY", "A2A_AGENTS_AUTH_KEY"}
    tokens = {"SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"}
    assert given[SUPERVISOR] == every - tokens
    chosen = services(compose, project, file, AWS_REGION="eu-central-1", EVENT_LOG="postgres")
    jira = chosen[service_of("jira")]["environment"]
    assert jira["AWS_SECRET_ACCESS_KEY"] == "value-of-AWS_SECRET_ACCESS_KEY"
    assert jira["EVENT_LOG_POSTGRES_DSN"] == "value-of-EVENT_LOG_POSTGRES_DSN"


def test_quick_sanity_starts_the_supervisor_and_two_agents_whatever_env_says(compose: list[str], project: Path) -> None:
    (project / ".env").write_text("LLM_PROVIDER=openai\nA2A_AUTH_SHARED_KEY=mine\n", encoding="utf-8")
    first, second, *options = compose_command("quick-sanity")
    assert (first, second) == ("docker", "compose")
    command = [*compose, *options, "config", "--format", "json"]
    found = json.loads(ask(command, project, ENV_FILE=str(ENV_FILE)))["services"]
    assert found.keys() == {SUPERVISOR, "agent-github", "agent-netutils"}
    for service in found.values():
        assert (service["environment"]["LLM_PROVIDER"], service["environment"]["SANDBOX"]) == ("offline", "true")
        assert not service["environment"].get("A2A_AUTH_SHARED_KEY")
    assert supervisor_settings(found).distributed_agents == "github,netutils"


SHOWN = re.findall(
    r"((?:[A-Z_]+=\S+ )*docker compose (?:[^`\n]* )?up -d[^`\n]*)",
    (ROOT / "docs/deploy.md").read_text(encoding="utf-8"),
)


@pytest.mark.parametrize("line", SHOWN)
def test_commands_on_the_page_start_what_they_place_outside(compose: list[str], project: Path, line: str) -> None:
    words = shlex.split(line)
    environ = dict(word.split("=", 1) for word in words[: words.index("docker")])
    options = words[words.index("compose") + 1 : words.index("up")]
    started = set(ask([*compose, *options, "config", "--services"], project, **environ).split())
    distributed = environ.get("DISTRIBUTED_AGENTS", "")
    named = AGENTS if distributed == "all" else distributed.split(",")
    knowledge = {urlsplit(address).hostname} if (address := environ.get("RAG_SERVER_URL")) else set()
    bot = {SLACK_BOT} if "slack" in options else set()
    assert started == {SUPERVISOR, *map(service_of, filter(None, named)), *knowledge, *bot}


def test_the_page_shows_commands() -> None:
    assert len(SHOWN) == 5
