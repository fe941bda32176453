"""Locked packages: installed with the hashes of their lock, and started without a registry."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from ai_platform_engineering.manifest import McpServer, builtin_directory, load_manifests
from ai_platform_engineering.mcp.packages import InstallError, directory_of, install, is_installed
from ai_platform_engineering.settings import Settings, load_settings
from tests.mcp.support import Start, names
from tests.services.environment import not_here

MANIFESTS = load_manifests([builtin_directory()])
LOCKS = sorted({Path(server.package) for entry in MANIFESTS.values() for server in entry.servers if server.package})
PACKAGE = "iniconfig"


@pytest.fixture
def own_settings(tmp_path: Path) -> Settings:
    return load_settings({**os.environ, "DATA_DIR": str(tmp_path / "data")}, env_file=None)


def lock_of(tmp_path: Path, text: str) -> Path:
    (tmp_path / "package").mkdir(exist_ok=True)
    (tmp_path / "package/requirements.txt").write_text(text)
    return tmp_path / "package"


def entry_of(package: str) -> str:
    """The entry of a package in the lock of this project, with its hashes."""
    text = (Path(__file__).parents[2] / "requirements.lock").read_text(encoding="utf-8")
    found = re.search(rf"^{package}==.*?(?=^[a-z0-9])", text, re.MULTILINE | re.DOTALL)
    assert found
    return found[0]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_has_the_hash_of_every_package_and_no_address(lock: Path) -> None:
    if (lock / "package.json").is_file():
        wanted = json.loads((lock / "package.json").read_text(encoding="utf-8"))["dependencies"]
        found = json.loads((lock / "package-lock.json").read_text(encoding="utf-8"))["packages"]
        assert found.pop("")["dependencies"] == wanted
        assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
        assert all(entry["integrity"].startswith("sha512-") and "resolved" not in entry for entry in found.values())
        return
    text = (lock / "requirements.txt").read_text(encoding="utf-8")
    assert "://" not in text
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in entry for entry in entries)
    pinned = re.findall(r"^(\S+==\S+)$", (lock / "requirements.in").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned
    assert all(f"\n{pin.replace('awslabs.', 'awslabs-')}" in text for pin in pinned)


def test_no_built_in_agent_downloads_at_run_time() -> None:
    servers = [server for entry in MANIFESTS.values() for server in entry.servers if server.transport == "stdio"]
    assert len(servers) == 11
    assert all(server.package for server in servers)


async def test_a_server_that_is_not_installed_names_the_command(mcp_servers: Start, tmp_path: Path) -> None:
    lock = lock_of(tmp_path, entry_of(PACKAGE))
    entry = McpServer(name="locked", transport="stdio", command="python", package=str(lock))
    servers = await mcp_servers(entry, DATA_DIR=str(tmp_path / "data"), MCP_RESTART_BACKOFF="30")
    problem = "The locked server is not installed; `platform-engineer agents install demo` installs it."
    assert servers.problem("demo") == problem


async def test_an_installed_server_runs_from_its_directory(
    mcp_servers: Start, own_settings: Settings, tmp_path: Path, unused_port: int
) -> None:
    lock = lock_of(tmp_path, entry_of(PACKAGE))
    try:
        assert install(lock, own_settings)
    except InstallError as error:
        not_here(str(error))
    assert not install(lock, own_settings), "it is installed already"
    script = str(Path(__file__).parent / "scripted_server.py")
    entry = McpServer(name="locked", transport="stdio", command="python", package=str(lock), args=(script,))
    proxy = f"http://127.0.0.1:{unused_port}"
    servers = await mcp_servers(entry, DATA_DIR=str(own_settings.data_dir), HTTPS_PROXY=proxy, HTTP_PROXY=proxy)
    assert servers.problem("demo") is None
    assert names(servers) == ["echo"]
    assert [*directory_of(lock, own_settings).glob(f"lib/python*/site-packages/{PACKAGE}")]

    lock_of(tmp_path, entry_of(PACKAGE) + entry_of("packaging"))
    assert not is_installed(lock, own_settings), "a changed lock is another installation"


def test_a_package_with_another_hash_is_refused(own_settings: Settings, tmp_path: Path) -> None:
    wrong = re.sub(r"sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}", entry_of(PACKAGE))
    with pytest.raises(InstallError, match="package was not installed"):
        install(lock_of(tmp_path, wrong), own_settings)
    assert not is_installed(lock_of(tmp_path, wrong), own_settings)


def test_a_machine_without_node_says_so(
    own_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = next(lock for lock in LOCKS if (lock / "package.json").is_file())
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    bare = load_settings({"PATH": str(tmp_path), "DATA_DIR": str(own_settings.data_dir)}, env_file=None)
    with pytest.raises(InstallError, match=r"needs Node.js 20 or newer with npm"):
        install(lock, bare)
