"""Detection of credentials in a text, by the formats that their issuers document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class LeakedSecret:
    """A credential found at `position`, without its value. `kind` completes "the file has"."""

    kind: str
    position: int


# Kind, a substring that is searched for first because that is fast, and the full pattern.
_TOKENS: Final = tuple(
    (kind, prefix, re.compile(rf"(?<![\w-]){pattern}(?![\w-])"))
    for kind, prefix, pattern in (
        ("an AWS access key", "AKIA", r"AKIA[0-9A-Z]{16}"),
        ("an AWS access key", "ASIA", r"ASIA[0-9A-Z]{16}"),
        ("a GitHub token", "gh", r"gh[opusr]_[0-9A-Za-z]{36,255}"),
        ("a GitHub token", "github_pat_", r"github_pat_\w{40,255}"),
        ("a GitLab token", "gl", r"gl(?:pat|dt|rt|cbt|ptt|soat)-[\w.-]{20,255}"),
        ("a Slack token", "xox", r"xox[abeoprs]-[0-9A-Za-z-]{20,255}"),
        ("a Slack token", "xapp-", r"xapp-[0-9A-Za-z-]{20,255}"),
        ("a Google API key", "AIza", r"AIza[\w-]{35}"),
        ("a Google access token", "ya29.", r"ya29\.[\w-]{20,2000}"),
        ("a key of a model provider", "sk-", r"sk-(?:ant-|proj-|svcacct-|or-v1-|lf-)?[\w-]{32,255}"),
        ("a Stripe key", "k_live_", r"[rs]k_live_[0-9A-Za-z]{16,255}"),
        ("an npm token", "npm_", r"npm_[0-9A-Za-z]{36}"),
        ("a PyPI token", "pypi-", r"pypi-AgE[\w-]{50,500}"),
        ("a Hugging Face token", "hf_", r"hf_[0-9A-Za-z]{30,255}"),
        ("a DigitalOcean token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
        ("a SendGrid key", "SG.", r"SG\.[\w-]{16,32}\.[\w-]{16,64}"),
        ("an Atlassian token", "ATATT3", r"ATATT3[\w=-]{50,500}"),
        ("a Grafana token", "glsa_", r"glsa_[0-9A-Za-z]{32}_[0-9a-f]{8}"),
        ("a Vault token", "hvs.", r"hvs\.[\w-]{24,500}"),
        ("a Databricks token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
        ("a Slack webhook", "hooks.slack.com/", r"hooks\.slack\.com/services/T\w{6,20}/B\w{6,20}/\w{16,40}"),
    )
)
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY: Final = re.compile(r"[A-Za-z0-9+/=]{40}")
# Encrypted keys have headers before the body.
_KEY_WINDOW: Final = 400

_PLACEHOLDER: Final = re.compile(r"example|x{4}|your|placeholder|redacted|dummy|0{6}|\*{3}", re.IGNORECASE)
_MIN_DISTINCT_CHARACTERS: Final = 8


def leaked_secrets(text: str) -> Iterator[LeakedSecret]:
    """The credentials in `text`, except placeholders as used in documentation."""
    for found in _PRIVATE_KEY.finditer(text):
        if _KEY_BODY.search(text, found.end(), found.end() + _KEY_WINDOW):
            yield LeakedSecret("a private key", found.start())
    for kind, prefix, pattern in _TOKENS:
        if prefix not in text:
            continue
        for found in pattern.finditer(text):
            if not _PLACEHOLDER.search(found[0]) and len(set(found[0])) >= _MIN_DISTINCT_CHARACTERS:
                yield LeakedSecret(kind, found.start())
