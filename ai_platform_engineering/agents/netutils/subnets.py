"""Subnets: arithmetic on networks. No I/O."""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Network, IPv6Network
from itertools import islice
from typing import Any

from ai_platform_engineering.mcp.tool_server import ToolError

Network = IPv4Network | IPv6Network

MAX_SUBNETS = 64
_EXACT_IN_JSON = 2**53


def parse_network(cidr: str) -> Network:
    """The network of an address with a prefix length."""
    try:
        return ipaddress.ip_network(cidr.strip(), strict=False)
    except ValueError:
        raise ToolError(f"{cidr!r} is not a network. Give one such as 10.0.0.0/16 or 2001:db8::/48.") from None


def describe(network: Network) -> dict[str, Any]:
    """The properties of one network."""
    details = {
        "network": str(network),
        "version": network.version,
        "netmask": str(network.netmask) if network.version == 4 else None,
        "wildcard": str(network.hostmask) if network.version == 4 else None,
        "broadcast": str(network.broadcast_address) if _has_broadcast(network) else None,
        **_hosts(network),
        "addresses": _number(network.num_addresses),
        "scope": _scope(network),
    }
    return {key: value for key, value in details.items() if value is not None}


def plan(network: Network, new_prefix: int | None, count: int | None) -> dict[str, Any]:
    """Split a network into equal subnets, by their prefix length or by their number."""
    if (new_prefix is None) == (count is None):
        raise ToolError("Give either new_prefix or count: the prefix of each subnet, or how many are needed.")
    prefix = new_prefix if new_prefix is not None else network.prefixlen + ((count or 1) - 1).bit_length()
    if not network.prefixlen <= prefix <= network.max_prefixlen:
        wanted = f"subnets of /{prefix}" if count is None else f"{count} subnets"
        raise ToolError(
            f"{network} cannot be cut into {wanted}: "
            f"a subnet of it is between /{network.prefixlen} and /{network.max_prefixlen}."
        )
    total = 2 ** (prefix - network.prefixlen)
    needed = total if count is None else count
    shown: list[Network] = list(islice(network.subnets(new_prefix=prefix), min(needed, MAX_SUBNETS)))
    details = {
        "network": str(network),
        "new_prefix": prefix,
        "total": _number(total),
        "shown": len(shown),
        "spare": _number(total - needed) if total > needed else None,
        "subnets": [{"subnet": str(subnet), **_hosts(subnet)} for subnet in shown],
    }
    return {key: value for key, value in details.items() if value is not None}


def _has_broadcast(network: Network) -> bool:
    return network.version == 4 and network.prefixlen < 31


def _hosts(network: Network) -> dict[str, Any]:
    first, last = network.network_address, network.broadcast_address
    if _has_broadcast(network):
        return {"first_host": str(first + 1), "last_host": str(last - 1), "hosts": network.num_addresses - 2}
    return {"first_host": str(first), "last_host": str(last), "hosts": _number(network.num_addresses)}


def _scope(network: Network) -> str:
    if network.is_loopback:
        return "loopback"
    if network.is_link_local:
        return "link-local"
    if network.is_multicast:
        return "multicast"
    return "global" if network.is_global else "private or reserved"


def _number(value: int) -> int | str:
    """Many clients read JSON numbers as floats, so larger numbers are sent as text to preserve every digit."""
    return value if value < _EXACT_IN_JSON else str(value)
