"""Requests to remote agents: card, tools, self-check.

An unreachable agent is a result with a reason, not an exception.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import httpx

from ai_platform_engineering.multi_agents.placement import AgentEntry
from ai_platform_engineering.utils.connections import reason_of
from ai_platform_engineering.utils.outbound.policy import OPERATOR
from ai_platform_engineering.utils.outbound.transport import CheckedTransport

# The second path is that of protocol versions before 0.3.
CARD_PATHS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")

_MAX_CARD_SIZE: Final = 1_000_000


Tokens = Mapping[str, str | None]
"""Bearer values by agent."""
_NO_TOKENS: Final[Tokens] = MappingProxyType({})

ToolRow = Mapping[str, Any]
"""One entry of an agent's `/tools` response."""


@dataclass(frozen=True)
class Reachability:
    """Result of one check: data of the agent's card, or the reason why it could not be read."""

    ok: bool
    reason: str | None = None
    card_name: str | None = None
    card_description: str | None = None
    skills: tuple[str, ...] = ()
    protocol_version: str | None = None
    elapsed: float = 0.0


class _NoCardError(Exception):
    """The response is not an agent card. The text is the reason."""


def new_client() -> httpx.AsyncClient:
    """Create the client for checks. Reuse it: the first https request of each loads all trusted certificates and blocks
    the event loop."""
    # No keep-alive: a request on a reused connection could race with the agent closing it.
    return httpx.AsyncClient(
        transport=CheckedTransport(OPERATOR, limits=httpx.Limits(max_keepalive_connections=0)), follow_redirects=False
    )


async def probe(
    entry: AgentEntry, client: httpx.AsyncClient, *, timeout: float, auth_token: str | None = None
) -> Reachability:
    """Read the agent's card within `timeout` seconds."""
    if entry.address is None:
        return Reachability(False, "it has no address")
    started = time.monotonic()
    try:
        async with asyncio.timeout(timeout):
            card = await _fetch_card(client, entry.address, auth_token)
        return _reachable(card, time.monotonic() - started)
    except TimeoutError:
        return Reachability(False, f"no answer within {timeout:g} s", elapsed=time.monotonic() - started)
    except Exception as error:  # a failure of one agent must not affect the others
        reason = str(error) if isinstance(error, _NoCardError) else reason_of(error)
        return Reachability(False, reason, elapsed=time.monotonic() - started)


async def probe_all(
    entries: Iterable[AgentEntry], client: httpx.AsyncClient, *, deadline: float, tokens: Tokens = _NO_TOKENS
) -> dict[str, Reachability]:
    """Check all agents in parallel within `deadline` seconds. `tokens` are the bearer values by agent."""
    entries = list(entries)
    results = await asyncio.gather(
        *(probe(entry, client, timeout=deadline, auth_token=tokens.get(entry.name)) for entry in entries)
    )
    return {entry.name: result for entry, result in zip(entries, results, strict=True)}


async def remote_tools(
    entry: AgentEntry, client: httpx.AsyncClient, *, timeout: float, auth_token: str | None = None
) -> tuple[ToolRow, ...] | None:
    """The tools that the agent lists at `/tools`, or None. Agents of other products have no such route."""
    match await _get_json(entry, client, "/tools", timeout, auth_token):
        case {"tools": list(rows)}:
            return tuple(row for row in rows if isinstance(row, dict) and _text(row.get("name")))
        case _:
            return None


async def remote_check(
    entry: AgentEntry, client: httpx.AsyncClient, *, timeout: float, auth_token: str | None = None
) -> str | None:
    """Problems that the agent reports at `/check`, or None. Agents of other products have no such route."""
    match await _get_json(entry, client, "/check", timeout, auth_token):
        case {"problems": [str(first), *others]}:
            return " ".join([first, *(other for other in others if isinstance(other, str))])
        case _:
            return None


async def _get_json(
    entry: AgentEntry, client: httpx.AsyncClient, path: str, timeout: float, auth_token: str | None
) -> object:
    """The JSON response of a path on the agent's server, or None if there is none."""
    try:
        async with asyncio.timeout(timeout), _get(client, entry.address or "", path, auth_token) as response:
            if response.status_code != httpx.codes.OK:
                return None
            return json.loads(await _limited_body(response))
    except Exception:  # the route is optional
        return None


def _get(
    client: httpx.AsyncClient, address: str, path: str, auth_token: str | None
) -> AbstractAsyncContextManager[httpx.Response]:
    base = httpx.URL(address)
    return client.stream(
        "GET",
        # Without the password: httpx logs the URL of every request.
        base.copy_with(userinfo=b"", path=base.path.rstrip("/") + path),
        headers={"Authorization": f"Bearer {auth_token}"} if auth_token else {},
        auth=httpx.BasicAuth(base.username, base.password) if base.userinfo else None,
        # The caller sets the timeout.
        timeout=None,
    )


async def _fetch_card(client: httpx.AsyncClient, address: str, auth_token: str | None) -> Mapping[str, Any]:
    for path in CARD_PATHS:
        async with _get(client, address, path, auth_token) as response:
            if response.status_code == httpx.codes.NOT_FOUND:
                continue
            if response.status_code != httpx.codes.OK:
                raise _NoCardError(f"HTTP {response.status_code}")
            return _parse_card(await _limited_body(response))
    raise _NoCardError("no agent card there (HTTP 404)")


async def _limited_body(response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > _MAX_CARD_SIZE:
            raise _NoCardError("not an agent card")
    return bytes(body)


def _parse_card(body: bytes) -> Mapping[str, Any]:
    try:
        card = json.loads(body)
    except (ValueError, RecursionError):
        card = None
    match card:
        case {"name": str(), "url": str()} | {"name": str(), "supportedInterfaces": list()}:
            return dict(card)
        case _:
            raise _NoCardError("not an agent card")


def _reachable(card: Mapping[str, Any], elapsed: float) -> Reachability:
    skills = card.get("skills")
    names = (
        [_text(skill.get("name")) for skill in skills if isinstance(skill, dict)] if isinstance(skills, list) else []
    )
    return Reachability(
        ok=True,
        card_name=card["name"],
        card_description=_text(card.get("description")),
        skills=tuple(name for name in names if name),
        protocol_version=_protocol_version(card),
        elapsed=elapsed,
    )


def _protocol_version(card: Mapping[str, Any]) -> str | None:
    interfaces = card.get("supportedInterfaces")
    offered = [card, *interfaces] if isinstance(interfaces, list) else [card]
    versions = [_text(item.get("protocolVersion")) for item in offered if isinstance(item, dict)]
    return max((version for version in versions if version), key=_version_order, default=None)


def _version_order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"[0-9]{1,9}", version))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
