"""Limits for the connections of a server: how many there are, and how long a request may take to arrive.

If there are too many, the server closes the oldest one without a complete request, then the one that is idle for the
longest time. A new connection is refused only if all others have a request in progress.
"""

from __future__ import annotations

import ipaddress
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.outbound.addresses import literal

if TYPE_CHECKING:
    from ai_platform_engineering.compat.uvicorn import HttpConnection

logger = logging.getLogger(__name__)

MIN_BODY_RATE: Final = 500
"""Bytes per second by which the time for a body grows."""
STALLED_SECONDS: Final = 60.0
"""How long a response may wait for a client that reads nothing."""
_GRACE_SECONDS: Final = 1.0
"""A connection this young is not closed for a new one if another can be."""
_REPORT_SECONDS: Final = 60.0
_MAX_CONNECTIONS: Final = 8192

_PER_ADDRESS: Final = "Too many connections from this address. Close some, or try again later."
_IN_ALL: Final = "Too many connections. Try again later."
_HEADER_TIME: Final = "The headers of the request did not arrive in time."
_BODY_TIME: Final = "The body of the request did not arrive in time."


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    connections: int
    per_address: int
    """0: no limit."""
    header_bytes: int
    header_seconds: float
    body_seconds: float
    proxies: str
    """Addresses and networks without a limit per address, comma-separated."""

    @classmethod
    def of(cls, settings: Settings) -> ConnectionLimits:
        return cls(
            settings.max_connections or _default_connections(),
            settings.max_connections_per_address,
            settings.max_header_bytes,
            settings.header_timeout,
            settings.body_timeout,
            settings.forwarded_allow_ips,
        )


def _default_connections() -> int:
    """Half of the files that the process may open; the others are for stores, tools and calls."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return _MAX_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_CONNECTIONS if files == resource.RLIM_INFINITY else max(1, min(_MAX_CONNECTIONS, files // 2))


def client_network(address: str) -> str:
    """An IPv4 address, or the /64 network of an IPv6 address: one machine has all addresses of such a network."""
    parsed = literal(address.partition("%")[0])
    if parsed is None:
        return address
    if parsed.version == 4:
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


def exempt_networks(proxies: str) -> Callable[[str], bool]:
    """Whether an address is one of the proxies."""
    parts = [part for part in map(str.strip, proxies.split(",")) if part]
    if "*" in parts:
        return lambda _address: True
    networks = [ipaddress.ip_network(part) for part in parts]

    def is_exempt(address: str) -> bool:
        parsed = literal(address)
        return parsed is not None and any(parsed in network for network in networks)

    return is_exempt


@dataclass(slots=True)
class Connections:
    """The connections of a server. Dictionaries by phase have the time at which it began, the oldest first."""

    limits: ConnectionLimits
    idle_seconds: float
    waiting: dict[HttpConnection, float] = field(default_factory=dict)
    active: dict[HttpConnection, float] = field(default_factory=dict)
    idle: dict[HttpConnection, float] = field(default_factory=dict)
    _by_address: dict[str, dict[HttpConnection, None]] = field(default_factory=dict)
    _addresses: dict[HttpConnection, str] = field(default_factory=dict)
    _stalled: dict[HttpConnection, tuple[int, float]] = field(default_factory=dict)
    """The unsent bytes of a response, and since when there are that many."""
    _refused: Counter[str] = field(default_factory=Counter)
    _next_report: float = 0.0
    _is_exempt: Callable[[str], bool] = field(init=False)
    max_header_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.max_header_bytes = self.limits.header_bytes
        self._is_exempt = exempt_networks(self.limits.proxies)

    def __len__(self) -> int:
        return len(self.waiting) + len(self.active) + len(self.idle)

    def opened(self, connection: HttpConnection) -> None:
        address = self._limited_address(connection)
        if address is not None:
            same = self._by_address.get(address, {})
            if len(same) >= self.limits.per_address and not self._make_room(
                [each for each in same if each in self.waiting], [each for each in same if each in self.idle]
            ):
                connection.refuse("too many connections of one address", 503, _PER_ADDRESS)
                return
        if len(self) >= self.limits.connections and not self._make_room(self.waiting, self.idle):
            connection.refuse("too many connections", 503, _IN_ALL)
            return
        self.waiting[connection] = time.monotonic()
        if address is not None:
            self._addresses[connection] = address
            self._by_address.setdefault(address, {})[connection] = None

    def closed(self, connection: HttpConnection) -> None:
        for connections in (self.waiting, self.active, self.idle, self._stalled):
            connections.pop(connection, None)
        address = self._addresses.pop(connection, None)
        if address is not None:
            same = self._by_address[address]
            del same[connection]
            if not same:
                del self._by_address[address]

    def refused(self, reason: str) -> None:
        self._refused[reason] += 1

    def close_overdue(self) -> None:
        """Close the connections whose time is up. Called every second."""
        now = time.monotonic()
        for connection in _begun_before(self.waiting, now - self.limits.header_seconds):
            if connection.header_bytes:
                connection.refuse("header not complete in time", 408, _HEADER_TIME)
            else:
                self._drop(connection, "no request")
        for connection in _begun_before(self.idle, now - self.idle_seconds - _GRACE_SECONDS):
            self._drop(connection, "idle")
        for connection in list(self.active):
            if connection.is_receiving_body:
                self._check_body(connection, now)
            self._check_reading(connection, now)
        if self._refused and now >= self._next_report:
            counts = ", ".join(f"{reason} ({count})" for reason, count in sorted(self._refused.items()))
            logger.warning("Connections were closed by the limits of the server: %s", counts)
            self._refused.clear()
            self._next_report = now + _REPORT_SECONDS

    def _check_body(self, connection: HttpConnection, now: float) -> None:
        seconds = self.limits.body_seconds
        if connection.is_response_complete:
            overdue = now - self.active[connection] > seconds
        else:
            seconds += connection.body_bytes / MIN_BODY_RATE
            overdue = not connection.has_response and now - self.active[connection] > seconds
        if overdue:
            connection.refuse("body not complete in time", 408, _BODY_TIME)

    def _check_reading(self, connection: HttpConnection, now: float) -> None:
        unsent = connection.unsent_bytes
        if not unsent:
            self._stalled.pop(connection, None)
            return
        before, since = self._stalled.get(connection, (0, now))
        if unsent != before:
            self._stalled[connection] = unsent, now
        elif now - since > STALLED_SECONDS:
            self._drop(connection, "response not read")

    def _limited_address(self, connection: HttpConnection) -> str | None:
        if not self.limits.per_address or connection.client is None or self._is_exempt(connection.client[0]):
            return None
        return client_network(connection.client[0])

    def _make_room(self, waiting: Iterable[HttpConnection], idle: Iterable[HttpConnection]) -> bool:
        """Close one of the connections. They are sorted, the oldest first."""
        oldest = next(iter(waiting), None)
        closed = next(iter(idle), None)
        if oldest is not None and (closed is None or time.monotonic() - self.waiting[oldest] >= _GRACE_SECONDS):
            closed = oldest
        if closed is None:
            return False
        self._drop(closed, "closed for a new one")
        return True

    def _drop(self, connection: HttpConnection, reason: str) -> None:
        self._refused[reason] += 1
        self.closed(connection)
        connection.transport.abort()


def _begun_before(connections: Mapping[HttpConnection, float], moment: float) -> list[HttpConnection]:
    found = []
    for connection, since in connections.items():
        if since > moment:
            break
        found.append(connection)
    return found
