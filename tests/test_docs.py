"""What the pages tell people to type works: every fenced block is run, or checked by the code that would read it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

from ai_platform_engineering.budgets.file import read_budgets
from ai_platform_engineering.cli import build_parser
from ai_platform_engineering.forms.answers import Submitted, read_answer
from ai_platform_engineering.forms.replies import FormReply, Resume, interpret
from ai_platform_engineering.integrations.slack_bot.channel_rules import read_rules
from ai_platform_engineering.manifest import builtin_directory, load_manifests, read_manifest
from ai_platform_engineering.mcp.expansion import INHERITED_VARIABLES
from ai_platform_engineering.policy.file import read_policy
from ai_platform_engineering.settings import DYNAMIC_VARIABLES, Settings, load_settings
from ai_platform_engineering.utils.a2a_common.codec.forms import form_data, read_form
from tests.forked_commands import COMMAND as FORKED
from tests.services.environment import download_lock

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ADDRESS = "http://127.0.0.1:8000"

# Commands that end by themselves and quickly; the others serve until they are stopped, and are parsed.
RUN_FOR_REAL = {"doctor", "agents", "sandbox", "workflows", "ingest", "rag", "skills"}
ENDING_OPTIONS = {"--preview", "--manifest"}
INSTALLED = [str(Path(sys.executable).with_name("platform-engineer"))]
RECORDING = ROOT / "tests/recordings/two-agents.jsonl"
PARSER = build_parser()


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True)
class Command:
    block: Block
    environ: tuple[tuple[str, str], ...]
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.block} {' '.join(self.words)[:60]}"


def fenced_blocks(page: Path) -> Iterator[Block]:
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        yield Block(page, match.string.count("\n", 0, match.start()) + 1, match[1], match[2])


def commands(block: Block) -> Iterator[Command]:
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        assignments = 0
        while assignments < len(words) and re.match(r"[A-Z][A-Z0-9_]*=", words[assignments]):
            assignments += 1
        if words:
            environ = tuple((name, value) for name, _, value in (word.partition("=") for word in words[:assignments]))
            yield Command(block, environ, tuple(words[assignments:]))


def ends_by_itself(command: Command) -> bool:
    """And needs nothing that is not here."""
    elsewhere = "--url" in command.words or any("https://" in word for word in command.words)
    needs_more = command.environ or "serve" in command.words or elsewhere
    ends = command.words[1] in RUN_FOR_REAL or not ENDING_OPTIONS.isdisjoint(command.words)
    return ends and not needs_more


BLOCKS = [block for page in PAGES for block in fenced_blocks(page)]
COMMANDS = [command for block in BLOCKS if block.language == "bash" for command in commands(block)]
PROGRAM = [command for command in COMMANDS if Path(command.words[0]).name.startswith("platform-engineer")]
MAKE = [command for command in COMMANDS if command.words[0] == "make"]
CURL = [command for command in COMMANDS if command.words[0] == "curl"]
PYTEST = [command for command in COMMANDS if Path(command.words[0]).name == "pytest"]
NPX = [command for command in COMMANDS if command.words[0] == "npx"]
# Run by tests/multi_agents/platform_engineer/test_studio.py.
UVX = [command for command in COMMANDS if Path(command.words[0]).name == "uvx"]


def blocks_of(language: str, page: str | None = None) -> list[Block]:
    return [block for block in BLOCKS if block.language == language and page in (None, block.page.name)]


def test_every_block_and_every_command_is_covered() -> None:
    assert {block.language for block in BLOCKS} <= {
        *("bash", "ini", "json", "markdown", "mermaid", "text", "yaml"),
        "nginx",  # run by tests/ui/test_proxy.py
    }
    assert set(COMMANDS) == {*PROGRAM, *MAKE, *CURL, *PYTEST, *NPX, *UVX}
    assert MAKE
    assert PROGRAM
    assert CURL


@pytest.mark.parametrize("command", MAKE, ids=str)
def test_make_targets_exist(command: Command) -> None:
    result = subprocess.run(
        ["make", "-n", *command.words[1:]], cwd=ROOT, capture_output=True, check=False, encoding="utf-8"
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("command", PYTEST, ids=str)
def test_test_files_exist(command: Command) -> None:
    assert all((ROOT / word).exists() for word in command.words[1:])


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the manifests of docs/agents.md and the skill of docs/skills.md where those pages put
    them, a runbook, a recording."""
    shutil.copy(RECORDING, tmp_path / "run.jsonl")
    (tmp_path / "runbooks").mkdir()
    (tmp_path / "runbooks" / "rollback.md").write_text("# Roll back\n\nRoll back a release with its last tag.\n")
    text = (ROOT / "docs/agents.md").read_text(encoding="utf-8")
    for block in blocks_of("yaml", "agents.md"):
        name = re.findall(r"`my-agents/(\w+\.yaml)`", text[: text.index(block.text)])[-1]
        (tmp_path / "my-agents").mkdir(exist_ok=True)
        (tmp_path / "my-agents" / name).write_text(block.text, encoding="utf-8")
    (skill,) = blocks_of("markdown", "skills.md")
    for folder in ("restart-service", "my-skills/restart-service"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "SKILL.md").write_text(skill.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def clean_environ(data_dir: Path) -> dict[str, str]:
    """The environment of someone who has activated .venv and configured nothing."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    inherited = {name: os.environ[name] for name in ("HOME", *INHERITED_VARIABLES) if name in os.environ}
    return {**inherited, "PATH": path, "DATA_DIR": str(data_dir)}


def run_program(arguments: Sequence[str], workplace: Path, program: Sequence[str] = FORKED, **environ: str) -> str:
    result = subprocess.run(
        [*program, *arguments],
        cwd=workplace,
        env=clean_environ(workplace / "data") | environ,
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=100,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("command", PROGRAM, ids=str)
def test_commands_are_understood(command: Command, workplace: Path) -> None:
    load_settings(dict(command.environ), env_file=None)
    options = PARSER.parse_args(command.words[1:])
    if command.words[1] == "agent":
        assert options.name in load_manifests([builtin_directory()])


# Several pages have the same command.
ENDING = {command.words[1:]: command for command in reversed(PROGRAM) if ends_by_itself(command)}


@pytest.mark.parametrize("command", ENDING.values(), ids=str)
def test_commands_that_end_are_run(command: Command, workplace: Path) -> None:
    if command.words[1:3] == ("rag", "remove"):
        run_program(["ingest", "./runbooks"], workplace)
    if command.words[1:3] == ("skills", "remove"):
        run_program(["skills", "add", "./restart-service"], workplace)
    first = next(other for other in reversed(ENDING.values()) if other.words[1] == command.words[1])
    # One of each starts as people start it, with all its imports.
    assert run_program(command.words[1:], workplace, INSTALLED if command is first else FORKED)


def not_here(reason: str) -> NoReturn:
    if os.environ.get("REQUIRE_SERVICES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def public_server(command: Command, port: int) -> Iterator[None]:
    """The MCP server that a page starts, on this port instead of the page's."""
    program = shutil.which(command.words[0])
    if program is None:
        not_here(f"{command.words[0]} is not installed")
    environ = {**os.environ, **dict(command.environ), "PORT": str(port)}
    with ExitStack() as stack:
        downloading = stack.enter_context(ExitStack())
        downloading.enter_context(download_lock("npx"))
        # npx starts the server as a child of its own, which ends with the process group.
        process = stack.enter_context(
            subprocess.Popen([program, *command.words[1:]], env=environ, start_new_session=True)
        )
        try:
            deadline = time.monotonic() + 100
            with socket.socket() as probe:
                while probe.connect_ex(("127.0.0.1", port)) != 0:
                    if process.poll() is not None or time.monotonic() > deadline:
                        not_here(f"{' '.join(command.words)} did not start")
                    time.sleep(0.1)
            downloading.close()
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def tools_of(agent: str, report: str) -> list[str]:
    (row,) = (row for row in json.loads(report)["agents"] if row["name"] == agent)
    assert row["enabled"], row
    return sorted(row["tools"])


def test_the_agent_over_stdio_gets_its_tools(workplace: Path) -> None:
    environ = next(dict(command.environ) for command in PROGRAM if "AGENTS_DIR" in dict(command.environ))
    report = run_program(["doctor", "--json"], workplace, **environ, MCP_START_TIMEOUT="90")
    (server,) = read_manifest(workplace / "my-agents/clock.yaml").servers
    start = [str(server.command), *server.args, "--help"]
    tools = tools_of("clock", report)
    if not tools and subprocess.run(start, env=clean_environ(workplace), check=False).returncode != 0:
        not_here(f"{' '.join(start)} does not run; is there a package index?")
    assert tools == ["convert_time", "get_current_time"]


def test_the_agent_over_http_gets_its_tools(workplace: Path, unused_port: int) -> None:
    environ = next(dict(command.environ) for command in PROGRAM if "ECHO_MCP_URL" in dict(command.environ))
    (server,) = NPX
    with public_server(server, unused_port):
        environ["ECHO_MCP_URL"] = environ["ECHO_MCP_URL"].replace(dict(server.environ)["PORT"], str(unused_port))
        report = run_program(["doctor", "--json"], workplace, **environ, ENABLE_CLOCK="false")
    assert tools_of("echo", report) == ["echo", "get-sum"]


@pytest.mark.parametrize("block", blocks_of("ini"), ids=str)
def test_settings_are_allowed(block: Block, tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text(block.text, encoding="utf-8")
    settings = load_settings({}, env_file)
    assert len(settings.environ) == sum("=" in line and not line.startswith("#") for line in block.text.splitlines())


@pytest.mark.parametrize("block", blocks_of("yaml"), ids=str)
def test_files_are_allowed(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(block.text, encoding="utf-8")
    readers: dict[str, Callable[[Path], object]] = {
        "agents.md": read_manifest,
        "policy.md": read_policy,
        "budgets.md": read_budgets,
        "operate.md": lambda file: yaml.safe_load(file.read_text(encoding="utf-8")),  # for Prometheus
        "slack.md": read_rules,
    }
    assert readers[block.page.name](file)


def test_the_form_on_the_page_is_answered_as_the_page_says() -> None:
    form_block, answer_block, record = [json.loads(block.text) for block in blocks_of("json")]
    assert record["digest"]
    form = read_form(form_block)
    assert form_data(form) == form_block
    answer = interpret((form,), FormReply(resume=answer_block["resume"]))
    assert answer == Resume(form, Submitted({"repository": "demo"}))
    page = (ROOT / "docs" / "forms.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .+ \| `(\{.+\})` \|$", page, re.MULTILINE)
    assert len(rows) == 5
    assert all(read_answer(json.loads(row)) is not None for row in rows)


def test_the_table_of_built_in_agents_is_complete() -> None:
    section = (ROOT / "docs/agents.md").read_text(encoding="utf-8").split("## ")[1]
    shown = {
        name: (tuple(re.findall(r"`(\w+)`", requires)), "yes" in sandbox)
        for name, requires, sandbox in re.findall(r"^\| `(\w+)` \|(.*)\|(.*)\|$", section, re.MULTILINE)
    }
    manifests = load_manifests([builtin_directory()])
    assert shown == {name: (manifest.requires, manifest.sandbox is not None) for name, manifest in manifests.items()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_variables_on_the_pages_exist(page: Path) -> None:
    per_agent = "|".join(row.pattern.replace("<NAME>", "(?:[A-Z][A-Z0-9]*|<NAME>)") for row in DYNAMIC_VARIABLES)
    known = {name.upper() for name in Settings.model_fields} | {
        "AWS_DEFAULT_REGION",
        *("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"),
        "XDG_DATA_HOME",
        "REQUIRE_SERVICES",
        "FORKED_COMMANDS",
        "WRITE_SCREENSHOTS",
    }
    known |= {name for manifest in load_manifests([builtin_directory()]).values() for name in manifest.requires}
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"`([A-Z<][A-Z0-9_<>]*_[A-Z0-9_<>]+)(?:=[^`]*)?`", text)
    assert [name for name in named if name not in known and not re.fullmatch(per_agent, name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if "://" not in target and not (page.parent / target).exists()] == []


@pytest.fixture(scope="module")
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a supervisor with next to nothing configured."""
    directory = tmp_path_factory.mktemp("supervisor")
    with subprocess.Popen(
        [*INSTALLED, "serve", "--port", "0"],
        cwd=directory,
        # Searches by keywords alone: the vectors of the documentation would keep all cores busy.
        env=clean_environ(directory / "data") | {"EMBEDDINGS_PROVIDER": "none"},
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        try:
            assert process.stdout
            ready = process.stdout.readline()
            address = re.search(r"http://[\w.:]+", ready)
            assert address, f"it did not say where it listens: {ready!r}"
            yield address[0]
        finally:
            process.terminate()


def test_curl_commands_are_answered(supervisor: str) -> None:
    """One after the other: some of them read or delete what another one has stored."""
    for command in CURL:
        check_answer(command, supervisor)


def check_answer(command: Command, supervisor: str) -> None:
    assert any(ADDRESS in word for word in command.words)
    result = subprocess.run(
        ["curl", "--silent", "--show-error", *(word.replace(ADDRESS, supervisor) for word in command.words[1:])],
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=60,
    )
    assert result.returncode == 0, f"{command}: {result.stderr}"
    assert result.stdout, command
    expected = [block.text for block in blocks_of("text") if block.page == command.block.page]
    position = 0
    for line in "".join(expected).splitlines():
        found = result.stdout.find(line, position)
        assert found >= 0, f"{command}: {line!r} did not come, or not in this order"
        position = found
