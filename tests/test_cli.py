from __future__ import annotations

import argparse
import functools
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import httpx
import pytest

from ai_platform_engineering.cli import build_parser
from ai_platform_engineering.utils.serving import listen
from tests.servers import Command, Completed

parser = functools.cache(build_parser)
"""Built once: that takes longer than any of the tests with it."""


def refusal(completed: Completed) -> str:
    """What a command that cannot start says: on standard error, and nothing else."""
    assert completed.returncode == 2
    assert completed.stdout == ""
    assert "Traceback" not in completed.stderr
    return completed.stderr


class TestParser:
    @pytest.mark.parametrize(
        ("argv", "expected"),
        [
            ([], {}),
            (["--port", "9000"], {"port": 9000}),
            (["--host", "0.0.0.0", "serve", "--port", "0"], {"host": "0.0.0.0", "port": 0}),
            (["serve"], {}),
            (["agent", "argocd", "--port", "9001"], {"name": "argocd", "port": 9001}),
            (["doctor", "--json"], {"json": True, "offline": False}),
        ],
    )
    def test_options(self, argv: list[str], expected: dict[str, object]) -> None:
        options = vars(parser().parse_args(argv))
        assert callable(options.pop("run"))
        assert options.pop("quiet") is ("json" in expected)
        assert options == expected

    def test_no_command_serves(self) -> None:
        parser = build_parser()
        assert parser.parse_args([]).run is parser.parse_args(["serve"]).run

    def test_every_command_exists(self) -> None:
        parsers, names = [build_parser()], set()
        while parsers:
            parser = parsers.pop()
            if (run := parser.get_default("run")) is not None:
                names.add(run.args[0])
            for action in parser._actions:
                if isinstance(action, argparse._SubParsersAction):
                    parsers += action.choices.values()
        assert len(names) > 20
        for name in names:
            module, _, function = name.partition(".")
            assert callable(getattr(import_module(f"ai_platform_engineering.cli.{module}"), function)), name

    @pytest.mark.parametrize(
        "argv", [["--port", "65536"], ["--port", "x"], ["nosuch"], ["agent"], ["sandbox"], ["agents"], ["doctor", "x"]]
    )
    def test_wrong_arguments(self, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as caught:
            parser().parse_args(argv)
        assert caught.value.code == 2
        assert "usage: platform-engineer" in capsys.readouterr().err


def test_help_imports_nothing_that_takes_time() -> None:
    script = (
        "import sys\n"
        "from ai_platform_engineering.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'a2a', 'asyncio', 'httpx', 'langchain_core', 'mcp', 'pydantic', 'rich', 'uvicorn', 'yaml'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "doctor" in completed.stdout
    assert completed.stderr == "[]\n"


@pytest.mark.parametrize(("given", "seen"), [({}, "false"), ({"OTEL_INSTRUMENTATION_A2A_SDK_ENABLED": "true"}, "true")])
def test_tracing_of_the_sdk_is_off_unless_asked_for(given: dict[str, str], seen: str, environ: dict[str, str]) -> None:
    script = (
        "import os\n"
        "from ai_platform_engineering.cli import main\n"
        "main(['sandbox', 'path'])\n"
        "print(os.environ['OTEL_INSTRUMENTATION_A2A_SDK_ENABLED'])\n"
    )
    completed = subprocess.run(
        [sys.executable, "-c", script], env={**environ, **given}, capture_output=True, text=True, check=True
    )
    assert completed.stdout.splitlines()[-1] == seen


def test_both_commands_are_the_same() -> None:
    from importlib.metadata import entry_points

    names = ("platform-engineer", "platform-engineer-single")
    targets = {entry_points(group="console_scripts")[name].value for name in names}
    assert targets == {"ai_platform_engineering.cli:main"}


def test_version(platform_engineer: Command) -> None:
    completed = platform_engineer("--version")
    assert completed.returncode == 0
    assert completed.stdout.startswith("platform-engineer 0.")


class TestRefusals:
    def test_wrong_settings_are_a_sentence_each(self, platform_engineer: Command) -> None:
        sentences = refusal(platform_engineer("doctor", A2A_PORT="99999", SANDBOX="perhaps")).splitlines()
        assert len(sentences) == 2
        assert "A2A_PORT=99999" in sentences[0]
        assert "SANDBOX=perhaps" in sentences[1]

    def test_a_wrong_value_for_one_agent(self, platform_engineer: Command) -> None:
        assert "ENABLE_NETUTILS=perhaps" in refusal(platform_engineer("serve", ENABLE_NETUTILS="perhaps"))

    def test_a_wrong_manifest(self, platform_engineer: Command, tmp_path: Path) -> None:
        agents = tmp_path / "agents"
        agents.mkdir()
        (agents / "broken.yaml").write_text("name: broken\nspeed: high\n")
        assert "broken.yaml: " in refusal(platform_engineer("agents", "list", AGENTS_DIR=str(agents)))

    def test_an_unknown_agent(self, platform_engineer: Command) -> None:
        assert "Did you mean 'netutils'?" in refusal(platform_engineer("agent", "netutil"))

    @pytest.mark.parametrize("command", [("serve",), ("agent", "netutils")])
    def test_a_port_in_use(self, platform_engineer: Command, command: tuple[str, ...]) -> None:
        with listen("127.0.0.1", 0) as taken:
            port = taken.getsockname()[1]
            sentence = refusal(platform_engineer(*command, "--port", str(port)))
        assert sentence == (
            f"platform-engineer: Port {port} on 127.0.0.1 is already in use; "
            "choose another with --port (0 takes any free one).\n"
        )

    @pytest.mark.parametrize(
        ("settings", "sentence"),
        [
            ({}, "needs EVENT_LOG=postgres"),
            ({"EVENT_LOG": "postgres", "EVENT_LOG_POSTGRES_DSN": "postgresql://h/d"}, "LANGGRAPH_CHECKPOINT_TYPE"),
        ],
    )
    def test_workers_that_cannot_share_their_work(
        self, platform_engineer: Command, settings: dict[str, str], sentence: str
    ) -> None:
        assert sentence in refusal(platform_engineer("serve", "--workers", "2", **settings))

    def test_a_model_that_cannot_be_made(self, platform_engineer: Command) -> None:
        sentence = refusal(platform_engineer("serve", "--port", "0", OPENAI_API_KEY="sk-0123456789abc"))
        assert "OPENAI_MODEL_NAME" in sentence
        assert "0123456789abc" not in sentence


def test_a_file_of_settings_is_read(platform_engineer: Command, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("WEATHER_AGENT_URL=http://weather.test\n")
    lines = platform_engineer("agents", "list").stdout.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith("weather")] == [["weather", "remote"]]


@pytest.mark.parametrize("command", [("agent", "netutils", "--port", "0"), ("chat", "hello")])
def test_a_setting_that_does_not_exist_is_named(
    platform_engineer: Command, command: tuple[str, ...], tmp_path: Path
) -> None:
    # The data directory cannot be used, so that servers stop after their warnings.
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tasks.db").mkdir()
    (tmp_path / "data" / "tasks-netutils.db").mkdir()
    completed = platform_engineer(*command, OPENAI_MODL_NAME="gpt")
    assert "OPENAI_MODL_NAME is set, but there is no such setting. Did you mean OPENAI_MODEL_NAME?" in completed.stderr


def test_agents_are_listed(platform_engineer: Command) -> None:
    lines = platform_engineer("agents", "list", ENABLE_JIRA="false").stdout.splitlines()
    places = {line.split()[0]: line.split()[1] for line in lines}
    assert places["argocd"] == "in-process"
    assert places["jira"] == "off"


def test_servers_of_unknown_agents_cannot_be_installed(platform_engineer: Command) -> None:
    assert "There is no agent jiro. Use all, or some of: argocd, " in refusal(
        platform_engineer("agents", "install", "jiro")
    )
    assert platform_engineer("agents", "install").stdout.startswith("There is nothing to install.")


class TestSandbox:
    def test_its_path(self, platform_engineer: Command, tmp_path: Path) -> None:
        assert platform_engineer("sandbox", "path").stdout == f"{tmp_path}/data/sandbox.db\n"

    def test_it_is_seeded_anew(self, platform_engineer: Command, tmp_path: Path) -> None:
        world = tmp_path / "data" / "sandbox.db"
        world.parent.mkdir()
        world.write_text("not a database")
        completed = platform_engineer("sandbox", "reset")
        assert completed.returncode == 0
        assert str(world) in completed.stdout
        assert world.read_bytes().startswith(b"SQLite format 3")

    def test_a_place_that_cannot_be_written(self, platform_engineer: Command) -> None:
        assert "/dev/null" in refusal(platform_engineer("sandbox", "reset", DATA_DIR="/dev/null/x"))


class TestDoctor:
    def test_json(self, platform_engineer: Command) -> None:
        completed = platform_engineer("doctor", "--json")
        report = json.loads(completed.stdout)
        agents = {agent["name"]: agent for agent in report["agents"]}
        assert (completed.returncode, report["ok"]) == (0, True)
        assert "version_service__version" in agents["argocd"]["tools"]
        assert completed.stderr == ""

    def test_an_agent_that_cannot_be_used_is_a_failure(self, platform_engineer: Command, unused_port: int) -> None:
        completed = platform_engineer(
            "doctor", DISTRIBUTED_AGENTS="argocd", ARGOCD_AGENT_URL=f"http://127.0.0.1:{unused_port}"
        )
        assert completed.returncode == 1
        assert completed.stdout.endswith("connection refused\nNot usable: argocd.\n")
        assert completed.stderr == ""


class TestServers:
    @pytest.fixture
    def started(self, tmp_path: Path, environ: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
        processes: list[subprocess.Popen[str]] = []

        def start(*arguments: str, **variables: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, "-m", "ai_platform_engineering.cli", *arguments],
                env={**environ, **variables},
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            processes.append(process)
            return process

        yield start
        for process in processes:
            process.kill()
            process.communicate()

    @pytest.mark.parametrize(
        ("command", "key"),
        [
            (("serve",), "A2A_AUTH_SHARED_KEY"),
            (("agent", "netutils"), "A2A_AGENTS_AUTH_KEY"),
            (("rag", "serve"), "A2A_AGENTS_AUTH_KEY"),
        ],
    )
    def test_without_a_key_it_serves_this_machine_alone(
        self,
        started: Callable[..., subprocess.Popen[str]],
        platform_engineer: Command,
        command: tuple[str, ...],
        key: str,
    ) -> None:
        for host in ("0.0.0.0", "::"):
            sentence = refusal(platform_engineer(*command, "--host", host, "--port", "0"))
            assert f"Other machines can reach {host}, and callers need no key. Set {key} " in sentence
            assert "ALLOW_ANONYMOUS=true" in sentence
        for variables in ({key: "a-key-of-sixteen-letters"}, {"ALLOW_ANONYMOUS": "true"}):
            process = started(*command, "--host", "0.0.0.0", "--port", "0", **variables)
            assert process.stdout is not None
            assert " is ready at http://127.0.0.1:" in process.stdout.readline()
            process.terminate()
            process.wait(10)

    def test_tokens_for_other_services_are_accepted_on_request_only(self, platform_engineer: Command) -> None:
        command = ("agent", "netutils", "--host", "0.0.0.0", "--port", "0")
        sentence = refusal(platform_engineer(*command, A2A_OAUTH_ISSUER="https://issuer.example"))
        assert "Set A2A_OAUTH_AUDIENCE" in sentence

    def test_in_a_container_the_published_address_counts(
        self, started: Callable[..., subprocess.Popen[str]], platform_engineer: Command
    ) -> None:
        command = ("serve", "--host", "0.0.0.0", "--port", "0", "--published-on")
        assert "Other machines can reach 0.0.0.0" in refusal(platform_engineer(*command, "0.0.0.0"))
        process = started(*command, "127.0.0.1")
        assert process.stdout is not None
        assert " is ready at http://127.0.0.1:" in process.stdout.readline()

    @pytest.mark.parametrize(
        ("command", "who", "sandbox", "approval"),
        [
            ((), "Platform Engineer", "on", "destructive on the sandbox, writes on real backends"),
            (("agent", "netutils"), "Agent netutils", "off", "writes"),
        ],
    )
    def test_it_says_when_it_is_ready_and_stops_when_asked(
        self,
        started: Callable[..., subprocess.Popen[str]],
        command: tuple[str, ...],
        who: str,
        sandbox: str,
        approval: str,
    ) -> None:
        process = started(*command, "--port", "0")
        assert process.stdout is not None
        line = process.stdout.readline()
        address = line.removeprefix(f"{who} is ready at ").split(" ")[0]
        assert line == f"{who} is ready at {address} (model: offline, sandbox: {sandbox}, approval: {approval})\n"
        assert httpx.get(f"{address}/readyz").status_code == 200
        card = httpx.get(f"{address}/.well-known/agent-card.json").json()
        assert address in str(card)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)
        assert (process.returncode, output) == (0, "")
        assert "Traceback" not in errors

    def test_the_doctor_finds_an_agent_that_runs_elsewhere(
        self, started: Callable[..., subprocess.Popen[str]], platform_engineer: Command
    ) -> None:
        key = "k3y-between-friends"
        process = started("agent", "netutils", "--port", "0", A2A_AGENTS_AUTH_KEY=key)
        assert process.stdout is not None
        address = process.stdout.readline().split(" ready at ")[1].split(" ")[0]
        remote = {"DISTRIBUTED_AGENTS": "netutils", "NETUTILS_AGENT_URL": address}
        found = {
            agent["name"]: agent
            for agent in json.loads(platform_engineer("doctor", "--json", A2A_AGENTS_AUTH_KEY=key, **remote).stdout)[
                "agents"
            ]
        }
        assert (found["netutils"]["where"], found["netutils"]["reachable"]) == ("remote", True)
        assert "dns_lookup" in found["netutils"]["tools"]
        assert found["jira"]["where"] == "in-process"
