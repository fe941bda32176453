from __future__ import annotations

import json
from pathlib import Path

import pytest

from ai_platform_engineering.cli import main


@pytest.fixture(autouse=True)
def nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))


def test_list(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_PAGERDUTY", "false")
    assert main(["workflows", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["create_github_repo", "ready"],
        ["escalate_incident", "off"],
        ["onboard_service", "ready"],
        ["roll_back_application", "ready"],
    ]
    assert "Creates a GitHub repository" in lines[0]
    assert "the agent pagerduty is off (" in lines[1]
    assert "ENABLE_PAGERDUTY=false" in lines[1]


def test_list_as_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_JIRA", "false")
    assert main(["workflows", "list", "--json"]) == 0
    rows = {row["name"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert rows["create_github_repo"]["ready"] is True
    assert rows["onboard_service"]["agents"] == ["github", "argocd", "jira"]
    assert rows["onboard_service"]["ready"] is False
    assert "jira" in rows["onboard_service"]["reason"]


@pytest.mark.parametrize("name", ["roll_back_application", "Roll Back Application", "roll-back-application"])
def test_show(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workflows", "show", name]) == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert shown[0] == "Roll Back Application (roll_back_application)"
    assert "application text required Name of the application" in shown
    assert "new_ticket boolean default false Whether to open a new Jira ticket about it" in shown
    assert "1. Roll the application back argocd tool rollback_application" in shown
    assert "2. Comment on the ticket jira instruction if {{ inputs.ticket }} is set" in shown
    assert "3. Open a ticket jira instruction if {{ inputs.new_ticket }} is true" in shown


def test_show_as_json_is_the_definition_and_whether_it_can_be_started(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workflows", "show", "create_github_repo", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["ready"] is True
    assert shown["steps"][0]["tool"] == "create_repository"


def test_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workflows", "show", "create_repo"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "There is no workflow 'create_repo'; did you mean 'create_github_repo'." in captured.err


def test_a_broken_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "flows"
    directory.mkdir()
    (directory / "broken.yaml").write_text("name: x\n")
    monkeypatch.setenv("WORKFLOWS_DIR", str(directory))
    assert main(["workflows", "list"]) == 2
    assert "broken.yaml: title: is missing" in capsys.readouterr().err


def test_a_directory_that_is_not_there(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKFLOWS_DIR", "/nowhere/at/all")
    assert main(["workflows", "list"]) == 2
    assert "WORKFLOWS_DIR=/nowhere/at/all cannot be used" in capsys.readouterr().err
