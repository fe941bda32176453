"""The rules of one user of the guard: which hosts, ports and addresses may be contacted. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import httpx

from ai_platform_engineering.settings import SettingsError, wrong_value
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.outbound.addresses import (
    MAX_ADDRESSES,
    METADATA_NAMES,
    METADATA_REASON,
    Address,
    host_of,
    is_loopback,
    is_metadata,
    literal,
    refusal,
)

Scheme = Literal["http", "https"]

_PORTS: Final = {"http": 80, "https": 443}


class RefusedError(ReadableError, httpx.ConnectError):
    """A host was not contacted. The text is a sentence with the reason, `reason` is a phrase for other sentences.

    It is a `ConnectError`, because nothing was sent.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class OutboundPolicy:
    """`variables` is the beginning of the settings' names: `PUSH` for `PUSH_ALLOW_PRIVATE`.

    `allowed_hosts` has names, addresses, and patterns such as `*.example.com`; empty allows all hosts. An address in it
    may be a metadata service, which is refused otherwise. `allowed_ports` is empty where all are allowed. Unless
    `allow_http`, plain HTTP is for loopback addresses only.

    `is_operators`: the addresses are the operator's own choice, so only metadata services are refused. Requests go
    through the proxies of the environment, which resolve the names themselves.
    """

    variables: str = ""
    allow_private: bool = False
    allowed_hosts: tuple[str, ...] = ()
    allowed_ports: frozenset[int] = frozenset()
    allow_http: bool = True
    is_operators: bool = False
    max_addresses: int = MAX_ADDRESSES

    def check_url(self, url: httpx.URL) -> None:
        """Raise `RefusedError` if nothing at the host and port may be contacted. Names are not resolved."""
        if url.scheme not in _PORTS or not url.host:
            raise RefusedError("Only addresses with http:// or https:// can be contacted.", "not an http address")
        host = url.raw_host.decode("ascii")
        known = host_of(host)
        if known is None:
            raise RefusedError(f"{host[:100]!r} is not a host name.", "not a host name")
        if reason := self.refuses_host(known):
            raise _refused(known, reason)
        port = url.port or _PORTS[url.scheme]
        if self.allowed_ports and port not in self.allowed_ports:
            allowed = ", ".join(map(str, sorted(self.allowed_ports)))
            raise RefusedError(
                f"{known} was not contacted: {port} is not one of the ports that {self.variables}_ALLOWED_PORTS "
                f"allows ({allowed}).",
                "the port is not allowed",
            )
        if (address := literal(known)) is not None:
            self.checked(known, [address], "https" if url.scheme == "https" else "http")

    def checked(self, host: str, found: Sequence[Address], scheme: Scheme = "https") -> Sequence[Address]:
        """Those of the addresses of a host that may be contacted. Raises `RefusedError` if there are none."""
        host = host_of(host) or host
        if reason := self.refuses_host(host):
            raise _refused(host, reason)
        if not found:
            raise RefusedError(
                f"{host} has no address: no such name, or no DNS server knows it.", "host name not found"
            )
        reasons = {address: self._reason(address, host, scheme) for address in found}
        reachable = [address for address in found if reasons[address] is None]
        if not reachable:
            place = host if literal(host) is not None else f"{host} ({found[0]})"
            raise _refused(place, reasons[found[0]] or "")
        return reachable[: self.max_addresses]

    def refuses_host(self, host: str) -> str | None:
        """The reason why a host may not be contacted, or None. `host` is an ASCII name or an address."""
        if host in METADATA_NAMES:
            return METADATA_REASON
        if not self.allowed_hosts or covers(self.allowed_hosts, host):
            return None
        return f"not one of the hosts that {self.variables}_ALLOWED_HOSTS allows ({', '.join(self.allowed_hosts)})"

    def refuses_address(self, address: Address, host: str = "") -> str | None:
        """The reason why an address may not be contacted, or None. `host` is the text that led to it."""
        if self.is_operators:
            return METADATA_REASON if is_metadata(address) else None
        return refusal(
            address,
            allow_private=self.allow_private,
            allowed_by=f"{self.variables}_ALLOW_PRIVATE",
            named=host == str(address) and host in self.allowed_hosts,
        )

    def _reason(self, address: Address, host: str, scheme: Scheme) -> str | None:
        if reason := self.refuses_address(address, host):
            return reason
        if scheme == "http" and not self.allow_http and not is_loopback(address):
            return f"not on this machine, so https is required; {self.variables}_ALLOW_HTTP=true allows http"
        return None


OPERATOR: Final = OutboundPolicy(is_operators=True, max_addresses=16)
"""For addresses that the operator has configured."""


def covers(patterns: Iterable[str], host: str) -> bool:
    return any(
        host.endswith(pattern.removeprefix("*")) if pattern.startswith("*.") else host == pattern
        for pattern in patterns
    )


def host_patterns(texts: Iterable[str], named_by: str) -> tuple[str, ...]:
    """The hosts of a setting or option, which `named_by` names in the error."""
    given = [text.strip() for text in texts]
    return tuple(_host_pattern(text, named_by) for text in given if text)


def _host_pattern(text: str, named_by: str) -> str:
    wildcard = "*." if text.startswith("*.") else ""
    if not (host := host_of(text.removeprefix(wildcard))):
        allowed = "host names such as docs.example.com or *.example.com, comma-separated, without a scheme or a port"
        raise SettingsError(wrong_value(named_by, text, allowed))
    return wildcard + host


def _refused(place: str, reason: str) -> RefusedError:
    return RefusedError(f"{place} was not contacted: it is {reason}.", reason)
