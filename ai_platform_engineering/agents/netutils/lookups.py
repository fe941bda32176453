"""DNS lookups. The module is imported by the first lookup, because its library is large."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import TYPE_CHECKING

import dns.asyncresolver
import dns.exception
import dns.resolver

from ai_platform_engineering.mcp.tool_server import ToolError
from ai_platform_engineering.utils.outbound.addresses import Address, literal

if TYPE_CHECKING:
    # `targets` imports this module for its first lookup.
    from ai_platform_engineering.agents.netutils.targets import Limits


async def records_of(name: str, record_type: str, limits: Limits) -> tuple[list[str], int | None]:
    """The records of a name and their time to live. A name without records gives an empty list."""
    try:
        answer = await _resolver(limits).resolve(name, record_type)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return [], None
    except dns.exception.Timeout:
        raise ToolError(f"No DNS server answered for {name} within {limits.timeout:g} seconds.") from None
    except dns.exception.DNSException as error:
        raise ToolError(f"The DNS lookup of {name} failed: {type(error).__name__}.") from error
    return sorted(record.to_text() for record in answer), None if answer.rrset is None else answer.rrset.ttl


async def addresses_of(name: str, limits: Limits) -> list[Address]:
    """The IPv4 and IPv6 addresses of a name; empty if there are none, or if the lookup fails."""
    resolver = _resolver(limits)

    async def ask(record_type: str) -> list[Address]:
        try:
            answer = await resolver.resolve(name, record_type)
        except dns.exception.DNSException:
            return []
        return [ipaddress.ip_address(record.to_text()) for record in answer]

    return [address for found in await asyncio.gather(ask("A"), ask("AAAA")) for address in found]


def _resolver(limits: Limits) -> dns.asyncresolver.Resolver:
    """A resolver for the server in the settings, otherwise for the servers of the system."""
    try:
        resolver = dns.asyncresolver.Resolver(configure=limits.dns_server is None)
    except dns.resolver.NoResolverConfiguration:
        raise ToolError("This machine has no DNS server configured. Set NETUTILS_DNS_SERVER.") from None
    if limits.dns_server is not None:
        address, port = _address_and_port(limits.dns_server)
        resolver.nameservers = [address]
        resolver.port = port
    resolver.lifetime = limits.timeout
    return resolver


def _address_and_port(server: str) -> tuple[str, int]:
    if literal(server) is not None:
        return server, 53
    address, _, port = server.rpartition(":")
    return (address.strip("[]"), int(port)) if literal(address.strip("[]")) else (server.strip("[]"), 53)
