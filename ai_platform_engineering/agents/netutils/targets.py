"""Targets: from the name or address a person gives to addresses that may be reached.

A name is resolved first and its addresses are judged afterwards; callers connect to an address they got from here and
never resolve again, so a name cannot point elsewhere in between.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

import dns.asyncresolver
import dns.exception
import dns.resolver
import idna
from fastmcp.exceptions import ToolError

from ai_platform_engineering.settings import Settings

Address = IPv4Address | IPv6Address

NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# Answers on these hand out the credentials of the machine, so they stay shut where private addresses are allowed.
METADATA = frozenset({IPv4Address("169.254.169.254"), IPv6Address("fd00:ec2::254")})
MOST_ADDRESSES = 3
"""How many addresses of one host are tried."""
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")


@dataclass(frozen=True)
class Limits:
    """What one call may do."""

    timeout: float
    allow_private: bool
    dns_server: str | None

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        return cls(settings.netutils_timeout, settings.netutils_allow_private, settings.netutils_dns_server)


@dataclass(frozen=True)
class Target:
    """A host as it was given, in ASCII, and the addresses of it that may be reached."""

    host: str
    addresses: tuple[Address, ...]


async def find_target(host: str, limits: Limits) -> Target:
    """Resolves a host; refuses one that has no address which may be reached."""
    name = host.strip().removeprefix("[").removesuffix("]")
    literal = _literal(name)
    if literal is None:
        name = ascii_name(name)
        addresses: Sequence[Address] = await _resolve(name, limits)
    else:
        name, addresses = str(literal), [literal]
    reasons = {address: refusal(address, allow_private=limits.allow_private) for address in addresses}
    reachable = tuple(address for address in addresses if reasons[address] is None)
    if not reachable:
        address, reason = next(iter(reasons.items()))
        place = str(address) if literal else f"{name} ({address})"
        raise ToolError(f"{place} was not contacted: it is {reason}.")
    return Target(name, reachable)


def refusal(address: Address, *, allow_private: bool) -> str | None:
    """Why an address must not be reached, or None."""
    reached = _carried(address) or address
    if reached in METADATA:
        return "the metadata service of a cloud, which is never contacted"
    if reached.is_multicast or reached.is_unspecified or reached == IPv4Address("255.255.255.255"):
        return "not the address of one machine"
    kind = None if allow_private else _private_kind(reached)
    return None if kind is None else f"{kind}; NETUTILS_ALLOW_PRIVATE=true allows it"


def _private_kind(address: Address) -> str | None:
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if not address.is_global or (isinstance(address, IPv6Address) and address.is_site_local):
        return "a private or reserved address"
    return None


def is_address(text: str) -> bool:
    return _literal(text.strip()) is not None


def parse_address(text: str) -> Address:
    address = _literal(text.strip().removeprefix("[").removesuffix("]"))
    if address is None:
        raise ToolError(f"{text!r} is not an IP address. Give one such as 192.0.2.7 or 2001:db8::7.")
    return address


def ascii_name(name: str) -> str:
    """A host name as it is asked for in DNS: international names in their ASCII form, no dot at the end."""
    wanted = name.strip().rstrip(".").lower()
    try:
        encoded = wanted if wanted.isascii() else idna.encode(wanted, uts46=True).decode("ascii")
    except idna.IDNAError:
        encoded = ""
    if len(encoded) > 253 or not all(_LABEL.fullmatch(label) for label in encoded.split(".")):
        raise ToolError(f"{name!r} is not a host name. Give one such as www.example.com, without a scheme or a path.")
    return encoded


def new_resolver(limits: Limits) -> dns.asyncresolver.Resolver:
    """Asks the server of the settings, else those of the system."""
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


async def _resolve(name: str, limits: Limits) -> list[Address]:
    lookup = _ask_system(name) if limits.dns_server is None else _ask_server(name, limits)
    try:
        async with asyncio.timeout(limits.timeout):
            addresses = await lookup
    except TimeoutError:
        raise ToolError(f"{name} could not be resolved within {limits.timeout:g} seconds.") from None
    if not addresses:
        raise ToolError(f"{name} has no address: no such name, or no DNS server knows it.")
    return addresses


async def _ask_system(name: str) -> list[Address]:
    """As other programs on this machine resolve, with its hosts file."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror:
        return []
    return list(dict.fromkeys(ipaddress.ip_address(entry[4][0]) for entry in found))


async def _ask_server(name: str, limits: Limits) -> list[Address]:
    resolver = new_resolver(limits)

    async def ask(record_type: str) -> list[Address]:
        try:
            answer = await resolver.resolve(name, record_type)
        except dns.exception.DNSException:
            return []
        return [ipaddress.ip_address(record.to_text()) for record in answer]

    return [address for found in await asyncio.gather(ask("A"), ask("AAAA")) for address in found]


def _literal(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _carried(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for, where it leads to one."""
    if isinstance(address, IPv4Address):
        return None
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address.teredo is not None:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour


def _address_and_port(server: str) -> tuple[str, int]:
    if _literal(server) is not None:
        return server, 53
    address, _, port = server.rpartition(":")
    return (address.strip("[]"), int(port)) if _literal(address.strip("[]")) else (server.strip("[]"), 53)
