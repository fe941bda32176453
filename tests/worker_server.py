"""Starts the workers of xdist as forks of one process that has imported the product.

Each worker, and the fork server of each, would otherwise import the same thousands of modules.
`python -m tests.worker_server FD` serves the socket with this number until its standard input is closed.
"""

from __future__ import annotations

import ast
import os
import selectors
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from tests import fork_server
from tests.fork_server import preload, run_commands, take_over
from tests.forks import LENGTH_BYTES, Request, receive_request


def serve_workers(listener: socket.socket) -> None:
    with selectors.DefaultSelector() as selector:
        for source in (listener, sys.stdin):
            selector.register(source, selectors.EVENT_READ)
        while sys.stdin not in {key.fileobj for key, _ in selector.select()}:
            connection, _ = listener.accept()
            received = receive_request(connection)
            if received is not None and os.fork() == 0:
                selector.close()
                listener.close()
                _run_worker(connection, *received)
            connection.close()
            for stream in received[1] if received else ():
                os.close(stream)


def _run_worker(connection: socket.socket, request: Request, streams: list[int]) -> NoReturn:
    """Runs what xdist sends in the first line. The peer of the connection waits until it is closed."""
    take_over(request, streams)
    fork_server.of_this_worker = _own_fork_server(connection)
    connection.sendall(os.getpid().to_bytes(LENGTH_BYTES, "big"))
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(ast.literal_eval(sys.stdin.readline()), vars(main))  # noqa: S102 - as `python -c` of xdist does
    sys.exit()


def _own_fork_server(connection: socket.socket) -> socket.socket:
    """The connection to a fork server for the commands of this worker. It has all imports, and nothing of pytest."""
    ours, theirs = socket.socketpair()
    if os.fork():
        theirs.close()
        return ours
    for other in (ours, connection):
        other.close()
    with Path(os.devnull).open("rb") as null:
        os.dup2(null.fileno(), 0)
    os.dup2(2, 1)
    run_commands(theirs)
    os._exit(0)


if __name__ == "__main__":
    preload()
    serve_workers(socket.socket(fileno=int(sys.argv[1])))
