"""Addresses of machines: which of them may be contacted on behalf of somebody else.

A name is resolved, its addresses are judged, and the connection goes to an address that was judged. Whoever resolves
a name a second time has judged nothing.
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
"""From a host name to its addresses; none if nobody knows the name."""

# Answers on these hand out the credentials of the machine, so they stay shut where private addresses are allowed.
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
    """Why an address must not be reached, or None; `allowed_by` is the variable that allows private ones."""
    reached = _carried(address) or _without_scope(address)
    if reached in METADATA:
        return "the metadata service of a cloud, which is never contacted"
    if reached.is_multicast or reached.is_unspecified or reached == IPv4Address("255.255.255.255"):
        return "not the address of one machine"
    kind = None if allow_private else _private_kind(reached)
    return None if kind is None else f"{kind}; {allowed_by}=true allows it"


def literal(text: str) -> Address | None:
    """The address that a text is; None for a name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def host_name(text: str) -> str | None:
    """A host name as it is asked for in DNS: international names in their ASCII form, no dot at the end. None if the
    text is no host name."""
    wanted = text.strip().rstrip(".").lower()
    try:
        encoded = wanted if wanted.isascii() else idna.encode(wanted, uts46=True).decode("ascii")
    except idna.IDNAError:
        return None
    if len(encoded) > 253 or not all(_LABEL.fullmatch(label) for label in encoded.split(".")):
        return None
    return encoded


async def resolve(name: str) -> Sequence[Address]:
    """As other programs on this machine resolve, with its hosts file."""
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


def _carried(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for, where it leads to one."""
    if isinstance(address, IPv4Address):
        return None
    if any(address in network for network in _ENDING_IN_IPV4):
        return _ending(address)
    if address.teredo is not None:
        return address.teredo[1]
    if address in _COMPATIBLE and _ending(address) not in _THIS_NETWORK:
        return _ending(address)
    return address.sixtofour


def _ending(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)


def _without_scope(address: Address) -> Address:
    """`fd00:ec2::254%eth0` is the same machine as `fd00:ec2::254`, but not an equal value."""
    return IPv6Address(int(address)) if isinstance(address, IPv6Address) else address
