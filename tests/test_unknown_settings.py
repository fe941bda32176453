from __future__ import annotations

from pathlib import Path

import pytest

from ai_platform_engineering.multi_agents.agent_registry import known_manifests
from ai_platform_engineering.settings import Settings, known_variables, load_settings
from ai_platform_engineering.unknown_settings import unknown_settings

AGENTS = "argocd, aws, confluence, github, gitlab, jira, komodor, kubernetes, netutils, pagerduty, splunk, webex"


def found(settings: Settings) -> list[str]:
    return unknown_settings(settings, known_manifests(settings))


@pytest.mark.parametrize(
    ("variable", "sentence"),
    [
        ("OPENAI_MODL_NAME", "there is no such setting. Did you mean OPENAI_MODEL_NAME?"),
        ("JIRA_AGENT_URLS", "there is no such setting. Did you mean JIRA_AGENT_URL?"),
        ("LANGGRAPH_VERBOSITY", "there is no such setting; docs/configuration.md lists them all."),
        ("ENABLE_FOO", f"there is no agent named 'foo'. Known agents: {AGENTS}."),
        ("ENABLE_GITHUBB", "there is no agent named 'githubb'. Did you mean ENABLE_GITHUB?"),
    ],
)
def test_a_misspelt_variable_is_named_with_the_nearest_setting(variable: str, sentence: str) -> None:
    assert found(load_settings({variable: "x"}, env_file=None)) == [f"{variable} is set, but {sentence}"]


def test_variables_of_other_programs_are_left_alone() -> None:
    names = (
        *("PATH", "HOME", "LS_COLORS", "VIRTUAL_ENV", "LOGNAME", "HTTP_PROXY", "AWS_PROFILE", "DATABASE", "MODELS"),
        *("OPENAI_ORG_ID", "LANGSMITH_TRACING", "RAG_SERVER_SERVICE_HOST", "RAG_SERVER_PORT_8000_TCP_ADDR"),
    )
    assert not found(load_settings(dict.fromkeys(names, "x"), env_file=None))


def test_known_variables_are_left_alone() -> None:
    manifests = known_manifests(load_settings({}, env_file=None)).values()
    required = {name for manifest in manifests for name in (*manifest.requires, *manifest.variables())}
    names = {*known_variables(), *required, "ENABLE_JIRA", "JIRA_MODEL_NAME", "ENABLE_ODD"} - {"AGENTS_DIR"}
    settings = load_settings({"ODD_AGENT_URL": "http://127.0.0.1:1"}, env_file=None)
    settings._environ = dict.fromkeys([*names, *settings.environ], "x")
    assert not unknown_settings(settings, known_manifests(load_settings({}, env_file=None)))


def test_in_the_file_every_unknown_name_counts(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TEAM=platform\nHTTPS_PROXY=http://proxy\nPLATFORM_ENGINEER_IMAGE=x\n")
    (sentence,) = found(load_settings({"EDITOR": "vi"}, tmp_path / ".env"))
    assert sentence == "TEAM is set, but there is no such setting; docs/configuration.md lists them all."
