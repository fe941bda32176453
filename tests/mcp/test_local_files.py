"""Which arguments of a call name files of this machine, and which only look like it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp.types import Tool

from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp.argument_schemas import argument_schema
from ai_platform_engineering.mcp.file_arguments import names_file, properties_of
from ai_platform_engineering.mcp.local_files import protected_paths, refusal
from ai_platform_engineering.mcp.tools import allowed
from tests.mcp.conftest import not_here
from tests.services.shipped_servers import MANIFESTS, shipped_servers

pytestmark = pytest.mark.process


def schema(**properties: str | Mapping[str, Any]) -> dict[str, Any]:
    described = {
        name: {"type": "string", "description": about} if isinstance(about, str) else dict(about)
        for name, about in properties.items()
    }
    return {"type": "object", "properties": described}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with the supervisor's data and directory, files of others, and a server's working directory."""
    for name in ("data", "supervisor", "others", "work"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file.txt").write_text("x")
    (tmp_path / "others/with space.txt").write_text("x")
    (tmp_path / "work/link").symlink_to(tmp_path / "others/file.txt")
    (tmp_path / "others/link").symlink_to(tmp_path / "data")
    monkeypatch.chdir(tmp_path / "supervisor")
    monkeypatch.setenv("HOME", str(tmp_path / "others"))
    return tmp_path


def refused(place: Path, arguments: Mapping[str, Any], described: dict[str, Any] | None = None, **rules: Any) -> str:
    """The reason, or nothing."""
    tool = Tool(name="tool", inputSchema=described or {"type": "object"})
    protected = protected_paths(place / "data")
    return refusal(tool, arguments, rules, protected, place / "work") or ""


@pytest.mark.parametrize(
    "value",
    [
        "{place}/others/file.txt",
        " '{place}/others/file.txt' ",
        "{place}/others/with space.txt",
        "@{place}/others/file.txt",
        "--from-file=key={place}/others/file.txt",
        "a.txt, {place}/others/file.txt",
        "file://{place}/others/file.txt",
        "FILE:{place}/others/not-there",
        "file:%2e%2e/others/file.txt",
        "https://../../../others/file.txt",
        "/./{slashes}{place}/others/file.txt",
        "file://localhost{place}/others/with%20space.txt",
        "~/file.txt",
        "~/not-there",
        "../others/file.txt",
        "x/../../others/not-there",
        "link",
        "/proc/self/environ",
        "{place}/data/file.txt",
        "{place}/data/not-there",
        "{place}/data",
        "{place}/others/link/file.txt",
        "{place}/others/../supervisor/.env",
        "../supervisor",
        "/proc/{pid}/cwd/.env",
        ["harmless", ["{place}/others/file.txt"]],
        {"deep": [{"er": "{place}/others/file.txt"}]},
        {"{place}/others/file.txt": 1},
        '["{place}/others/file.txt"]',
        '{{"attachments": "[\\"{place}/others/file.txt\\"]"}}',
    ],
)
def test_a_value_that_is_a_file_here_is_refused_in_any_argument(place: Path, value: Any) -> None:
    text = (
        json.dumps(value)
        .replace("{place}", str(place))
        .replace("{pid}", str(os.getpid()))
        .replace("{slashes}", "/" * 5000)
    )
    filled = json.loads(text.replace("{{", "{").replace("}}", "}") if isinstance(value, str) else text)
    assert "which" in refused(place, {"anything": filled})


@pytest.mark.parametrize(
    "value",
    [
        "src/main.py",
        "/src/main.py",
        "./deploy/values.yaml",
        "/",
        "/home",
        "/api/v1/namespaces/shop/pods",
        "/bin/sh",
        ["/usr/bin/env", "-c"],
        "see /etc/passwd for users",
        "first line\n/etc/passwd\n",
        "cat /etc/hosts",
        "https://127.0.0.1/etc/../passwd",
        "main..feature",
        "path:.github/workflows file:main.go",
        "~5 minutes",
        "~no-such-user/x",
        "summary ~ checkout",
        '{"not json',
        "not-there.txt",
        "x" * 10_000,
        "a\0b",
        7,
        None,
    ],
)
def test_what_only_looks_like_a_file_is_sent(place: Path, value: Any) -> None:
    assert refused(place, {"anything": value}) == ""


@pytest.mark.parametrize(
    ("described", "arguments"),
    [
        (schema(content_file="Filesystem path to read the page body from"), {"content_file": ".env"}),
        (schema(files="URL to attach"), {"files": "tasks.db"}),
        (schema(files={"type": "array", "items": {"type": "string"}}), {"files": ["https://x/y", "tasks.db"]}),
        (schema(files="URL to attach"), {"files": "https://x/y,/etc/not-there"}),
        (schema(attachments="JSON array or comma-separated list of file paths to attach"), {"attachments": '["a"]'}),
        (schema(localPath="Where to save it"), {"localPath": "x"}),
        (schema(source="Local path of the image"), {"source": "x"}),
        (schema(output_dir="Absolute path to the directory to save in"), {"output_dir": "/srv/x"}),
        (
            {
                **schema(page={"anyOf": [{"$ref": "#/$defs/Page"}, {"type": "null"}]}),
                "$defs": {"Page": schema(body_file="")},
            },
            {"page": {"body_file": "x"}},
        ),
    ],
)
def test_an_argument_that_is_described_as_a_file_takes_none(
    place: Path, described: dict[str, Any], arguments: dict[str, Any]
) -> None:
    assert "a file of this machine, which it may not use" in refused(place, arguments, described)


@pytest.mark.parametrize(
    ("described", "arguments"),
    [
        (schema(files="URL to attach"), {"files": "https://x/y"}),
        (schema(files="URL to attach"), {"files": ""}),
        (schema(file_path="Path of the file, relative to the repository"), {"file_path": "src/a.py"}),
        (schema(file_path="Path where to create the file", branch="", project_id=""), {"file_path": "src/a.py"}),
        (schema(path="Path", owner="", repo=""), {"path": "a"}),
        (
            schema(files={"type": "array", "items": schema(path="", content="")}),
            {"files": [{"path": "a", "content": "b"}]},
        ),
        (schema(content_base64="File content to upload, without reading from disk"), {"content_base64": "eA=="}),
        (schema(filename="Name of the file to upload"), {"filename": "report.pdf"}),
    ],
)
def test_an_argument_about_files_elsewhere_is_sent(
    place: Path, described: dict[str, Any], arguments: dict[str, Any]
) -> None:
    assert refused(place, arguments, described) == ""


def test_the_manifest_says_what_a_schema_does_not(place: Path) -> None:
    other = str(place / "others/file.txt")
    assert refused(place, {"query": other}, query="elsewhere") == ""
    assert "of the supervisor" in refused(place, {"query": str(place / "data/file.txt")}, query="elsewhere")
    assert refused(place, {"blob": "x.txt"}, blob=())
    assert refused(place, {"blob": other}, blob=(str(place / "others"),)) == ""
    assert refused(place, {"blob": other}, blob=("~/",)) == ""
    for listed in (
        f"{other}\n/etc/passwd",
        f"{other} /etc/passwd",
        f"{other}|/etc/passwd",
        f'["{other}","/etc/passwd"]',
    ):
        assert "the manifest allows" in refused(place, {"blob": listed}, blob=(str(place / "others"),)), listed
    with_space, address = str(place / "others/with space.txt"), "https://127.0.0.1/a b"
    assert refused(place, {"blob": [with_space, address]}, blob=(str(place / "others"),)) == ""
    assert "of the supervisor" in refused(place, {"blob": str(place / "data/file.txt")}, blob=("/",))


@pytest.mark.parametrize(("directory", "protected"), [("/", Path("/.env")), ("/usr", Path("/usr"))])
def test_a_supervisor_in_the_root_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, directory: str, protected: Path
) -> None:
    monkeypatch.chdir(directory)
    assert protected in protected_paths(tmp_path)


FILE_ARGUMENTS = {
    ("confluence", "confluence_create_page"): {"content_file"},
    ("confluence", "confluence_update_page"): {"content_file"},
    ("jira", "jira_update_issue"): {"attachments"},
}


@pytest.mark.slow
def test_the_file_arguments_of_the_servers_that_come_with_the_product(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The schemas of the real servers name these and no others, and the manifests agree."""
    listed = shipped_servers(tmp_path_factory).tools
    for agent in ("confluence", "jira", "gitlab", "argocd", "splunk"):
        [entry] = MANIFESTS[agent].servers
        tools = listed[f"{agent}.{entry.name}"]
        if isinstance(tools, str):
            not_here(f"the server of {agent} cannot be started here: {tools}")
        found = {
            (agent, tool.name): _file_arguments(tool.name, argument_schema(tool.inputSchema))
            for tool in allowed(entry, tools)
        }
        expected = {key: names for key, names in FILE_ARGUMENTS.items() if key[0] == agent}
        assert found
        assert {key: names for key, names in found.items() if names} == expected
        assert _declared(entry) == {tool: names for (_, tool), names in expected.items()}


def _file_arguments(tool: str, described: Any) -> set[str]:
    properties = properties_of(described, described)
    return {name for name, about in properties.items() if names_file(name, about, properties, tool)}


def _declared(entry: McpServer) -> dict[str, set[str]]:
    """The arguments that the manifest declares as files which may not be named."""
    refused = {tool: {name for name, rule in rules.items() if rule == ()} for tool, rules in entry.local_files.items()}
    return {tool: names for tool, names in refused.items() if names}
