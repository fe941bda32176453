"""IP addresses: their spellings, and which of them may be contacted (protection against SSRF).

A name is resolved, its addresses are checked, and the connection goes to a checked address. Resolving the name a second
time would make the check useless.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Final

import idna

Address = IPv4Address | IPv6Address
Resolve = Callable[[str], Awaitable[Sequence[Address]]]
"""Resolves a host name; the result is empty if the name does not exist."""

# Metadata services give out the credentials of the machine: blocked even if private addresses are allowed.
METADATA: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        *("169.254.169.0/24", "169.254.170.0/24", "169.254.0.23", "fe80::a9fe:a9fe"),
        *("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"),
        *("100.100.100.200", "192.0.0.192", "168.63.129.16"),
    )
)
# The names of metadata services, for the case that a proxy resolves them.
METADATA_NAMES: Final = frozenset(
    {
        *("metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"),
        *("metadata.azure.internal", "metadata.tencentyun.com"),
    }
)
METADATA_REASON: Final = "the metadata service of a cloud, which is never contacted"
MAX_ADDRESSES: Final = 3
"""How many addresses of one host are tried."""

_GLOBAL_IPV6: Final = IPv6Network("2000::/3")
_LOCAL_NAT64: Final = IPv6Network("64:ff9b:1::/48")
# IPv6 addresses that end in an IPv4 address and lead there: NAT64, mapped, translated.
_ENDING_IN_IPV4: Final = tuple(IPv6Network(network) for network in ("64:ff9b::/96", "::ffff:0:0/96", "::ffff:0:0:0/96"))
_COMPATIBLE: Final = IPv6Network("::/96")
_THIS_NETWORK: Final = IPv4Network("0.0.0.0/8")
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# Numbers as `inet_aton` reads them: hexadecimal, octal, decimal.
_NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]+", re.ASCII | re.IGNORECASE)


def refusal(address: Address, *, allow_private: bool, allowed_by: str, named: bool = False) -> str | None:
    """Why an address must not be contacted, or None. `allowed_by` is the variable that allows private ones. `named`:
    the operator has named this very address, so that it may be a metadata service."""
    if not named and is_metadata(address):
        return METADATA_REASON
    target = _target(address)
    if target.is_multicast or target.is_unspecified or target == IPv4Address("255.255.255.255"):
        return "not the address of one machine"
    kind = None if allow_private else _private_kind(target)
    return None if kind is None else f"{kind}; {allowed_by}=true allows it"


def is_metadata(address: Address) -> bool:
    """Whether an address is that of a metadata service, or may lead there."""
    return any(target in network for target in _targets(address) for network in METADATA)


def is_loopback(address: Address) -> bool:
    return _target(address).is_loopback


def host_of(text: str) -> str | None:
    """A host in its one spelling: an address as text, or a name as in DNS. None if the text is neither."""
    bare = text.strip().removeprefix("[").removesuffix("]")
    address = literal(bare) or literal(_ascii(bare) or "")
    return host_name(bare) if address is None else str(address)


def literal(text: str) -> Address | None:
    """The IP address in a text, in every spelling that a resolver takes for one; None if it is a name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return _legacy_ipv4(text)


def host_name(text: str) -> str | None:
    """A host name in the form of DNS: international names in ASCII, without a dot at the end. None if the text is not a
    host name."""
    encoded = _ascii(text)
    if encoded is None or len(encoded) > 253:
        return None
    labels = encoded.split(".")
    # A last label that is a number would be a misspelled IPv4 address: programs disagree about which one.
    if _NUMBER.fullmatch(labels[-1]) or not all(_LABEL.fullmatch(label) for label in labels):
        return None
    return encoded


async def resolve(name: str) -> Sequence[Address]:
    """Resolve a name as other programs on this machine do, with its hosts file."""
    try:
        return _found(await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM))
    except (socket.gaierror, UnicodeError):
        return []


def resolve_blocking(name: str) -> Sequence[Address]:
    """`resolve` for code in a thread."""
    try:
        return _found(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM))
    except (socket.gaierror, UnicodeError):
        return []


def _found(entries: Sequence[tuple[Any, ...]]) -> Sequence[Address]:
    return list(dict.fromkeys(ipaddress.ip_address(entry[4][0]) for entry in entries))


def _ascii(text: str) -> str | None:
    wanted = text.strip().lower()
    try:
        encoded = wanted if wanted.isascii() else idna.encode(wanted, uts46=True).decode("ascii")
    except idna.IDNAError:
        return None
    return encoded.rstrip(".")


def _legacy_ipv4(text: str) -> IPv4Address | None:
    """`0x7f.1`, `017700000001` and `2130706433` are 127.0.0.1 for `inet_aton`, and so for most programs."""
    numbers = [_number(part) for part in text.strip().rstrip(".").split(".")]
    if len(numbers) > 4:
        return None
    value = 0
    for position, number in enumerate(numbers):
        # The last number has the bytes that are left.
        size = 8 if position < len(numbers) - 1 else 8 * (5 - len(numbers))
        if number is None or number >= 1 << size:
            return None
        value = value << size | number
    return IPv4Address(value)


def _number(text: str) -> int | None:
    if not _NUMBER.fullmatch(text) or len(text) > 20:
        return None
    try:
        if text[:2].lower() == "0x":
            return int(text[2:] or "0", 16)
        return int(text, 8 if text.startswith("0") else 10)
    except ValueError:  # 8 or 9 in an octal number
        return None


def _private_kind(address: Address) -> str | None:
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    reserved = isinstance(address, IPv6Address) and address not in _GLOBAL_IPV6
    return "a private or reserved address" if reserved or not address.is_global else None


def _target(address: Address) -> Address:
    """The address that a packet to `address` reaches."""
    if isinstance(address, IPv4Address):
        return address
    return next(iter(_embedded_ipv4(address)), _without_scope(address))


def _targets(address: Address) -> Iterator[Address]:
    """The address, and all that it may lead to."""
    if isinstance(address, IPv4Address):
        yield address
        return
    yield _without_scope(address)
    yield from _embedded_ipv4(address)
    value = int(address)
    if address.teredo is not None:
        yield address.teredo[0]
    if address in _LOCAL_NAT64:
        # The position depends on the length of the prefix, which the network's operator chooses (RFC 6052).
        for front in (16, 8, 0):
            high, low = value >> 64 & (1 << front) - 1, value >> 24 + front & (1 << 32 - front) - 1
            yield IPv4Address(high << 32 - front | low)
        yield _last_32_bits(address)
    if value >> 32 & 0xFFFFFFFF in _ISATAP:
        yield _last_32_bits(address)


def _embedded_ipv4(address: IPv6Address) -> Iterator[IPv4Address]:
    """The IPv4 address that an IPv6 address contains and certainly leads to."""
    if any(address in network for network in _ENDING_IN_IPV4) or (
        address in _COMPATIBLE and _last_32_bits(address) not in _THIS_NETWORK
    ):
        yield _last_32_bits(address)
    elif address.teredo is not None:
        yield address.teredo[1]
    elif address.sixtofour is not None:
        yield address.sixtofour


def _last_32_bits(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)


def _without_scope(address: IPv6Address) -> IPv6Address:
    """`fd00:ec2::254%eth0` is the same machine as `fd00:ec2::254`, but not an equal value."""
    return IPv6Address(int(address))
