"""Files of the machine stay on it, wherever the agent runs: a model that names them to a stdio server is refused."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.language_models import BaseChatModel

from ai_platform_engineering.events import ToolFinished
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings
from tests.invariants import check, check_task
from tests.people.dialogues import Dialogue
from tests.servers import Caller, calling, serving

FILE_SERVER = Path(__file__).parents[1] / "mcp/file_server.py"
SECRET = "the-only-copy-of-a-secret"


def models(_settings: Settings, manifest: AgentManifest | None) -> BaseChatModel:
    """The question is the call that the agent makes; its answer is the result."""

    def supervisor(cue: ModelInput) -> Turn:
        if cue.turn == 0:
            return Turn("I hand it on.", [("task", {"description": cue.question, "subagent_type": "files"})])
        return Turn(f"It said: {cue.messages[-1].text}")

    def agent(cue: ModelInput) -> Turn:
        tool, arguments = json.loads(cue.question)
        return Turn("", [(tool, arguments)]) if cue.turn == 0 else Turn(f"Result: {cue.messages[-1].text}")

    return ScriptedChatModel(script=supervisor if manifest is None else agent)


class Machine:
    def __init__(self, folder: Path) -> None:
        self.data, self.calls, self.home = folder / "data", folder / "log/calls", folder / "me"
        self.reports = folder / "reports"
        for directory in (self.data, self.home / ".aws", self.reports, self.calls.parent):
            directory.mkdir(parents=True)
        for file in (self.data / "secret.db", self.home / ".netrc", self.reports / "monday.txt"):
            file.write_text(SECRET)
        (self.reports / "link.txt").symlink_to(self.data / "secret.db")

    def environ(self, **entry: Any) -> dict[str, str]:
        server = {"name": "files", "transport": "stdio", "command": sys.executable, "args": [str(FILE_SERVER)]}
        server |= {"env": {"CALLS_FILE": str(self.calls)}, **entry}
        manifest = {"name": "files", "description": "Files.", "prompt": "You use files.", "servers": [server]}
        agents = self.data.parent / "agents"
        agents.mkdir()
        (agents / "files.yaml").write_text(yaml.safe_dump(manifest))
        return {
            **{name: value for name, value in os.environ.items() if name in {"PATH", "TMPDIR", "LANG"}},
            "AGENTS_DIR": str(agents),
            "DATA_DIR": str(self.data),
            "HOME": str(self.home),
            "SANDBOX": "false",
            "ENABLE_NETUTILS": "false",
            "REQUIRE_APPROVAL": "never",
        }

    def sent(self) -> list[Any]:
        """The calls that reached the server."""
        return [json.loads(line) for line in self.calls.read_text().splitlines()] if self.calls.exists() else []


@asynccontextmanager
async def placed(environ: Mapping[str, str], remote: bool) -> AsyncIterator[Caller]:
    environ = dict(environ)

    def supervisor(settings: Settings) -> Any:
        return create_app(settings, PlatformEngineerDeepAgent(settings, models=models))

    async with AsyncExitStack() as stack:
        if remote:
            agent = serving(partial(create_agent_app, name="files", models=models), environ)
            environ |= {"FILES_AGENT_URL": await stack.enter_async_context(agent), "DISTRIBUTED_AGENTS": "files"}
        url = await stack.enter_async_context(serving(supervisor, environ))
        yield await stack.enter_async_context(calling(url))


async def called(caller: Caller, tool: str, **arguments: Any) -> tuple[ToolFinished, str]:
    """The end of the tool call, and the answer that was made of its result."""
    events = await caller.ask(json.dumps([tool, arguments]))
    ending = check(events)
    [finished] = [event for event in events if isinstance(event, ToolFinished)]
    return finished, getattr(ending, "text", "")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("remote", [False, True], ids=["in-process", "remote"])
async def test_local_files_are_refused_before_the_server_sees_them(machine: Machine, remote: bool) -> None:
    inside = Path.cwd() / "pyproject.toml"
    hostile: list[tuple[str, dict[str, Any]]] = [
        ("upload", {"files": str(machine.data / "secret.db")}),
        ("upload", {"files": f"file://{machine.data}/secret.db"}),
        ("create_page", {"title": "x", "content_file": ".env"}),
        ("create_page", {"title": str(machine.reports / "monday.txt")}),
        ("create_page", {"title": "x", "content": str(machine.data / "not-yet-there")}),
        ("update", {"fields": {"attachments": ["a.txt", str(machine.home / ".netrc")]}}),
        ("update", {"fields": json.dumps({"deep": [{"attachments": f"a.txt,{inside}"}]})}),
        ("update", {"fields": {"source": "~/.netrc"}}),
        ("read_source", {"path": f"../../..{machine.reports}/monday.txt", "branch": "main"}),
        ("read_source", {"path": str(machine.reports / "link.txt"), "branch": "main"}),
    ]
    async with placed(machine.environ(), remote) as caller:
        for tool, arguments in hostile:
            finished, answer = await called(caller, tool, **arguments)
            assert not finished.ok, f"{tool} {arguments}"
            assert "was not called" in (finished.reason or "")
            assert "Pass the content itself" in answer
            assert SECRET not in answer
        assert machine.sent() == []

        finished, answer = await called(caller, "read_source", path="src/main.py", branch="main")
        assert finished.ok
        finished, answer = await called(caller, "create_page", title="x", content="see /etc/passwd\nand ~/.netrc")
        assert finished.ok
        finished, answer = await called(caller, "upload", files="https://127.0.0.1/report.pdf")
        assert finished.ok
        assert [tool for tool, *_ in machine.sent()] == ["read_source", "create_page", "upload"]


@pytest.mark.parametrize("remote", [False, True], ids=["in-process", "remote"])
async def test_what_a_person_writes_into_an_approval_is_checked_too(machine: Machine, remote: bool) -> None:
    environ = machine.environ(approvals={"upload": "always"})
    async with placed(environ, remote) as caller:
        talk = Dialogue(caller, "one")
        await talk.ask(json.dumps(["upload", {"files": "https://127.0.0.1/report.pdf"}]))
        edited = {"name": "upload", "args": {"files": str(machine.data / "secret.db")}}
        assert not await talk.answer({"decisions": [{"type": "edit", "edited_action": edited}]})
    check_task(talk.events)
    [finished] = [event for event in talk.events if isinstance(event, ToolFinished)]
    assert not finished.ok
    assert "a file of the supervisor" in (finished.reason or "")
    assert machine.sent() == []


async def test_the_manifest_allows_directories_but_never_those_of_the_supervisor(machine: Machine) -> None:
    allowed = {"upload": {"files": [str(machine.reports), str(machine.data), str(Path.cwd())]}}
    async with placed(machine.environ(local_files=allowed), remote=False) as caller:
        for name, ok in {
            str(machine.reports / "monday.txt"): True,
            f"file://{machine.reports}/monday.txt": True,
            "of-its-own.txt": True,
            str(machine.home / ".netrc"): False,
            str(machine.reports / "../me/.netrc"): False,
            str(machine.reports / "link.txt"): False,
            str(machine.data / "secret.db"): False,
            f"{machine.reports}/monday.txt,{machine.data}/secret.db": False,
            str(Path.cwd() / "pyproject.toml"): False,
            f"/proc/{os.getpid()}/cwd/pyproject.toml": False,
            f"/proc/{os.getpid()}/environ": False,
        }.items():
            finished, _ = await called(caller, "upload", files=name)
            assert finished.ok is ok, name


@pytest.mark.parametrize("remote", [False, True], ids=["in-process", "remote"])
async def test_a_server_has_an_empty_directory_and_home_of_its_own(machine: Machine, remote: bool) -> None:
    async with placed(machine.environ(home=[".aws", ".kube"]), remote) as caller:
        _, answer = await called(caller, "where")
        found = json.loads(answer[answer.index("{") :])
        directory = Path(found["cwd"])
        assert Path(found["home"]).parent == directory.parent
        assert found["files"] == {"cwd": [], "home": [".aws"]}, "of what the manifest names, what there is"
        assert found["modes"] == {"cwd": "0o700", "home": "0o700"}
        for protected in (machine.data, machine.home, Path.cwd()):
            assert not directory.is_relative_to(protected)
    assert not directory.parent.exists()
    assert (machine.home / ".aws").is_dir()
