"""What a manifest entry becomes once the environment is filled in."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp.errors import NotStartable
from ai_platform_engineering.mcp.expansion import endpoint
from ai_platform_engineering.mcp.workspace import ServerWorkspace


def stdio(**entry: Any) -> McpServer:
    return McpServer(name="argocd", transport="stdio", **{"command": "npx", **entry})


def http(**entry: Any) -> McpServer:
    return McpServer(name="github", transport="http", **entry)


def test_values_come_from_the_environment_or_the_default() -> None:
    server = stdio(
        command="${TOOLS:-/usr/bin}/npx",
        args=("--url=${ARGOCD_API_URL}/api", "${MODE:-stdio}", "plain"),
        env={"TOKEN": "${ARGOCD_API_TOKEN}", "FIXED": "1"},
    )
    place = endpoint(server, {"ARGOCD_API_URL": "https://argocd", "ARGOCD_API_TOKEN": "t0ken"})
    assert place.env is not None
    assert place.command == "/usr/bin/npx"
    assert place.args == ("--url=https://argocd/api", "stdio", "plain")
    assert (place.env["TOKEN"], place.env["FIXED"]) == ("t0ken", "1")


def test_an_address_and_headers_are_filled_in() -> None:
    server = http(url="https://${HOST}/mcp", headers={"Authorization": "Bearer ${PAT}", "X-Team": "${TEAM:-}"})
    place = endpoint(server, {"HOST": "example.org", "PAT": "ghp_1234\n"})
    assert place.url == "https://example.org/mcp"
    assert place.headers == {"Authorization": "Bearer ghp_1234"}


def test_an_empty_variable_takes_the_default() -> None:
    assert endpoint(stdio(args=("${MODE:-stdio}",)), {"MODE": ""}).args == ("stdio",)


def test_an_entry_without_a_value_is_left_out_of_the_environment() -> None:
    assert "OPTIONAL" not in (endpoint(stdio(env={"OPTIONAL": "${OPTIONAL:-}"}), {}).env or {})


def test_every_missing_variable_is_named_once() -> None:
    server = stdio(args=("${C}", "${B:-x}"), env={"ONE": "${A}", "TWO": "${C}", "THREE": "${EMPTY}"})
    with pytest.raises(NotStartable, match=r"because A, C and EMPTY are not set$"):
        endpoint(server, {"EMPTY": ""})
    with pytest.raises(NotStartable, match=r"because A is not set$"):
        endpoint(stdio(env={"ONE": "${A}"}), {})


def test_a_process_inherits_what_it_needs_and_nothing_else(tmp_path: Path) -> None:
    home = tmp_path / "me"
    environ = {"PATH": "/bin", "HOME": str(home), "HTTPS_PROXY": "http://proxy", "OPENAI_API_KEY": "sk"}
    environ |= {"DATA_DIR": "/d", "UV_DEFAULT_INDEX": "http://127.0.0.1/simple", "XDG_DATA_HOME": "/somewhere"}
    caches = {
        "UV_CACHE_DIR": f"{home}/.cache/uv",
        "UV_PYTHON_INSTALL_DIR": "/somewhere/uv/python",
        "UV_TOOL_DIR": "/somewhere/uv/tools",
        "npm_config_cache": f"{home}/.npm",
    }
    own_programs = Path(sys.executable).parent
    needed = {"PATH": f"/bin{os.pathsep}{own_programs}", "HTTPS_PROXY": "http://proxy"}
    assert endpoint(stdio(command="node"), environ).env == needed
    assert endpoint(stdio(), environ).env == {**needed, **caches, "UV_DEFAULT_INDEX": "http://127.0.0.1/simple"}


def test_what_the_launchers_are_configured_with_is_found(tmp_path: Path) -> None:
    """A variable would override what a configuration file says about the cache."""
    (tmp_path / ".npmrc").write_text("fund=false\ncache = /big/disk\n")
    (tmp_path / ".config/uv").mkdir(parents=True)
    (tmp_path / ".config/uv/uv.toml").write_text('cache-dir = "/big/disk"\n')
    env = endpoint(stdio(), {"HOME": str(tmp_path), "UV_TOOL_DIR": "tools"}).env or {}
    assert env["npm_config_userconfig"] == f"{tmp_path}/.npmrc"
    assert env["UV_CONFIG_FILE"] == f"{tmp_path}/.config/uv/uv.toml"
    assert not {"npm_config_cache", "UV_CACHE_DIR"} & env.keys()
    assert env["UV_TOOL_DIR"] == str(Path("tools").absolute())


def test_a_server_has_a_home_of_its_own_unless_the_manifest_says_otherwise(tmp_path: Path) -> None:
    place = ServerWorkspace(tmp_path)
    own = endpoint(stdio(), {"HOME": "/root", "TMPDIR": "/big/disk"}, place)
    assert (own.directory, (own.env or {})["HOME"]) == (tmp_path / "work", f"{tmp_path}/home")
    assert (own.env or {})["TMPDIR"] == str(place.temporary)
    assert (endpoint(stdio(env={"HOME": "/srv"}), {"HOME": "/root"}, place).env or {})["HOME"] == "/srv"


def test_relative_paths_are_of_the_supervisors_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.py").write_text("")
    (tmp_path / "stdio").mkdir()
    server = stdio(
        command="bin/serve",
        args=("server.py", "./x", "../y", "~/z", "stdio", "a/b"),
        env={"A": "./x", "B": "server.py"},
    )
    place = endpoint(server, {"HOME": "/me"})
    assert place.command == f"{tmp_path}/bin/serve"
    assert place.args == (f"{tmp_path}/server.py", f"{tmp_path}/x", f"{tmp_path}/../y", "/me/z", "stdio", "a/b")
    assert ((place.env or {})["A"], (place.env or {})["B"]) == (f"{tmp_path}/x", "server.py")
    assert endpoint(stdio(command="serve"), {}).command == "serve"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("refused t0ken-very-secret", "refused ***"),
        ("refused abc123 and k3y", "refused *** and k3y"),
        ("GET https://argocd.example.org/api", "GET https://argocd.example.org/api"),
        ("header Bearer abc-def-ghi", "header Bearer ***"),
        ("only abc-def-ghi", "only ***"),
        ("p%40ssword is p@ssword", "*** is ***"),
        ("proxy said pr0xy-pass", "proxy said ***"),
        ("flag on, level debug", "flag on, level debug"),
    ],
)
def test_what_was_filled_in_is_kept_out_of_texts(text: str, expected: str) -> None:
    environ = {
        "T": "t0ken-very-secret",
        "U": "https://argocd.example.org",
        "V": "abc-def-ghi",
        "HTTPS_PROXY": "http://me:pr0xy-pass@proxy",
        "DB": "postgres://me:p%40ssword@host/db",
    }
    process = stdio(
        env={"OPAQUE": "${T}", "API_TOKEN": "abc123", "URL": "${U}", "ID": "k3y", "LEVEL": "debug", "DATABASE": "${DB}"}
    )
    web = http(url="https://x/mcp", headers={"Authorization": "Bearer ${V}"})
    redacted = endpoint(process, environ).redact(text)
    assert endpoint(web, environ).redact(redacted) == expected


def test_an_endpoint_does_not_show_its_values() -> None:
    place = endpoint(stdio(env={"TOKEN": "${T}"}), {"T": "t0ken-very-secret"})
    assert "t0ken" not in repr(place)
