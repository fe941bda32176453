"""Shared keys: which key a server requires from its callers.

The supervisor has a key for its callers. The servers behind it, remote agents and a knowledge base, have another one,
which the supervisor sends. Both are the same only if the settings say so.
"""

from __future__ import annotations

import ipaddress
from typing import Literal, NamedTuple

from ai_platform_engineering.settings import MIN_KEY_LENGTH, Settings, SettingsError

Place = Literal["front", "behind"]
"""`front` is the supervisor, `behind` are the servers that it calls."""


class Key(NamedTuple):
    """A key and the setting that holds it."""

    setting: str
    value: str


def opening_key(settings: Settings, place: Place) -> Key | None:
    """The key that callers of a server must send; None if it requires none."""
    if place == "behind" and settings.a2a_agents_auth_key is not None:
        return Key("A2A_AGENTS_AUTH_KEY", settings.a2a_agents_auth_key.get_secret_value())
    if settings.a2a_auth_shared_key is not None:
        return Key("A2A_AUTH_SHARED_KEY", settings.a2a_auth_shared_key.get_secret_value())
    return None


def agents_key(settings: Settings) -> Key | None:
    """The key that the supervisor sends to the servers behind it; None if there is none for them."""
    if settings.a2a_agents_auth_key is None and not settings.a2a_agents_share_key:
        return None
    return opening_key(settings, "behind")


def check_exposure(settings: Settings, place: Place, address: str) -> None:
    """Raise `SettingsError` if other machines can reach the bound `address` and callers need no key."""
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback or settings.allow_anonymous:
        return
    if opening_key(settings, place) is not None or settings.a2a_oauth_issuer is not None:
        return
    key = "A2A_AGENTS_AUTH_KEY" if place == "behind" else "A2A_AUTH_SHARED_KEY"
    raise SettingsError(
        f"Other machines can reach {address}, and callers need no key. Set {key} (at least {MIN_KEY_LENGTH} "
        "characters) or A2A_OAUTH_ISSUER, listen on 127.0.0.1, or set ALLOW_ANONYMOUS=true to allow anonymous callers."
    )
