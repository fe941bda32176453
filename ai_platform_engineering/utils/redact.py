"""Redaction: removes credentials from text that people see or files store.

`redact` finds credentials by their format; a `Redactor` also finds the values of this process's settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

MASK: Final = "***"

# Shorter values ("yes", "8000") would match ordinary words.
_MIN_SECRET_LENGTH: Final = 6

_SECRET_WORDS: Final = frozenset(
    {"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "PAT", "APIKEY"}
)
_PLAIN_ENDINGS: Final = frozenset({"URL", "URI", "ENDPOINT", "PATH", "FILE", "DIR", "NAME", "TYPE", "TIMEOUT", "TTL"})

_PATTERNS: Final = (
    # user:password@ in an address
    (re.compile(r"(?P<keep>\b[a-z][a-z0-9+.-]{0,20}://)[^\s/?#\"']*@", re.IGNORECASE), rf"\g<keep>{MASK}@"),
    (re.compile(r"(?P<keep>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE), rf"\g<keep>{MASK}"),
    # password=..., "api_key": "...", --token ...
    (
        re.compile(
            r"(?P<keep>(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)"
            r"(?:\\?[\"'])?\s*[=:]\s*(?:\\?[\"'])?)(?!\*\*\*)[^\s\"'\\,;&}\])]{4,}",
            re.IGNORECASE,
        ),
        rf"\g<keep>{MASK}",
    ),
    # The cookie of a browser's session
    (re.compile(r"(?P<keep>\bplatform-engineer-session[\w-]*=)[^\s\"';,]+"), rf"\g<keep>{MASK}"),
    # Formats that are credentials in any context: JSON web tokens, GitHub, GitLab, Slack, OpenAI-like, AWS.
    (
        re.compile(
            r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
            r"|\b(?:gh[opusr]_|github_pat_|glpat-|xox[abeoprs]-|xapp-|sk-)[\w-]{10,}"
            r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
        ),
        MASK,
    ),
)


def redact(text: str) -> str:
    """`text` without anything that looks like a credential."""
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def looks_secret(variable: str) -> bool:
    """Whether the name of a variable indicates that its value is a credential."""
    words = variable.upper().split("_")
    return words[-1] not in _PLAIN_ENDINGS and not _SECRET_WORDS.isdisjoint(words)


class Redactor:
    """Redacts the given values wherever they occur, and everything `redact` finds."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        values = {secret.strip() for secret in secrets}
        # Longest first: a credential may begin with another one.
        known = sorted((value for value in values if len(value) >= _MIN_SECRET_LENGTH), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Redactor:
        """A redactor for the values of the variables whose names look secret."""
        return cls(value for variable, value in environ.items() if looks_secret(variable))

    def __call__(self, text: str) -> str:
        return redact(self._known.sub(MASK, text) if self._known else text)
