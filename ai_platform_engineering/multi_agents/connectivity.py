"""Connectivity: asks a remote agent for its card. A probe never raises; what went wrong is a short reason."""

from __future__ import annotations

import asyncio
import errno
import json
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx

from ai_platform_engineering.multi_agents.placement import AgentEntry

# The second is where agents of protocol versions before 0.3 keep it.
CARD_PATHS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")

_LARGEST_CARD: Final = 1_000_000

_REASONS: Final[Sequence[tuple[type[Exception], str]]] = (
    (ssl.SSLCertVerificationError, "its TLS certificate is not trusted"),
    (ssl.SSLError, "no TLS connection"),
    (socket.gaierror, "host name not found"),
    (httpx.TimeoutException, "no answer in time"),
    (httpx.RemoteProtocolError, "the connection was closed without an answer"),
    (httpx.ReadError, "the connection was closed without an answer"),
)
_ERRNO_REASONS: Final = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "host unreachable",
    errno.ENETUNREACH: "host unreachable",
}


@dataclass(frozen=True)
class Reachability:
    """What one probe found: the agent's card, or the reason why there is none."""

    ok: bool
    reason: str | None = None
    card_name: str | None = None
    card_description: str | None = None
    skills: tuple[str, ...] = ()
    protocol_version: str | None = None
    elapsed: float = 0.0


class _NoCardError(Exception):
    """The answer is not an agent card; the text is the reason."""


async def probe(
    entry: AgentEntry,
    *,
    timeout: float,
    auth_token: str | None = None,
    client: httpx.AsyncClient | None = None,
) -> Reachability:
    """Look for the agent at its address, for at most `timeout` seconds."""
    if client is None:
        async with httpx.AsyncClient() as own_client:
            return await probe(entry, timeout=timeout, auth_token=auth_token, client=own_client)
    if entry.address is None:
        return Reachability(False, "it has no address")
    started = time.monotonic()
    try:
        async with asyncio.timeout(timeout):
            card = await _fetch_card(client, entry.address, auth_token)
    except TimeoutError:
        return Reachability(False, f"no answer within {timeout:g} s", elapsed=time.monotonic() - started)
    except (_NoCardError, httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        return Reachability(False, reason_of(error), elapsed=time.monotonic() - started)
    return _reachable(card, time.monotonic() - started)


async def probe_all(
    entries: Iterable[AgentEntry], deadline: float, auth_token: str | None = None
) -> dict[str, Reachability]:
    """Look for all agents at once; the whole takes at most `deadline` seconds."""
    entries = list(entries)
    if not entries:
        return {}
    async with httpx.AsyncClient() as client:
        results = await asyncio.gather(
            *(probe(entry, timeout=deadline, auth_token=auth_token, client=client) for entry in entries)
        )
    return {entry.name: result for entry, result in zip(entries, results, strict=True)}


def reason_of(error: BaseException) -> str:
    """Why a connection failed, in words that name nothing internal."""
    for cause in _causes(error):
        if isinstance(cause, _NoCardError):
            return str(cause)
        for kind, reason in _REASONS:
            if isinstance(cause, kind):
                return reason
        if isinstance(cause, OSError) and cause.errno in _ERRNO_REASONS:
            return _ERRNO_REASONS[cause.errno]
    return "no connection"


async def _fetch_card(client: httpx.AsyncClient, address: str, auth_token: str | None) -> Mapping[str, Any]:
    headers = {"Authorization": f"Bearer {auth_token}"} if auth_token else {}
    for path in CARD_PATHS:
        # The deadline of the whole probe is the only one that counts.
        async with client.stream("GET", address + path, headers=headers, timeout=None) as response:
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
        if len(body) > _LARGEST_CARD:
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
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """`error` and everything it was raised from, also the members of groups."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        waiting += [current.__context__, current.__cause__]
        if isinstance(current, BaseExceptionGroup):
            waiting += current.exceptions
