"""Parses `A2A_AUTH_KEYS` (`name:role:key`) and `A2A_AGENT_KEYS` (`agent:key`). Error texts contain no key."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from pydantic import SecretStr

from ai_platform_engineering.settings.fields import MIN_KEY_LENGTH

KeyRole = Literal["user", "bot", "admin"]

_KEY: Final = rf"at least {MIN_KEY_LENGTH} characters without spaces or commas"
ALLOWED_KEYS: Final = f"name:role:key, comma-separated; roles: {', '.join(get_args(KeyRole))}; a key has {_KEY}"
ALLOWED_AGENT_KEYS: Final = f"agent:key, comma-separated; a key has {_KEY}"

_ROLES: Final[dict[str, KeyRole]] = {role: role for role in get_args(KeyRole)}
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_VALUE: Final = re.compile(rf"[\x21-\x2b\x2d-\x7e]{{{MIN_KEY_LENGTH},}}")


@dataclass(frozen=True, slots=True)
class NamedKey:
    """A key of the supervisor: who uses it, and what for."""

    name: str
    role: KeyRole
    value: str = field(repr=False)


def parse_keys(setting: SecretStr | None) -> tuple[NamedKey, ...]:
    """Raises `ValueError` if an entry is not valid, or a name or a key is given twice."""
    keys = []
    for name, rest in _entries(setting):
        role, _, value = rest.partition(":")
        if role not in _ROLES:
            raise ValueError("not a role")
        keys.append(NamedKey(name, _ROLES[role], _checked(value)))
    _check_unique([key.name for key in keys])
    _check_unique([key.value for key in keys])
    return tuple(keys)


def parse_agent_keys(setting: SecretStr | None) -> dict[str, str]:
    """The keys by agent. Raises `ValueError` if an entry is not valid, or an agent or a key is given twice."""
    keys = [(name.replace("-", "_"), _checked(value)) for name, value in _entries(setting)]
    _check_unique([name for name, _ in keys])
    _check_unique([value for _, value in keys])
    return dict(keys)


def valid_keys(setting: SecretStr | None) -> SecretStr | None:
    parse_keys(setting)
    return setting


def valid_agent_keys(setting: SecretStr | None) -> SecretStr | None:
    parse_agent_keys(setting)
    return setting


def _entries(setting: SecretStr | None) -> list[tuple[str, str]]:
    text = setting.get_secret_value() if setting is not None else ""
    entries = []
    for entry in filter(None, map(str.strip, text.split(","))):
        name, _, rest = entry.partition(":")
        if not _NAME.fullmatch(name):
            raise ValueError("not a name")
        entries.append((name, rest))
    return entries


def _checked(value: str) -> str:
    if not _VALUE.fullmatch(value):
        raise ValueError("not a key")
    return value


def _check_unique(values: list[str]) -> None:
    if len(set(values)) < len(values):
        raise ValueError("given twice")
