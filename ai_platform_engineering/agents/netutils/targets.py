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
from ai_platform_engineering.utils.outbound.addresses import Address, host_name, host_of, literal, resolve
from ai_platform_engineering.utils.outbound.policy import OutboundPolicy, RefusedError


@dataclass(frozen=True)
class Limits:
    """The limits of one call, from the settings."""

    timeout: float
    allow_private: bool
    dns_server: str | None

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        return cls(settings.netutils_timeout, settings.netutils_allow_private, settings.netutils_dns_server)

    @property
    def policy(self) -> OutboundPolicy:
        return OutboundPolicy(variables="NETUTILS", allow_private=self.allow_private)

    async def resolve(self, name: str) -> Sequence[Address]:
        """Resolve a name with the DNS server of the settings, if there is one. Raises `ToolError` after the timeout."""
        try:
            async with asyncio.timeout(self.timeout):
                if self.dns_server is None:
                    return await resolve(name)
                from ai_platform_engineering.agents.netutils import lookups  # noqa: PLC0415 - imports a large library

                return await lookups.addresses_of(name, self)
        except TimeoutError:
            raise ToolError(f"{name} could not be resolved within {self.timeout:g} seconds.") from None


@dataclass(frozen=True)
class Target:
    """A host name in ASCII, or an address, and the addresses of it that may be contacted."""

    host: str
    addresses: tuple[Address, ...]


async def find_target(host: str, limits: Limits) -> Target:
    """Resolve a host. Raises `ToolError` if none of its addresses may be contacted."""
    known = host_of(host) or ascii_name(host)
    given = literal(known)
    found = await limits.resolve(known) if given is None else [given]
    try:
        return Target(known, tuple(limits.policy.checked(known, found)))
    except RefusedError as error:
        raise ToolError(str(error)) from None


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
