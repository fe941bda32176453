"""Redaction: removes credentials from text that people see or files store.

`redact` finds credentials by their format, `KnownSecrets` the values of this process's settings, and a `Redactor` both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from pydantic import SecretStr

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.settings.named_keys import parse_agent_keys, parse_keys

MASK: Final = "***"

# Shorter values ("yes", "8000") would match ordinary words. A masked word does less harm in a log than in a result.
MIN_SECRET_LENGTH: Final = 8
_MIN_LOGGED_LENGTH: Final = 6

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


class KnownSecrets:
    """Masks given values wherever they occur in a text, and nothing else."""

    def __init__(self, values: Iterable[str] = (), *, min_length: int = MIN_SECRET_LENGTH) -> None:
        stripped = {value.strip() for value in values}
        # As they are written in addresses and in JSON.
        forms = {form for value in stripped for form in (value, quote(value, safe=""), json.dumps(value)[1:-1])}
        # Longest first: a credential may contain another one.
        self._values = sorted((form for form in forms if len(form) >= min_length), key=len, reverse=True)

    @classmethod
    def of(cls, settings: Settings) -> KnownSecrets:
        return cls(secret_values(settings))

    def __bool__(self) -> bool:
        return bool(self._values)

    def __call__(self, text: str) -> str:
        for value in self._values:
            # `in` is much faster than `replace` for a text without the value.
            if value in text:
                text = text.replace(value, MASK)
        return text

    def masked(self, value: Any) -> Any:
        """`value` with its texts masked: a text, or a list, tuple, dict or dataclass with texts."""
        match value:
            case str():
                return self(value)
            case list() | tuple():
                return type(value)(map(self.masked, value))
            case dict():
                return {name: self.masked(inner) for name, inner in value.items()}
            case _ if is_dataclass(value) and not isinstance(value, type):
                inner = {field.name: getattr(value, field.name) for field in fields(value)}
                changed = {name: after for name, before in inner.items() if (after := self.masked(before)) != before}
                return replace(value, **changed) if changed else value
            case _:
                return value

    def split(self, text: str) -> tuple[str, str]:
        """Split a streamed text: the beginning, masked, and the end, which the next piece may complete to a secret."""
        end = min((self._tail(text, value) for value in self._values), default=len(text))
        while (start := min((_across(text, value, end) for value in self._values), default=end)) < end:
            end = start
        return self(text[:end]), text[end:]

    @staticmethod
    def _tail(text: str, value: str) -> int:
        """Where the longest end of `text` starts with which `value` begins."""
        start = text.find(value[0], max(0, len(text) - len(value) + 1))
        while start >= 0 and not value.startswith(text[start:]):
            start = text.find(value[0], start + 1)
        return len(text) if start < 0 else start


class Redactor:
    """Redacts the given values wherever they occur, and everything `redact` finds."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known = KnownSecrets(secrets, min_length=_MIN_LOGGED_LENGTH)

    @classmethod
    def of(cls, settings: Settings) -> Redactor:
        return cls(secret_values(settings))

    def __call__(self, text: str) -> str:
        return redact(self._known(text))


def secret_values(settings: Settings) -> Iterator[str]:
    """The values of secret settings, those of variables whose names look secret, and the passwords in addresses."""
    secrets = [value.get_secret_value() for _, value in settings if isinstance(value, SecretStr)]
    secrets += (value for variable, value in settings.environ.items() if looks_secret(variable))
    yield from secrets
    yield from (key.value for key in parse_keys(settings.a2a_auth_keys))
    yield from parse_agent_keys(settings.a2a_agent_keys).values()
    for address in (*secrets, *settings.environ.values()):
        password = password_in(address)
        # A password like `postgres` is also a name: without it, the text about the database would lose its words.
        if password and password not in address.replace(f":{password}@", "@"):
            yield from (password, unquote(password))


def password_in(address: str) -> str | None:
    """The password in an address such as `https://user:password@host`."""
    if "://" not in address:
        return None
    try:
        return urlsplit(address).password
    except ValueError:
        return None


def _across(text: str, value: str, end: int) -> int:
    """Where `value` begins in `text`, if it begins before `end` and ends after it; otherwise `end`."""
    start = text.find(value, max(0, end - len(value) + 1), end + len(value) - 1)
    return end if start < 0 else start
