"""Keys: those that a server accepts from its callers, and those that the supervisor sends to the servers behind it.

The supervisor has named keys for its callers. The servers behind it, remote agents and a knowledge base, have keys of
their own. A key of the supervisor opens them only if the settings say so.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from ai_platform_engineering.settings import MIN_KEY_LENGTH, Settings, SettingsError
from ai_platform_engineering.settings.named_keys import NamedKey, parse_agent_keys, parse_keys

logger = logging.getLogger(__name__)

Place = Literal["front", "behind"]
"""`front` is the supervisor, `behind` are the servers that it calls."""

SHARED_KEY: Final = "shared"
"""The name of `A2A_AUTH_SHARED_KEY` among the keys of the supervisor."""


class Key(NamedTuple):
    """A key and the setting that holds it."""

    setting: str
    value: str


def supervisor_keys(settings: Settings) -> tuple[NamedKey, ...]:
    """The keys that callers of the supervisor may send, the shared key first."""
    shared = settings.a2a_auth_shared_key
    first = (NamedKey(SHARED_KEY, "admin", shared.get_secret_value()),) if shared is not None else ()
    return (*first, *parse_keys(settings.a2a_auth_keys))


def sent_key(keys: Sequence[NamedKey], sent: str) -> NamedKey | None:
    """The key that a caller has sent. Every key is compared, so the time does not depend on the position."""
    # A JSON string may contain surrogates, which UTF-8 cannot encode.
    given = sent.encode(errors="surrogatepass")
    found = [key for key in keys if hmac.compare_digest(given, key.value.encode())]
    return found[0] if found else None


def opening_key(settings: Settings, agent: str | None = None) -> Key | None:
    """The key of a server behind the supervisor; None if it has none. `agent` is its name, if it is the server of an
    agent."""
    own = parse_agent_keys(settings.a2a_agent_keys).get(agent or "")
    if own is not None:
        return Key("A2A_AGENT_KEYS", own)
    if settings.a2a_agents_auth_key is not None:
        return Key("A2A_AGENTS_AUTH_KEY", settings.a2a_agents_auth_key.get_secret_value())
    if settings.a2a_agents_share_key and settings.a2a_auth_shared_key is not None:
        return Key("A2A_AUTH_SHARED_KEY", settings.a2a_auth_shared_key.get_secret_value())
    return None


def required_key(settings: Settings, agent: str | None = None) -> Key | None:
    """The key that a server behind the supervisor requires from its callers; None if it requires none.

    Raises `SettingsError` if the only key is that of the supervisor, which must open nothing else.
    """
    key = opening_key(settings, agent)
    if key is None and settings.a2a_auth_shared_key is not None and settings.a2a_oauth_issuer is None:
        raise SettingsError(
            "A2A_AUTH_SHARED_KEY is the key of the supervisor and does not open the servers behind it. Set "
            "A2A_AGENTS_AUTH_KEY to a key of their own, at the supervisor and here, or A2A_AGENTS_SHARE_KEY=true to "
            "use one key for all."
        )
    return key


def is_opened_by_key(settings: Settings, place: Place, agent: str | None = None) -> bool:
    return bool(supervisor_keys(settings)) if place == "front" else opening_key(settings, agent) is not None


def check_exposure(settings: Settings, place: Place, address: str, agent: str | None = None) -> None:
    """Raise `SettingsError` if other machines can reach the bound `address` and callers need no key, or may
    send a token for another service."""
    accepts_all = settings.a2a_oauth_issuer is not None and settings.a2a_oauth_audience is None
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback or settings.allow_anonymous:
        if accepts_all:
            logger.warning(
                "Access tokens of A2A_OAUTH_ISSUER that were issued for any other service are accepted. Set "
                "A2A_OAUTH_AUDIENCE to the audience of this server's tokens."
            )
        return
    if accepts_all:
        raise SettingsError(
            f"Other machines can reach {address}, and access tokens of A2A_OAUTH_ISSUER that were issued for any other "
            "service would be accepted. Set A2A_OAUTH_AUDIENCE to the audience of this server's tokens, or to * to "
            "accept them all."
        )
    if is_opened_by_key(settings, place, agent) or settings.a2a_oauth_issuer is not None:
        return
    key = "A2A_AGENTS_AUTH_KEY" if place == "behind" else "A2A_AUTH_SHARED_KEY"
    raise SettingsError(
        f"Other machines can reach {address}, and callers need no key. Set {key} (at least {MIN_KEY_LENGTH} "
        "characters) or A2A_OAUTH_ISSUER, listen on 127.0.0.1, or set ALLOW_ANONYMOUS=true to allow anonymous callers."
    )
