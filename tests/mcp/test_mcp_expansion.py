"""What a manifest entry becomes once the environment is filled in."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ai_platform_engineering.agents.manifest import McpServer
from ai_platform_engineering.utils.mcp.errors import NotStartable
from ai_platform_engineering.utils.mcp.expansion import endpoint


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
    assert place.command == "/usr/bin/npx"
    assert place.args == ("--url=https://argocd/api", "stdio", "plain")
    assert place.env == {"TOKEN": "t0ken", "FIXED": "1"}


def test_an_address_and_headers_are_filled_in() -> None:
    server = http(url="https://${HOST}/mcp", headers={"Authorization": "Bearer ${PAT}", "X-Team": "${TEAM:-}"})
    place = endpoint(server, {"HOST": "example.org", "PAT": "ghp_1234\n"})
    assert place.url == "https://example.org/mcp"
    assert place.headers == {"Authorization": "Bearer ghp_1234"}


def test_an_empty_variable_takes_the_default() -> None:
    assert endpoint(stdio(args=("${MODE:-stdio}",)), {"MODE": ""}).args == ("stdio",)


def test_an_entry_without_a_value_is_left_out_of_the_environment() -> None:
    assert endpoint(stdio(env={"OPTIONAL": "${OPTIONAL:-}"}), {}).env == {}


def test_every_missing_variable_is_named_once() -> None:
    server = stdio(args=("${C}", "${B:-x}"), env={"ONE": "${A}", "TWO": "${C}", "THREE": "${EMPTY}"})
    with pytest.raises(NotStartable, match=r"because A, C and EMPTY are not set$"):
        endpoint(server, {"EMPTY": ""})
    with pytest.raises(NotStartable, match=r"because A is not set$"):
        endpoint(stdio(env={"ONE": "${A}"}), {})


def test_a_process_inherits_what_it_needs_and_nothing_else() -> None:
    environ = {"PATH": "/bin", "HOME": "/root", "HTTPS_PROXY": "http://proxy", "OPENAI_API_KEY": "sk", "DATA_DIR": "/d"}
    own_programs = Path(sys.executable).parent
    assert endpoint(stdio(), environ).env == {
        "PATH": f"/bin{os.pathsep}{own_programs}",
        "HOME": "/root",
        "HTTPS_PROXY": "http://proxy",
    }


def test_the_manifest_overrides_what_is_inherited() -> None:
    assert endpoint(stdio(env={"HOME": "/srv"}), {"HOME": "/root"}).env == {"HOME": "/srv"}


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
