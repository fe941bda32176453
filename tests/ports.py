"""Loopback ports that belong to one test, however many run at once."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


def reserve() -> socket.socket:
    """A socket that is bound and never listens.

    Its port refuses connections, and the kernel gives it to no other process. A server of the test can still listen on
    it, because all of them set SO_REUSEADDR.
    """
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reservation.bind(("127.0.0.1", 0))
    return reservation


def port_of(bound: socket.socket) -> int:
    port: int = bound.getsockname()[1]
    return port


@contextmanager
def reserved_port() -> Iterator[int]:
    with reserve() as reservation:
        yield port_of(reservation)
