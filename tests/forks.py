"""Requests for processes that are forks: each comes over a Unix socket, with the standard streams of the process."""

from __future__ import annotations

import json
import os
import socket
import sys
from dataclasses import asdict, dataclass

MEASURED = tuple(name for name in os.environ if name.startswith("COVERAGE_"))
"""Variables by which `make coverage` measures the processes of tests, too."""
STREAMS = 3
LENGTH_BYTES = 4


@dataclass(frozen=True)
class Request:
    module: str
    arguments: list[str]
    environ: dict[str, str]
    directory: str
    umask: int
    new_session: bool


def send_request(connection: socket.socket, request: Request, streams: list[int]) -> int:
    """Ask for a process; its id."""
    body = json.dumps(asdict(request)).encode()
    socket.send_fds(connection, [len(body).to_bytes(LENGTH_BYTES, "big")], streams)
    connection.sendall(body)
    answer = connection.recv(LENGTH_BYTES, socket.MSG_WAITALL)
    if len(answer) < LENGTH_BYTES:
        raise RuntimeError("the fork server of the tests has ended")
    return int.from_bytes(answer, "big")


def receive_request(connection: socket.socket) -> tuple[Request, list[int]] | None:
    head, streams, _, _ = socket.recv_fds(connection, LENGTH_BYTES, STREAMS)
    if not head:
        return None
    body = connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
    return Request(**json.loads(body)), streams


def are_possible() -> bool:
    """Linux has subreapers; coverage is measured from the start of a process."""
    return sys.platform == "linux" and not MEASURED and os.environ.get("FORKED_COMMANDS") != "0"
