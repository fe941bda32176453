from __future__ import annotations

import pytest

from ai_platform_engineering.settings import SettingsError, configuration_page, load_settings
from ai_platform_engineering.settings.approval_overrides import (
    ALLOWED_OVERRIDES,
    parse_overrides,
    unknown_agents,
    unknown_tools,
)


def test_agents_and_tools_in_any_case_and_spacing() -> None:
    text = " Jira = Never,, ARGOCD.Delete_Application=ALWAYS ,github=writes, gitlab.a.b-c/d=destructive, "
    assert parse_overrides(text) == {
        "jira": "never",
        "argocd.delete_application": "always",
        "github": "writes",
        "gitlab.a.b-c/d": "destructive",
    }
    assert parse_overrides("") == {}


def test_the_same_said_twice_is_said_once() -> None:
    assert parse_overrides("jira=never, JIRA=never") == {"jira": "never"}


@pytest.mark.parametrize(
    "wrong", ["jira", "jira=", "=never", "jira=maybe", "jira.=never", ".sync=never", "jira=never=always", "a b=never"]
)
def test_a_wrong_override_stops_the_start_with_one_sentence(wrong: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({"REQUIRE_APPROVAL_OVERRIDES": f"github=writes, {wrong}"}, env_file=None)
    assert caught.value.problems == (
        f"REQUIRE_APPROVAL_OVERRIDES={wrong} cannot be used: it must be {ALLOWED_OVERRIDES}.",
    )


def test_two_levels_for_one_thing_stop_the_start() -> None:
    with pytest.raises(SettingsError, match="=jira=always cannot be used: it must be given once; jira=never is set"):
        load_settings({"REQUIRE_APPROVAL_OVERRIDES": "jira=never,jira=always"}, env_file=None)


def test_only_three_levels_are_for_everything() -> None:
    assert load_settings({}, env_file=None).require_approval is None
    assert load_settings({"REQUIRE_APPROVAL": "Writes"}, env_file=None).require_approval == "writes"
    with pytest.raises(SettingsError, match="it must be one of never, destructive, writes"):
        load_settings({"REQUIRE_APPROVAL": "always"}, env_file=None)


def test_the_page_says_what_is_allowed() -> None:
    [row] = [line for line in configuration_page().splitlines() if "`REQUIRE_APPROVAL_OVERRIDES`" in line]
    assert ALLOWED_OVERRIDES in row


def test_an_unknown_agent_is_named_with_the_nearest_known_one() -> None:
    known = ["argocd", "jira"]
    overrides = parse_overrides("argcd=never, argcd.sync=always, jira.create=never, zzz=never")
    assert unknown_agents(overrides, known) == [
        "REQUIRE_APPROVAL_OVERRIDES names 'argcd', which is not a known agent. Did you mean 'argocd'?",
        "REQUIRE_APPROVAL_OVERRIDES names 'zzz', which is not a known agent. Known agents: argocd, jira.",
    ]


def test_an_unknown_tool_is_named_with_the_nearest_one_of_that_agent() -> None:
    overrides = parse_overrides("argocd.sync_aplication=always, argocd.LIST=never, jira.other=never, argocd=writes")
    assert unknown_tools(overrides, "argocd", ["sync_application", "List"]) == [
        "REQUIRE_APPROVAL_OVERRIDES names 'argocd.sync_aplication', a tool that the agent does not have. "
        "Did you mean 'sync_application'?"
    ]
