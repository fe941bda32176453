from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from ai_platform_engineering.manifest import (
    VARIABLE,
    AgentManifest,
    ManifestError,
    McpServer,
    builtin_directory,
    load_manifests,
)
from ai_platform_engineering.settings import load_settings

MINIMAL = "name: {name}\ndescription: Looks after things.\nprompt: Use the tools.\n"


def write(directory: Path, path: str, text: str) -> Path:
    file = directory / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def problem_of(directory: Path) -> str:
    with pytest.raises(ManifestError) as raised:
        load_manifests([directory])
    return str(raised.value)


def test_both_places_are_read(tmp_path: Path) -> None:
    write(tmp_path, "stars/agent.yaml", MINIMAL.format(name="stars"))
    write(tmp_path, "moons.yaml", MINIMAL.format(name="moons"))
    write(tmp_path, "notes/readme.yaml", "not: a manifest")
    assert list(load_manifests([tmp_path])) == ["moons", "stars"]


def test_a_later_directory_replaces_an_agent_whole(tmp_path: Path) -> None:
    write(tmp_path / "first", "stars.yaml", MINIMAL.format(name="stars") + "keywords: [sun]\n")
    write(tmp_path / "second", "stars.yaml", MINIMAL.format(name="stars") + "title: My stars\n")
    manifest = load_manifests([tmp_path / "first", tmp_path / "second"])["stars"]
    assert (manifest.title, manifest.keywords) == ("My stars", ())


def test_every_field(tmp_path: Path) -> None:
    write(
        tmp_path,
        "weather_watch.yaml",
        """
name: weather_watch
description: >
  Weather
  and tides.
keywords: [Weather, TIDE]
prompt: |
  You watch the weather.
requires: [TIDE_TOKEN]
model: {provider: openai, name: gpt-5}
servers:
  - {name: tides, transport: stdio, command: uvx, args: ["tides@1", 7],
     env: {TOKEN: "${TIDE_TOKEN}", LEVEL: "${TIDE_LEVEL:-low}", PORT: 80},
     tools: [look, raise_flag, sink], writes: [raise_flag], destructive: [sink], start_timeout: 2.5}
  - {name: clouds, transport: http, url: "https://${CLOUD_HOST}/mcp", headers: {Authorization: "Bearer ${CLOUD_KEY}"}}
  - {name: local, transport: memory, module: "some.module:server"}
sandbox: some.sandbox:server
examples: ["how high is the tide?"]
""",
    )
    manifest = load_manifests([tmp_path])["weather_watch"]
    assert manifest.title == "Weather Watch"
    assert manifest.description == "Weather and tides."
    assert manifest.keywords == ("weather", "tide")
    assert manifest.model is not None
    assert (manifest.model.provider, manifest.model.name) == ("openai", "gpt-5")
    tides, clouds, local = manifest.servers
    assert tides.args == ("tides@1", "7")
    assert tides.env["PORT"] == "80"
    assert (tides.writes, tides.destructive, tides.start_timeout) == (("raise_flag",), ("sink",), 2.5)
    assert clouds.tools is None
    assert local.module == "some.module:server"
    assert manifest.variables() == {"TIDE_TOKEN", "TIDE_LEVEL", "CLOUD_HOST", "CLOUD_KEY"}


def test_configured_means_present_and_not_blank() -> None:
    manifest = AgentManifest(name="stars", description="d", prompt="p", requires=("STAR_URL", "STAR_TOKEN"))
    assert manifest.configured({"STAR_URL": "x", "STAR_TOKEN": "y"})
    assert not manifest.configured({"STAR_URL": "x", "STAR_TOKEN": " "})
    assert manifest.missing({"STAR_URL": "x"}) == ("STAR_TOKEN",)
    assert AgentManifest(name="moons", description="d", prompt="p").configured({})


@pytest.mark.parametrize(
    ("line", "key", "said"),
    [
        ("colour: red", "colour", "allowed are name, title, description"),
        ("name: Stars", "name", "'Stars' is not allowed; use a lower-case letter"),
        ("name: all", "name", "'all' is reserved"),
        ("name: supervisor", "name", "'supervisor' is reserved"),
        ("description: ''", "description", "must not be empty"),
        ("prompt: ~", "prompt", "must be text"),
        ("requires: [star-url]", "requires.0", "for example ARGOCD_API_URL"),
        ("sandbox: some.module", "sandbox", "use package.module:attribute"),
        ("skills: [Incident-Triage]", "skills.0", "use lower-case letters, digits and single hyphens"),
        (f"skills: [{', '.join(f's{number}' for number in range(21))}]", "skills", "at most 20 items"),
        ("model: {name: gpt-5, temperature: 1}", "model.temperature", "allowed are provider, name"),
        ("servers: [{name: a, transport: sse}]", "servers.0.transport", "use 'stdio', 'http' or 'memory'"),
        ("servers: [{name: a, transport: stdio}]", "servers.0", "transport stdio needs the key 'command'"),
        (
            "servers: [{name: a, transport: http, url: u, command: c}]",
            "servers.0",
            "takes headers, on_behalf_of, url, not command",
        ),
        (
            "servers: [{name: a, transport: http, url: u, on_behalf_of: {}}]",
            "servers.0.on_behalf_of",
            "needs one of the keys 'signed_header' and 'token_exchange'",
        ),
        (
            "servers: [{name: a, transport: http, url: u, on_behalf_of: {token_exchange: {}}, check: {tool: t}}]",
            "servers.0",
            "cannot be used together with 'token_exchange'",
        ),
        (
            "servers: [{name: a, transport: http, url: u, header: {}}]",
            "servers.0.header",
            "allowed are name, transport",
        ),
        ("servers: [{name: a, transport: memory, module: 'm:s', tools: [x], writes: [y]}]", "servers.0", "names y"),
        ("servers: [{name: a, transport: http, url: u, local_files: {}}]", "servers.0", "not local_files"),
        (
            "servers: [{name: a, transport: stdio, command: c, local_files: {x: {y: reports}}}]",
            "servers.0.local_files.x.y",
            "must be a list of absolute directories, or 'elsewhere'",
        ),
        (
            "servers: [{name: a, transport: stdio, command: c, local_files: {x: {y: [./reports]}}}]",
            "servers.0.local_files.x.y",
            "must be a list of absolute directories, or 'elsewhere'",
        ),
        (
            "servers: [{name: a, transport: stdio, command: c, home: [../x]}]",
            "servers.0.home.0",
            "must be a path below the home directory",
        ),
        (
            "servers: [{name: a, transport: http, url: u}, {name: a, transport: http, url: u}]",
            "the manifest",
            "named a",
        ),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(tmp_path: Path, line: str, key: str, said: str) -> None:
    fields = dict(part.split(": ", 1) for part in MINIMAL.format(name="stars").splitlines())
    name, value = line.split(": ", 1)
    fields[name] = value
    file = write(tmp_path, "stars.yaml", "".join(f"{name}: {value}\n" for name, value in fields.items()))
    problem = problem_of(tmp_path)
    assert problem.startswith(f"{file}: {key}: ")
    assert said in problem


def test_every_problem_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    write(tmp_path, "stars.yaml", "name: 7up\ncolour: red\n")
    problem = problem_of(tmp_path)
    assert [line.split(": ")[1] for line in problem.splitlines()] == ["name", "description", "prompt", "colour"]


def test_a_header_written_out_is_not_echoed(tmp_path: Path) -> None:
    text = "servers: [{name: a, transport: http, url: u, headers: {Authorization: [s3cret]}, extra: s3cret}]\n"
    write(tmp_path, "stars.yaml", MINIMAL.format(name="stars") + text)
    assert "s3cret" not in problem_of(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"name: [", "not valid YAML at line 1"),
        (b"- a\n- b\n", "must hold the keys of one agent"),
        (b"", "must hold the keys of one agent"),
        (b"\xff\xfe\xff", "not UTF-8"),
    ],
)
def test_a_file_that_is_no_manifest(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "stars.yaml"
    file.write_bytes(content)
    problem = problem_of(tmp_path)
    assert str(file) in problem
    assert said in problem


def test_one_directory_cannot_hold_a_name_twice(tmp_path: Path) -> None:
    write(tmp_path, "stars/agent.yaml", MINIMAL.format(name="stars"))
    write(tmp_path, "copy.yaml", MINIMAL.format(name="stars"))
    problem = problem_of(tmp_path)
    assert "copy.yaml" in problem
    assert "stars/agent.yaml" in problem


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    assert str(tmp_path / "gone") in problem_of(tmp_path / "gone")


def test_a_manifest_cannot_be_changed() -> None:
    server = McpServer(name="a", transport="stdio", command="true")
    with pytest.raises(ValueError, match="frozen"):
        server.command = "false"  # type: ignore[misc]  # the point of the test


def test_every_built_in_agent_loads_under_the_name_of_its_folder() -> None:
    agents = list(load_manifests([builtin_directory()]))
    assert "argocd" in agents
    assert agents == sorted(file.parent.name for file in builtin_directory().glob("*/agent.yaml"))


def test_every_module_a_manifest_names_makes_a_server(tmp_path: Path) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path)}, env_file=None)
    manifests = load_manifests([builtin_directory()]).values()
    modules = [server.module for manifest in manifests for server in manifest.servers if server.module]
    modules += [manifest.sandbox for manifest in manifests if manifest.sandbox]
    assert len(modules) == 5
    for module in modules:
        path, _, attribute = module.partition(":")
        assert getattr(import_module(path), attribute)(settings).list_tools(), module


@pytest.mark.parametrize("manifest", load_manifests([builtin_directory()]).values(), ids=lambda manifest: manifest.name)
def test_a_product_agent_is_off_until_its_settings_are_there_and_takes_only_named_tools(
    manifest: AgentManifest,
) -> None:
    assert manifest.configured({}) == (manifest.name == "netutils")
    assert manifest.keywords
    assert manifest.examples
    for server in manifest.servers:
        assert server.transport == "memory" or server.tools
        without_default = {
            match["name"]
            for text in (*server.args, *server.env.values(), *server.headers.values(), server.url or "")
            for match in VARIABLE.finditer(text)
            if match["default"] is None
        }
        assert without_default <= set(manifest.requires)
        assert server.command not in ("npx", "uvx")
