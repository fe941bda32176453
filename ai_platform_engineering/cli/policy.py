"""`platform-engineer policy`: checks the file of the policy, and explains a decision."""

from __future__ import annotations

import argparse
from pathlib import Path

from ai_platform_engineering.approvals.effects import Effect
from ai_platform_engineering.cli.exit_codes import refuse
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.policy.decisions import KINDS, Decision, Kind, Policy, PrincipalPolicy
from ai_platform_engineering.policy.file import read_policy
from ai_platform_engineering.policy.tool_pattern import ALLOWED, PatternError, ToolPattern
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.text.plain_text import one_line

_THINGS: dict[str, Kind] = {**{kind.removesuffix("s"): kind for kind in KINDS}, "knowledge": "knowledge"}


def check_policy(options: argparse.Namespace, settings: Settings) -> int:
    policy = _policy(options, settings)
    rules = f"{len(policy.rules)} rule{'s' if len(policy.rules) != 1 else ''}"
    print(f"The policy is valid: {rules}, default {policy.default}.")
    return 0


def explain_decision(options: argparse.Namespace, settings: Settings) -> int:
    policy = _policy(options, settings)
    principal = _principal(options)
    try:
        decision = _decided(policy.of(principal), options.target, options.effect)
    except PatternError:
        things = ", ".join(f"{name}:NAME" for name in sorted(_THINGS))
        return refuse(f"{options.target!r} must be {ALLOWED}; or one of {things}.")
    groups = ", ".join(sorted(policy.groups_of(principal))) or "no groups"
    print(f"{one_line(principal.subject or 'anonymous')} ({one_line(groups)}), {one_line(options.target)}:")
    print(f"{decision.action or 'not decided'}. {decision.reason}")
    if decision.action == "approve":
        print(decision.approvers.in_words())
    return 0


def _policy(options: argparse.Namespace, settings: Settings) -> Policy:
    path: Path | None = options.file or settings.policy_file
    if path is None:
        raise SettingsError("There is no policy: set POLICY_FILE, or name the file with --file.")
    return read_policy(path)


def _principal(options: argparse.Namespace) -> Principal:
    if options.subject is None and not options.group:
        return ANONYMOUS
    return Principal("token", options.subject, frozenset(options.group))


def _decided(policy: PrincipalPolicy, target: str, effect: Effect) -> Decision:
    kind, separator, name = target.partition(":")
    if separator and kind in _THINGS:
        return policy.thing(_THINGS[kind], name)
    call = ToolPattern.parse(target)
    return policy.call(call.agent, call.tool, dict(call.arguments), effect)
