"""IP addresses: which of them may be contacted on behalf of a user (protection against SSRF).

A name is resolved, its addresses are checked, and the connection goes to a checked address. Resolving the name a second
time would make the check useless.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

import idna

Address = IPv4Address | IPv6Address
Resolve = Callable[[str], Awaitable[Sequence[Address]]]
"""Resolves a host name; the result is empty if the name does not exist."""

# Metadata services give out the credentials of the machine: blocked even if private addresses are allowed.
METADATA: Final = frozenset(
    ipaddress.ip_address(address)
    for address in (
        *("169.254.169.254", "fd00:ec2::254", "fd20:ce::254"),
        *("169.254.170.2", "169.254.170.23", "fd00:ec2::23"),
        *("100.100.100.200", "192.0.0.192", "168.63.129.16"),
    )
)
MAX_ADDRESSES: Final = 3
"""How many addresses of one host are tried."""

_GLOBAL_IPV6: Final = IPv6Network("2000::/3")
# IPv6 addresses that end in an IPv4 address and lead there: NAT64 (well-known and local), mapped, compatible.
_ENDING_IN_IPV4: Final = tuple(
    IPv6Network(network) for network in ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0/96", "::ffff:0:0:0/96")
)
_COMPATIBLE: Final = IPv6Network("::/96")
_THIS_NETWORK: Final = IPv4Network("0.0.0.0/8")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")


def refusal(address: Address, *, allow_private: bool, allowed_by: str) -> str | None:
    """Why an address must not be contacted, or None. `allowed_by` is the variable that allows private ones."""
    target = _embedded_ipv4(address) or _without_scope(address)
    if target in METADATA:
        return "the metadata service of a cloud, which is never contacted"
    if target.is_multicast or target.is_unspecified or target == IPv4Address("255.255.255.255"):
        return "not the address of one machine"
    kind = None if allow_private else _private_kind(target)
    return None if kind is None else f"{kind}; {allowed_by}=true allows it"


def literal(text: str) -> Address | None:
    """The IP address in a text; None if it is a name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def host_name(text: str) -> str | None:
    """A host name in the form of DNS: international names in ASCII, without a dot at the end. None if the text is not a
    host name."""
    wanted = text.strip().rstrip(".").lower()
    try:
        encoded = wanted if wanted.isascii() else idna.encode(wanted, uts46=True).decode("ascii")
    except idna.IDNAError:
        return None
    if len(encoded) > 253 or not all(_LABEL.fullmatch(label) for label in encoded.split(".")):
        return None
    return encoded


async def resolve(name: str) -> Sequence[Address]:
    """Resolve a name as other programs on this machine do, with its hosts file."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):
        return []
    return list(dict.fromkeys(ipaddress.ip_address(entry[4][0]) for entry in found))


def _private_kind(address: Address) -> str | None:
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    reserved = isinstance(address, IPv6Address) and address not in _GLOBAL_IPV6
    return "a private or reserved address" if reserved or not address.is_global else None


def _embedded_ipv4(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address contains and leads to; None if there is none."""
    if isinstance(address, IPv4Address):
        return None
    if any(address in network for network in _ENDING_IN_IPV4):
        return _last_32_bits(address)
    if address.teredo is not None:
        return address.teredo[1]
    if address in _COMPATIBLE and _last_32_bits(address) not in _THIS_NETWORK:
        return _last_32_bits(address)
    return address.sixtofour


def _last_32_bits(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)


def _without_scope(address: Address) -> Address:
    """`fd00:ec2::254%eth0` is the same machine as `fd00:ec2::254`, but not an equal value."""
    return IPv6Address(int(address)) if isinstance(address, IPv6Address) else address
