"""The scan for suspicious content in the files of a skill.

A model reads a skill, so the scan reports content that a reviewer should see: credentials, invisible characters,
sentences that try to change rules or approvals, commands that run remote code. Findings are advice, because approvals
and tool lists apply regardless of a skill's text. Only a critical finding makes a skill unusable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from ai_platform_engineering.skills_middleware.leaked_secrets import leaked_secrets
from ai_platform_engineering.utils.characters import (
    BIDI_OVERRIDES,
    CONTROL_CHARACTERS,
    INVISIBLE_CHARACTERS,
    TAG_CHARACTERS,
)

Severity = Literal["info", "warning", "critical"]

MAX_FINDINGS: Final = 5
"""Findings of one kind per file. Further ones are not reported."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Suspicious content of a skill. A skill with a critical finding is refused."""

    severity: Severity
    code: str
    message: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class _Rule:
    """One kind of finding. If `words` are given, the pattern is only tried on texts that contain one of them."""

    severity: Severity
    code: str
    message: str
    pattern: re.Pattern[str]
    words: tuple[str, ...] = ()


# Words that may occur between the words of a phrase. If any word were allowed there, "Do not restart it. Ask for
# approval" would count as an attempt to avoid the approval.
_FILLERS: Final = (
    r"\s{1,10}(?:(?:a|all|and|any|anyone|bother|entire|ever|every|explicit|first|for|full|further|have|hidden|human|me|my"
    r"|need|of|our|people|stop|that|the|their|them|these|those|to|user|users|you|your)\s{1,10}){0,5}"
)
_NOT: Final = r"\b(?:do\snot|don['’]t|never|need\snot|no\sneed\sto|must\snot|should\snot)"


def _phrases(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_RULES: Final = (
    _Rule("critical", "tag_characters", "has invisible tag characters, which can carry a hidden text", TAG_CHARACTERS),
    _Rule("critical", "bidi_override", "has characters that change the order in which text is shown", BIDI_OVERRIDES),
    _Rule("warning", "invisible_characters", "has characters that cannot be seen", INVISIBLE_CHARACTERS),
    _Rule("warning", "control_characters", "has control characters", CONTROL_CHARACTERS),
    _Rule(
        "warning",
        "changes_rules",
        "tells the model to ignore its rules; rules of the platform hold nevertheless",
        _phrases(
            rf"\b(?:ignore|disregard|forget|override){_FILLERS}(?:(?:previous|prior|earlier|above|preceding|existing|"
            r"system|other|safety)\s{1,10}){1,2}(?:instructions?|rules|prompts?|guidelines|guardrails|messages?|policies)",
            r"\b(?:ignore|disregard|forget|override)\s{1,10}(?:all|your|any)\b(?:\s{1,10}(?:of|the|your)){0,2}"
            r"\s{1,10}(?:instructions|rules|prompts?|guidelines|guardrails)",
        ),
        ("ignore", "disregard", "forget", "override"),
    ),
    _Rule(
        "warning",
        "avoids_approval",
        "tells the model to avoid an approval; approvals are asked for nevertheless",
        _phrases(
            rf"{_NOT}{_FILLERS}(?:ask|wait|request|require|seek|obtain|get){_FILLERS}"
            r"(?:approvals?|confirmations?|permissions?|consent)\b",
            rf"(?<!not\s)(?<!never\s)\b(?:skip|bypass|disable|suppress|circumvent|avoid){_FILLERS}"
            r"(?:approvals?|confirmations?|permission\schecks?)\b",
            r"\bauto-?approve\b",
            r"\b(?:approvals?|confirmations?)\s(?:is|are)\s(?:not|never)\s(?:needed|required|necessary)\b",
        ),
        ("approv", "confirm", "permission", "consent"),
    ),
    _Rule(
        "warning",
        "changes_role",
        "tells the model to take another role",
        _phrases(
            r"\byou\sare\snow\s(?!ready|done|finished|able|in\b|on\b|at\b)",
            r"\bfrom\snow\son,?\syou\b",
            r"\bpretend\s(?:to\sbe|that\syou|you\sare)\b",
        ),
        ("you", "pretend"),
    ),
    _Rule(
        "warning",
        "asks_for_prompt",
        "asks the model for its system prompt",
        _phrases(
            rf"\b(?:reveal|print|show|repeat|output|display|send|leak|disclose|include|share|copy|post){_FILLERS}"
            r"system\s(?:prompt|message|instructions)\b"
        ),
        ("system",),
    ),
    _Rule(
        "warning",
        "hides_actions",
        "tells the model to hide something from people",
        _phrases(
            rf"{_NOT}\s{{1,10}}(?:ever\s)?(?:tell|inform|notify|alert)\s{{1,10}}(?:the\s)?(?:users?|people|anyone|humans?)\b"
        ),
        ("tell", "inform", "notify", "alert"),
    ),
    _Rule(
        "warning",
        "chat_markup",
        "has the markup of chat turns, which can pass for another message",
        _phrases(r"<\|(?:im_start|im_end|system|user|assistant|endoftext)\|>", r"\[/?INST\]", r"<</?SYS>>"),
        ("<|", "inst]", "sys>>"),
    ),
    _Rule(
        "warning",
        "remote_code",
        "runs a program that it fetches from the network",
        _phrases(
            r"\b(?:curl|wget)\s[^\n|]{1,200}\|\s{0,10}(?:sudo\s(?:-\w\s)?)?(?:ba|z|da|k)?sh\b",
            r"\b(?:curl|wget)\s[^\n|]{1,200}\|\s{0,10}(?:sudo\s)?(?:python|perl|ruby|node)",
            r"\b(?:sh|bash|zsh|eval|source|python3?)\s[^\n(]{0,20}[<$]\(\s{0,10}(?:curl|wget)\b",
            r"\b(?:iwr|irm|invoke-webrequest|invoke-restmethod)\s[^\n|]{1,200}\|\s{0,10}(?:iex|invoke-expression)\b",
            r"\biex\s{0,10}\(\s{0,10}(?:iwr|irm|new-object\snet\.webclient)\b",
        ),
        ("curl", "wget", "iwr", "irm", "invoke-", "iex"),
    ),
    _Rule(
        "warning",
        "link_with_credentials",
        "has an address with a user name and a password",
        re.compile(r"://[^\s/@:$<{*\"']{1,100}:[^\s/@$<{*\"']{1,200}@[\w.-]"),
        ("://",),
    ),
    _Rule(
        "warning",
        "embedded_data",
        "has a data: address with much encoded data, which people cannot read",
        re.compile(r"data:[\w.+/-]{0,100}(?:;[\w=-]{1,50}){0,3};base64,[A-Za-z0-9+/=]{1000}"),
        ("data:",),
    ),
)

_SCRIPT_EXTENSIONS: Final = frozenset(
    {".bash", ".bat", ".cmd", ".js", ".mjs", ".php", ".pl", ".ps1", ".py", ".rb", ".sh", ".ts", ".vbs", ".zsh"}
)


def scan(files: Mapping[str, str]) -> tuple[Finding, ...]:
    """The findings in the files of a skill, SKILL.md included, sorted by path and line."""
    found = [finding for path, text in files.items() for finding in _scan_file(path, text)]
    return tuple(sorted(found, key=lambda each: (each.path, each.line, each.code)))


def _scan_file(path: str, text: str) -> Iterator[Finding]:
    if f".{path.rpartition('.')[2].lower()}" in _SCRIPT_EXTENSIONS or text.startswith("#!"):
        yield Finding("info", "script", "is a script; it is stored as text and never run", path, 1)
    for secret in islice(leaked_secrets(text), MAX_FINDINGS):
        yield Finding("critical", "secret", f"has {secret.kind}; revoke it", path, _line(text, secret.position))
    lowered = text.lower()
    for rule in _RULES:
        if not rule.words or any(word in lowered for word in rule.words):
            for match in islice(rule.pattern.finditer(text), MAX_FINDINGS):
                yield Finding(rule.severity, rule.code, rule.message, path, _line(text, match.start()))


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
