"""What the process of a stdio server can read: its own settings and files, and none of the supervisor's."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp import confinement
from ai_platform_engineering.mcp.confined import CLOSED, READ, WRITE, grants, landlock_version
from ai_platform_engineering.mcp.confinement import isolation_gap
from ai_platform_engineering.settings import load_settings
from tests.mcp.support import Start, tool

REFUSED = "refused: Permission denied"
SPY_SERVER = Path(__file__).parent / "spy_server.py"

needs_landlock = pytest.mark.skipif(landlock_version() < 2, reason="this kernel has no Landlock")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory, a data directory and a working directory, all with secrets."""
    files = {
        "data/tasks.db": "tasks",
        "data/delegation.key": "key",
        "home/.ssh/id": "ssh",
        "home/.config/platform-engineer/settings": "config",
        "home/.aws/credentials": "aws",
        "work/.env": "settings",
        "work/prod.env": "settings",
        "work/notes.txt": "notes",
        "server/helper.txt": "helper",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"the {content} of the supervisor")
    shutil.copy(SPY_SERVER, tmp_path / "server/spy.py")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


async def spied(start: Start, machine: Path, *paths: str, writes: tuple[str, ...] = (), **entry: Any) -> dict[str, Any]:
    """What the server found at these paths of the machine."""
    args = (str(machine / "server/spy.py"), *(f"read:{path}" for path in paths), *(f"write:{path}" for path in writes))
    variables = {"DATA_DIR": str(machine / "data"), "OPENAI_API_KEY": "sk-not-for-you"}
    variables |= entry.pop("variables", {})
    spy = McpServer(name="spy", transport="stdio", command=sys.executable, args=args, **entry)
    servers = await start(spy, **variables)
    found: dict[str, Any] = json.loads(await tool(servers, "spy").ainvoke({}))
    return found


@needs_landlock
async def test_a_server_reads_nothing_of_the_supervisor(mcp_servers: Start, machine: Path) -> None:
    secrets = [
        *("/proc/{parent}/environ", "/proc/{parent}/mem", "/proc/{parent}/cwd/.env"),
        *(f"{machine}/data/{name}" for name in ("tasks.db", "delegation.key")),
        *(f"{machine}/home/{name}" for name in (".ssh/id", ".config/platform-engineer/settings", ".aws/credentials")),
        *(f"{machine}/work/{name}" for name in (".env", "prod.env")),
    ]
    found = await spied(mcp_servers, machine, *secrets, f"{machine}/server/helper.txt", "/etc")
    assert {path: text for path, text in found["read"].items() if path in secrets} == dict.fromkeys(secrets, REFUSED)
    assert found["read"][f"{machine}/server/helper.txt"] == "the helper of the supervisor", "next to its script"
    assert "passwd" in found["read"]["/etc"].split()
    names = {"HOME", "LANG", "LC_CTYPE", "PATH", "TERM", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL"}
    proxies = {name for name in found["environ"] if name.lower().endswith("_proxy")}
    assert found["environ"].keys() - proxies - set(confinement._CERTIFICATES) <= names


@needs_landlock
async def test_a_manifest_shares_what_it_names(mcp_servers: Start, machine: Path) -> None:
    reports = machine / "reports"
    reports.mkdir()
    aws, shared = f"{machine}/home/.aws/credentials", f"{reports}/today.txt"
    found = await spied(
        mcp_servers,
        machine,
        aws,
        f"{machine}/home/.ssh/id",
        f"{machine}/data/tasks.db",
        writes=(shared, f"{machine}/server/spy.py", f"{machine}/elsewhere.txt"),
        home=(".aws",),
        env={"REPORT": shared, "DATABASE": f"{machine}/data/tasks.db"},
    )
    assert found["read"] == {
        aws: "the aws of the supervisor",
        f"{machine}/home/.ssh/id": REFUSED,
        f"{machine}/data/tasks.db": REFUSED,
    }
    assert found["write"] == {
        shared: "written",
        f"{machine}/server/spy.py": REFUSED,
        f"{machine}/elsewhere.txt": REFUSED,
    }


@needs_landlock
async def test_a_server_reads_nothing_of_another_server(mcp_servers: Start, machine: Path) -> None:
    servers = await mcp_servers(
        McpServer(name="other", transport="stdio", command=sys.executable, args=(str(machine / "server/spy.py"),))
    )
    other = json.loads(await tool(servers, "spy").ainvoke({}))["environ"]
    workspace = Path(other["HOME"]).parent
    found = await spied(mcp_servers, machine, str(workspace), f"{workspace}/home")
    assert set(found["read"].values()) == {REFUSED}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_without_landlock_root_starts_servers_as_another_user(
    mcp_servers: Start, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confinement, "landlock_version", lambda: 0)
    monkeypatch.setattr(sys, "executable", shutil.which("python3", path="/usr/bin") or sys.executable)
    for directory in (machine, *machine.parents):
        if directory.stat().st_uid == 0 and directory != Path("/"):
            directory.chmod(directory.stat().st_mode | 0o011)
    (machine / "data").chmod(0o700)
    secrets = ["/proc/{parent}/environ", "/proc/{parent}/mem", f"{machine}/data/tasks.db"]
    found = await spied(mcp_servers, machine, *secrets, variables={"MCP_CHILD_USER": "nobody"})
    assert found["user"] != 0
    assert found["read"] == dict.fromkeys(secrets, REFUSED)


def test_a_server_that_cannot_be_confined_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isolation_gap(load_settings({"MCP_CONFINE": "false"}, env_file=None)) == (
        "stdio servers run as the same user and can read its files, because MCP_CONFINE is off."
    )
    monkeypatch.setattr(confinement, "landlock_version", lambda: 0)
    gap = isolation_gap(load_settings({}, env_file=None))
    assert gap is not None
    assert gap.startswith("stdio servers run as the same user and can read its files: that needs Landlock")


def test_a_directory_with_a_closed_path_is_opened_entry_by_entry(tmp_path: Path) -> None:
    for name in ("open/file", "closed/secret", "closed/shared/file", "named"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path / "closed")
    levels = {"closed": CLOSED, "closed/shared": WRITE, "named": CLOSED}
    found = dict(grants({"/": CLOSED, str(tmp_path): READ, **{f"{tmp_path}/{name}": levels[name] for name in levels}}))
    assert found.keys() == {f"{tmp_path}/open", f"{tmp_path}/closed/shared"}
    assert found[f"{tmp_path}/closed/shared"] > found[f"{tmp_path}/open"]
