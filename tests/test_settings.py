from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from ai_platform_engineering.settings import (
    DYNAMIC_VARIABLES,
    PROVIDER_REQUIREMENTS,
    Group,
    Provider,
    Settings,
    SettingsError,
    configuration_page,
    load_settings,
    parse_flag,
    provider_problem,
)

ROOT = Path(__file__).parents[1]


def load(**environ: str) -> Settings:
    return load_settings(environ, env_file=None)


def problems(**environ: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load(**environ)
    return caught.value.problems


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_says_what_it_means_and_where_it_belongs(name: str) -> None:
    info = Settings.model_fields[name]
    assert info.description
    assert info.description.endswith(".")
    assert isinstance(info.json_schema_extra, dict)
    assert info.json_schema_extra["group"] in get_args(Group)


def test_secrets_are_typed_as_secrets() -> None:
    for name, info in Settings.model_fields.items():
        words = ("TOKEN", "KEY", "SECRET", "PASSWORD", "DATABASE_URL", "POSTGRES_DSN", "MONGODB_URI", "REDIS_URL")
        looks_secret = any(word in name.upper().removesuffix("_TOKENS") for word in words)
        is_flag = info.annotation is bool
        assert (looks_secret and not is_flag) == (SecretStr in get_args(info.annotation)), name


def test_an_empty_environment_gives_the_defaults() -> None:
    settings = load()
    assert (settings.a2a_host, settings.a2a_port, settings.public_url) == ("127.0.0.1", 8000, "http://127.0.0.1:8000")
    assert settings.distributed_agents == ""
    assert settings.distributed_mode is False
    assert settings.skip_agent_connectivity_check is None
    assert settings.llm_provider is None
    assert settings.langgraph_recursion_limit == 500
    assert settings.sandbox == "auto"
    assert settings.data_dir == Path.home() / ".local/share/platform-engineer"
    assert dict(settings.environ) == {}


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("A2A_PORT", "65536", "a whole number from 0 to 65535"),
        ("A2A_PORT", "http", "a whole number from 0 to 65535"),
        ("A2A_PUBLIC_URL", "ftp://example.org", "an http:// or https:// address"),
        ("OLLAMA_BASE_URL", "http://", "an http:// or https:// address"),
        ("OPENAI_ENDPOINT", "http://localhost:port", "an http:// or https:// address"),
        ("LOG_LEVEL", "loud", "one of debug, info, warning, error"),
        ("LOG_FORMAT", "xml", "one of text, json"),
        ("DISTRIBUTED_MODE", "perhaps", "true or false (also 1/0, yes/no, on/off)"),
        ("SKIP_AGENT_CONNECTIVITY_CHECK", "2", "true or false (also 1/0, yes/no, on/off)"),
        ("FORWARDED_ALLOW_IPS", "proxy", "IP addresses and networks, comma-separated, or *"),
        ("FORWARDED_ALLOW_IPS", "::1,10.0.0.1/8", "IP addresses and networks, comma-separated, or *"),
        ("AGENTS_DIR", "/nowhere/at/all", "the path of an existing directory"),
        ("AGENT_CONNECT_TIMEOUT", "5.1", "a number above 0 and at most 5"),
        ("AGENT_CONNECT_TIMEOUT", "0", "a number above 0 and at most 5"),
        ("LLM_TIMEOUT", "nan", "a number above 0 and at most 3600"),
        ("MCP_RESTART_BACKOFF_MAX", "inf", "a number above 0"),
        ("LLM_TEMPERATURE", "warm", "a number from 0 to 2"),
        ("LANGGRAPH_RECURSION_LIMIT", "3", "a whole number of at least 4"),
        ("LLM_PROVIDER", "hal", f"one of {', '.join(get_args(Provider))}"),
        ("SANDBOX", "maybe", "one of auto, true, false"),
        ("DATA_DIR", __file__, "the path of a directory"),
        ("NETUTILS_DNS_SERVER", "dns.example.org", "an IP address, with :port where it is not 53"),
        ("NETUTILS_DNS_SERVER", "10.0.0.2:0", "an IP address, with :port where it is not 53"),
    ],
)
def test_a_wrong_value_is_one_sentence_with_variable_value_and_what_is_allowed(
    variable: str, value: str, allowed: str
) -> None:
    assert problems(**{variable: value}) == (f"{variable}={value} cannot be used: it must be {allowed}.",)


def test_every_wrong_value_is_reported_at_once() -> None:
    found = problems(A2A_PORT="x", SANDBOX="y", LOG_LEVEL="z")
    assert sorted(sentence.split("=")[0] for sentence in found) == ["A2A_PORT", "LOG_LEVEL", "SANDBOX"]


@pytest.mark.parametrize(
    "variable", [name.upper() for name, info in Settings.model_fields.items() if SecretStr in get_args(info.annotation)]
)
def test_a_secret_is_never_shown(variable: str) -> None:
    (sentence,) = problems(**{variable: "hunter2 with a space"})
    assert sentence.startswith(f"{variable}=********")
    assert "hunter2" not in sentence
    schemes = {
        "DATABASE_URL": "postgresql",
        "POSTGRES_DSN": "postgresql",
        "MONGODB_URI": "mongodb",
        "REDIS_URL": "redis",
    }
    scheme = next((scheme for ending, scheme in schemes.items() if variable.endswith(ending)), None)
    prefix = {"A2A_AUTH_KEYS": "ci:user:", "A2A_AGENT_KEYS": "argocd:"}.get(variable, "")
    value = f"{scheme}://me:hunter2@db.example/rag" if scheme else f"{prefix}hunter2-hunter2-hunter2"
    settings = load(**{variable: value})
    assert getattr(settings, variable.lower()).get_secret_value() == value
    assert "hunter2" not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"


@pytest.mark.parametrize("variable", ["A2A_AUTH_SHARED_KEY", "A2A_AGENTS_AUTH_KEY", "USER_SIGNING_KEY"])
def test_a_key_of_a_server_is_long(variable: str) -> None:
    (sentence,) = problems(**{variable: "fifteen-letters"})
    assert sentence.startswith(f"{variable}=******** cannot be used: it must be at least 16 characters")
    assert load(**{variable: "sixteen-letters!"})


@pytest.mark.parametrize("names", ["https://a.example", "a.example:8000", "a.example/x", "a b", "*.*"])
def test_allowed_hosts_are_names_alone(names: str) -> None:
    (sentence,) = problems(ALLOWED_HOSTS=f"b.example,{names}")
    assert "host names without scheme and port" in sentence
    assert load(ALLOWED_HOSTS="a.example, .b.example,*.c.example,*,10.0.0.1,::1,[fd00::1],").allowed_hosts


def test_credentials_in_an_address_are_masked() -> None:
    (sentence,) = problems(OPENAI_ENDPOINT="ftp://me:hunter2@example.org/v1")
    assert "hunter2" not in sentence
    assert "example.org/v1" in sentence


@given(
    st.sampled_from([("true", True), ("1", True), ("yes", True), ("on", True)])
    | st.sampled_from([("false", False), ("0", False), ("no", False), ("off", False)]),
    st.data(),
)
def test_flags_are_read_in_any_case(case: tuple[str, bool], data: st.DataObject) -> None:
    word, expected = case
    spelled = "".join(data.draw(st.sampled_from([letter.lower(), letter.upper()])) for letter in word)
    settings = load(DISTRIBUTED_MODE=spelled, SKIP_AGENT_CONNECTIVITY_CHECK=spelled, SANDBOX=f" {spelled} ")
    assert settings.distributed_mode is expected
    assert settings.skip_agent_connectivity_check is expected
    assert settings.sandbox == str(expected).lower()
    assert parse_flag("ENABLE_JIRA", spelled) is expected


def test_a_wrong_flag_of_an_agent_is_named() -> None:
    with pytest.raises(SettingsError, match=r"^ENABLE_JIRA=maybe cannot be used: it must be true or false"):
        parse_flag("ENABLE_JIRA", "maybe")


@pytest.mark.parametrize("name", [name.upper() for name in Settings.model_fields])
@pytest.mark.parametrize("blank", ["", "  "])
def test_an_empty_value_counts_as_not_set(name: str, blank: str) -> None:
    settings = load(**{name: blank})
    assert settings == load()
    assert name not in settings.environ


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text(
        "A2A_PORT=9001\nLOG_LEVEL=debug\nexport SANDBOX='false'  # a comment\n"
        "JIRA_AGENT_URL=http://jira:8000\nARGOCD_API_TOKEN=pa$$HOME${HOME}\nENABLE_JIRA=false\nbare\n"
    )
    settings = load_settings({"A2A_PORT": "9002", "ENABLE_JIRA": ""}, env_file)
    assert (settings.a2a_port, settings.log_level, settings.sandbox) == (9002, "debug", "false")
    assert dict(settings.environ) == {
        "A2A_PORT": "9002",
        "LOG_LEVEL": "debug",
        "SANDBOX": "false",
        "JIRA_AGENT_URL": "http://jira:8000",
        "ARGOCD_API_TOKEN": "pa$$HOME${HOME}",
    }


def test_overrides_win_unless_they_are_empty(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DISTRIBUTED_AGENTS=argocd\nLOG_LEVEL=debug\n")
    environ = {"SETTINGS_OVERRIDES": "DISTRIBUTED_AGENTS=\nLOG_LEVEL=error\nA2A_PORT=9002\n", "A2A_PORT": "9001"}
    settings = load_settings(environ, tmp_path / ".env")
    assert (settings.distributed_agents, settings.log_level, settings.a2a_port) == ("argocd", "error", 9002)
    assert settings.environ["A2A_PORT"] == "9002"


def test_a_wrong_value_in_the_file_is_found(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("A2A_PORT=none\n")
    with pytest.raises(SettingsError, match="A2A_PORT=none"):
        load_settings({}, env_file)
    env_file.write_bytes(b"A2A_HOST=\xff\xfe\n")
    with pytest.raises(SettingsError, match="cannot be read as UTF-8"):
        load_settings({}, env_file)
    assert load_settings({}, tmp_path / "missing") == load()


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("A2A_PORT", "9003")
    settings = load_settings()
    assert settings.a2a_port == 9003
    monkeypatch.setenv("A2A_PORT", "9004")
    assert settings.environ["A2A_PORT"] == "9003"
    assert load().a2a_port == 8000


def test_nothing_can_be_changed_afterwards() -> None:
    settings = load(A2A_PORT="9001")
    with pytest.raises(ValidationError):
        settings.a2a_port = 1
    with pytest.raises(TypeError):
        settings.environ["A2A_PORT"] = "1"  # type: ignore[index]


def test_data_directory(tmp_path: Path) -> None:
    assert load(XDG_DATA_HOME=str(tmp_path)).data_dir == tmp_path / "platform-engineer"
    assert load(XDG_DATA_HOME=str(tmp_path), DATA_DIR="~/here").data_dir == Path.home() / "here"
    assert load(XDG_DATA_HOME="relative").data_dir == load().data_dir


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"A2A_HOST": "0.0.0.0", "A2A_PORT": "80"}, "http://127.0.0.1:80"),
        ({"A2A_HOST": "::", "A2A_PORT": "80"}, "http://[::1]:80"),
        ({"A2A_HOST": "fd00::1"}, "http://[fd00::1]:8000"),
        ({"A2A_HOST": "0.0.0.0", "A2A_PUBLIC_PORT": "9000"}, "http://127.0.0.1:9000"),
        ({"A2A_PUBLIC_URL": "https://supervisor.example.org/a2a"}, "https://supervisor.example.org/a2a"),
    ],
)
def test_public_url(environ: dict[str, str], expected: str) -> None:
    assert load(**environ).public_url == expected


@pytest.mark.parametrize("server", ["10.0.0.2", "10.0.0.2:5353", "fd00::2", "[fd00::2]:5353"])
def test_dns_server_addresses(server: str) -> None:
    assert load(NETUTILS_DNS_SERVER=server).netutils_dns_server == server


@pytest.mark.parametrize("provider", get_args(Provider))
def test_a_provider_needs_its_variables(provider: Provider) -> None:
    needs = PROVIDER_REQUIREMENTS[provider]
    if needs:
        (sentence,) = problems(LLM_PROVIDER=provider)
        assert sentence.startswith(f"LLM_PROVIDER={provider} needs {' or '.join(needs[0])}")
    for choose in (min, max):
        complete = {choose(names): "https://x" for names in needs}
        assert load(LLM_PROVIDER=provider.upper(), **complete).llm_provider == provider


def test_a_provider_chosen_for_one_agent_is_named_by_its_own_variable() -> None:
    assert provider_problem(load(), "groq", "JIRA_LLM_PROVIDER") == (
        "JIRA_LLM_PROVIDER=groq needs GROQ_API_KEY: set it, or choose another provider."
    )


def test_the_second_name_of_a_variable() -> None:
    assert load(AWS_DEFAULT_REGION="eu-west-1").aws_region == "eu-west-1"
    assert load(AWS_DEFAULT_REGION="eu-west-1", AWS_REGION="us-east-1").aws_region == "us-east-1"


def test_backoff_bounds_fit_together() -> None:
    (sentence,) = problems(MCP_RESTART_BACKOFF="5", MCP_RESTART_BACKOFF_MAX="2.5")
    assert sentence == (
        "MCP_RESTART_BACKOFF_MAX=2.5 cannot be used: it must be at least MCP_RESTART_BACKOFF, which is 5."
    )


def test_the_page_lists_every_variable_once() -> None:
    cells = [line.split(" | ")[0] for line in configuration_page().splitlines()]
    for name in [*(name.upper() for name in Settings.model_fields), *(row.pattern for row in DYNAMIC_VARIABLES)]:
        assert cells.count(f"| `{name}`") == 1, name


def test_the_page_in_docs_is_up_to_date() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "ai_platform_engineering.settings"],
        capture_output=True,
        check=True,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "A2A_PORT": "1"},
        encoding="utf-8",
    ).stdout
    assert printed == (ROOT / "docs/configuration.md").read_text(encoding="utf-8"), "run `make docs`"


ADDRESSES = {
    "postgres": ("LANGGRAPH_CHECKPOINT_POSTGRES_DSN", "postgresql://me:hunter2@db.example/x"),
    "mongodb": ("LANGGRAPH_CHECKPOINT_MONGODB_URI", "mongodb+srv://me:hunter2@db.example/x"),
    "redis": ("LANGGRAPH_CHECKPOINT_REDIS_URL", "rediss://:hunter2@db.example/0"),
}


def test_an_unset_checkpoint_type_is_the_first_whose_address_is_set() -> None:
    addresses = [*ADDRESSES.values()]
    assert load().checkpoint_type == "sqlite"
    assert load(CONVERSATIONS="memory", **dict(addresses)).checkpoint_type == "memory"
    assert [load(**dict(addresses[first:])).checkpoint_type for first in range(3)] == [*ADDRESSES]
    assert (
        load(LANGGRAPH_CHECKPOINT_TYPE="SQLite", CONVERSATIONS="memory", **dict(addresses)).checkpoint_type == "sqlite"
    )


@pytest.mark.parametrize("kind", ADDRESSES)
def test_a_checkpoint_type_needs_its_address(kind: str) -> None:
    variable, address = ADDRESSES[kind]
    assert problems(LANGGRAPH_CHECKPOINT_TYPE=kind) == (
        f"LANGGRAPH_CHECKPOINT_TYPE={kind} needs {variable}: set it, or choose another type.",
    )
    assert load(LANGGRAPH_CHECKPOINT_TYPE=kind, **{variable: address}).checkpoint_type == kind


def test_an_unknown_checkpoint_type_is_reported_with_the_known_ones() -> None:
    assert problems(LANGGRAPH_CHECKPOINT_TYPE="mysql") == (
        "LANGGRAPH_CHECKPOINT_TYPE=mysql cannot be used: it must be one of sqlite, memory, postgres, mongodb, redis.",
    )


def test_an_event_log_in_postgres_needs_an_address() -> None:
    own, shared = "postgresql://me:hunter2@log.example/x", ADDRESSES["postgres"]
    assert problems(EVENT_LOG="postgres") == (
        "EVENT_LOG=postgres needs EVENT_LOG_POSTGRES_DSN or LANGGRAPH_CHECKPOINT_POSTGRES_DSN: set one of them, or "
        "choose another event log.",
    )
    for environ, address in (
        (dict([shared]), shared[1]),
        ({"EVENT_LOG_POSTGRES_DSN": own}, own),
        ({"EVENT_LOG_POSTGRES_DSN": own, **dict([shared])}, own),
    ):
        settings = load(EVENT_LOG="Postgres", **environ)
        assert settings.event_log == "postgres"
        assert settings.event_log_postgres_dsn is not None
        assert settings.event_log_postgres_dsn.get_secret_value() == address


def test_an_address_that_two_settings_share_is_reported_once() -> None:
    assert problems(LANGGRAPH_CHECKPOINT_POSTGRES_DSN="mysql://me:hunter2@db.example/x") == (
        "LANGGRAPH_CHECKPOINT_POSTGRES_DSN=******** cannot be used: it must be a postgresql:// address.",
    )


def test_persistence_cannot_be_required_of_memory() -> None:
    (sentence,) = problems(REQUIRE_PERSISTENCE="true", CONVERSATIONS="memory")
    assert sentence.startswith("REQUIRE_PERSISTENCE=true does not fit conversations in memory")


@pytest.mark.parametrize("kind", ADDRESSES)
def test_memories_are_off_or_have_an_address_of_their_own_or_that_of_the_conversations(kind: Any) -> None:
    shared, address = ADDRESSES[kind]
    own = shared.replace("CHECKPOINT", "STORE")
    assert load(**{shared: address}).langgraph_store_type is None
    assert problems(LANGGRAPH_STORE_TYPE=kind) == (
        f"LANGGRAPH_STORE_TYPE={kind} needs {own} or {shared}: set it, or choose another type.",
    )
    assert load(LANGGRAPH_STORE_TYPE=kind.upper(), **{shared: address}).memory_address(kind) == (shared, address)
    both = load(LANGGRAPH_STORE_TYPE=kind, **{shared: address, own: f"{address}1"})
    assert both.memory_address(kind) == (own, f"{address}1")
    assert "hunter2" not in repr(both)


def test_an_unknown_type_for_memories_is_reported_with_the_known_ones() -> None:
    assert problems(LANGGRAPH_STORE_TYPE="mysql") == (
        "LANGGRAPH_STORE_TYPE=mysql cannot be used: it must be one of sqlite, memory, postgres, mongodb, redis.",
    )
