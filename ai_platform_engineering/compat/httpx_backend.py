"""httpx: its transports create connections with httpcore, whose network backend they do not let their users choose."""

from __future__ import annotations

import httpcore
import httpx


def connect_with(transport: httpx.AsyncHTTPTransport, backend: httpcore.AsyncNetworkBackend) -> None:
    """Let a transport make its connections with `backend`."""
    transport._pool._network_backend = backend


def connect_blocking_with(transport: httpx.HTTPTransport, backend: httpcore.NetworkBackend) -> None:
    transport._pool._network_backend = backend
