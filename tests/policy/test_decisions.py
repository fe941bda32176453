"""Decisions of a policy: the first matching rule wins, and a value too many is never allowed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.approvals.deciders import Deciders
from ai_platform_engineering.graphs.approval_policy import ApprovalRequired, CallAllowed, CallRefused, restricted
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.policy.decisions import Decision, Policy, PrincipalPolicy
from ai_platform_engineering.policy.file import read_policy
from ai_platform_engineering.policy.tool_pattern import PatternError, ToolPattern
from ai_platform_engineering.settings import SettingsError

POLICY = """
version: 1
groups:
  oncall: [ada, "slack:T1/U1"]
rules:
  - name: production is synced with four eyes
    who: [group:developers, group:oncall]
    tools: ["argocd.sync_application(app=prod-*)"]
    action: approve
    approvers: [group:oncall]
    four_eyes: true
  - name: other syncs are free
    who: [group:developers]
    tools: [argocd.sync_application]
    action: allow
  - name: no deletions
    who: ["*"]
    tools: ["*.delete_*"]
    action: deny
  - name: guests read
    who: [guest]
    tools: ["*.*"]
    effects: [write, destructive]
    action: deny
  - name: guests see little
    who: [guest]
    agents: [pagerduty]
    skills: ["incident-*"]
    workflows: ["*"]
    knowledge: [hr]
    action: deny
"""
DEVELOPER = Principal("token", "bob", frozenset({"developers"}))


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return read_policy(file)


def test_the_first_rule_that_matches_decides(policy: Policy) -> None:
    rules = policy.of(DEVELOPER)
    production = rules.call("argocd", "sync_application", {"app": "PROD-eu"}, "write")
    assert (production.action, "four eyes" in production.reason) == ("approve", True)
    assert production.approvers == Deciders(groups=frozenset({"oncall"}), four_eyes=True)
    assert rules.call("argocd", "sync_application", {"app": "dev-eu"}, "write").action == "allow"
    # One production app among others is enough to ask; all must be others to be free.
    assert rules.call("argocd", "sync_application", {"app": ["dev-eu", "prod-eu"]}, "write").action == "approve"
    assert rules.call("github", "delete_repository", {}, "destructive").action == "deny"
    assert rules.call("jira", "create_issue", {}, "write").action is None
    assert policy.of(Principal("statement", "slack:T1/U1")).rules[0] is policy.rules[0]
    assert policy.of(ANONYMOUS).call("argocd", "sync_application", {"app": "prod-eu"}, "write").action is None


def test_what_is_denied_altogether_is_hidden(policy: Policy) -> None:
    guest = policy.of(Principal("token", "guest"))
    assert guest.hidden("agents", ["argocd", "pagerduty"]) == {"pagerduty"}
    assert guest.hidden("skills", ["incident-triage", "other"]) == {"incident-triage"}
    assert [guest.sees("knowledge", name) for name in ("hr", "runbooks")] == [False, True]
    assert [guest.restricts(kind) for kind in ("knowledge", "agents")] == [True, True]
    assert guest.hides_tool("jira", "create_issue", "write")
    assert not guest.hides_tool("jira", "search", "read")
    developer = policy.of(DEVELOPER)
    assert developer.hides_tool("argocd", "delete_application", "destructive")
    # Some of its calls are allowed, so the model must know it.
    assert not developer.hides_tool("argocd", "sync_application", "write")
    assert not developer.restricts("agents")


def test_an_allowed_value_does_not_let_another_one_through() -> None:
    pattern = ToolPattern.parse("aws.terminate(instance=dev-*, region=eu-*)")
    assert pattern.covers({"instance": ["dev-1", "dev-2"], "region": "eu-1"})
    for arguments in ({"instance": ["dev-1", "prod-1"], "region": "eu-1"}, {"instance": "dev-1"}, {"region": "eu-1"}):
        assert not pattern.covers(arguments)
    assert pattern.touches({"instance": {"names": ["prod-1", "DEV-1"]}, "region": "eu-1"})


def test_a_default_of_deny_hides_and_refuses_what_no_rule_names(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        "version: 1\ndefault: deny\nrules: [{who: ['*'], agents: [jira], tools: ['jira.search'], action: allow}]"
    )
    rules = read_policy(file).of(ANONYMOUS)
    assert rules.call("jira", "search", {}, "read").action == "allow"
    assert rules.call("jira", "create_issue", {}, "write").action == "deny"
    assert (rules.hides_tool("jira", "search", "read"), rules.hides_tool("jira", "create_issue", "write")) == (
        False,
        True,
    )
    assert rules.hidden("agents", ["jira", "argocd"]) == {"argocd"}


def test_the_rules_of_an_agent_decide_the_same_in_its_own_process(policy: Policy) -> None:
    rules = policy.of(DEVELOPER)
    sent = PrincipalPolicy.read(json.loads(json.dumps(rules.for_agent("argocd"))))
    for arguments in ({"app": "prod-eu"}, {"app": "dev-eu"}, {}):
        assert sent.call("argocd", "sync_application", arguments, "write") == rules.call(
            "argocd", "sync_application", arguments, "write"
        )
    with pytest.raises((KeyError, TypeError, ValueError)):
        PrincipalPolicy.read({"default": "allow"})


ONE_RULE = "version: 1\nrules: [{who: [x]"
NAMES = st.text("abc-*?", min_size=1, max_size=6)


@given(NAMES, NAMES, st.dictionaries(st.text("xyz", min_size=1, max_size=3), NAMES, max_size=3))
def test_a_pattern_is_read_as_it_is_written(agent: str, tool: str, arguments: dict[str, str]) -> None:
    pattern = ToolPattern(agent, tool, tuple(arguments.items()))
    assert ToolPattern.parse(str(pattern)) == pattern


@pytest.mark.parametrize("text", ["argocd", "argocd.", ".sync", "argocd.sync(app)", "argocd.sync(", "a b.c", "x" * 600])
def test_other_texts_are_no_patterns(text: str) -> None:
    with pytest.raises(PatternError):
        ToolPattern.parse(text)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("version: 2", "version must be 1."),
        ("rules: []", "version is missing."),
        ("version: 1\nrule: []", "rule is not a key here; allowed are version, default, groups, rules."),
        (
            f"{ONE_RULE}, action: maybe, tools: [a.b]}}]",
            "rule 1, action must be 'allow', 'approve' or 'deny'.",
        ),
        (
            f"{ONE_RULE}, action: deny}}]",
            "rule 1: must name tools, agents, workflows, skills, knowledge.",
        ),
        (f"{ONE_RULE}, action: approve, agents: [a]}}]", "rule 1: approve is for tools only."),
        (
            f"{ONE_RULE}, action: allow, tools: [a.b], approvers: [y]}}]",
            "belong to the action approve.",
        ),
        (f"{ONE_RULE}, action: deny, tools: [argocd]}}]", "'argocd' must be agent.tool or"),
        ("- x", "must hold the keys of one policy"),
        (": [", "is not valid YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, content: str, sentence: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(content)
    with pytest.raises(SettingsError) as refused:
        read_policy(file)
    assert str(refused.value).startswith(str(file))
    assert sentence in str(refused.value)


def test_the_policy_refines_a_verdict_and_never_lifts_a_refusal() -> None:
    deny = Decision("deny", "The rule 'r' decides.")
    assert restricted(CallAllowed(), deny, "write") == CallRefused("the policy denies it. The rule 'r' decides")
    assert restricted(CallAllowed(), Decision("approve", ""), "write") == ApprovalRequired("write")
    assert restricted(ApprovalRequired("write"), Decision("allow", ""), "write") == CallAllowed()
    assert restricted(ApprovalRequired("write"), Decision(None, ""), "write") == ApprovalRequired("write")
    refused = CallRefused("the manifest denies it")
    assert {restricted(refused, Decision(action, ""), "write") for action in ("allow", "approve", "deny")} == {refused}
