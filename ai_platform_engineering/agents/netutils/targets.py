"""Targets: resolves a host name or an address to addresses that may be contacted.

A name is resolved first, and then its addresses are checked. Callers connect to one of the returned addresses and never
resolve the name again, so that a changed DNS record cannot bypass the check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from ai_platform_engineering.mcp.tool_server import ToolError
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils import addresses
from ai_platform_engineering.utils.addresses import Address, host_name, literal


@dataclass(frozen=True)
class Limits:
    """The limits of one call, from the settings."""

    timeout: float
    allow_private: bool
    dns_server: str | None

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        return cls(settings.netutils_timeout, settings.netutils_allow_private, settings.netutils_dns_server)


@dataclass(frozen=True)
class Target:
    """A host name in ASCII, or an address, and the addresses of it that may be contacted."""

    host: str
    addresses: tuple[Address, ...]


async def find_target(host: str, limits: Limits) -> Target:
    """Resolve a host. Raises `ToolError` if none of its addresses may be contacted."""
    name = host.strip().removeprefix("[").removesuffix("]")
    given = literal(name)
    if given is None:
        name = ascii_name(name)
        found: Sequence[Address] = await _resolve(name, limits)
    else:
        name, found = str(given), [given]
    reasons = {address: refusal(address, allow_private=limits.allow_private) for address in found}
    reachable = tuple(address for address in found if reasons[address] is None)
    if not reachable:
        address, reason = next(iter(reasons.items()))
        place = str(address) if given else f"{name} ({address})"
        raise ToolError(f"{place} was not contacted: it is {reason}.")
    return Target(name, reachable)


def refusal(address: Address, *, allow_private: bool) -> str | None:
    """The reason why an address must not be contacted, or None."""
    return addresses.refusal(address, allow_private=allow_private, allowed_by="NETUTILS_ALLOW_PRIVATE")


def is_address(text: str) -> bool:
    return literal(text.strip()) is not None


def parse_address(text: str) -> Address:
    address = literal(text.strip().removeprefix("[").removesuffix("]"))
    if address is None:
        raise ToolError(f"{text!r} is not an IP address. Give one such as 192.0.2.7 or 2001:db8::7.")
    return address


def ascii_name(name: str) -> str:
    """A host name as it is sent to DNS: international names in ASCII, without a final dot."""
    if (encoded := host_name(name)) is None:
        raise ToolError(f"{name!r} is not a host name. Give one such as www.example.com, without a scheme or a path.")
    return encoded


async def _resolve(name: str, limits: Limits) -> Sequence[Address]:
    lookup = addresses.resolve(name) if limits.dns_server is None else _ask_server(name, limits)
    try:
        async with asyncio.timeout(limits.timeout):
            found = await lookup
    except TimeoutError:
        raise ToolError(f"{name} could not be resolved within {limits.timeout:g} seconds.") from None
    if not found:
        raise ToolError(f"{name} has no address: no such name, or no DNS server knows it.")
    return found


async def _ask_server(name: str, limits: Limits) -> Sequence[Address]:
    from ai_platform_engineering.agents.netutils import lookups  # noqa: PLC0415

    return await lookups.addresses_of(name, limits)
