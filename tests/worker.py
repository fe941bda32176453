"""The interpreter that xdist starts for a worker: hands its streams to a fork of `tests.worker_server`, and waits.

`python -m tests.worker PATH`, with the path of the server's socket.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

from tests.forks import STREAMS, Request, send_request


def main(path: str) -> None:
    # Ctrl-C is for the worker.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    umask = os.umask(0)
    os.umask(umask)
    request = Request("__main__", [], dict(os.environ), str(Path.cwd()), umask, new_session=False)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        send_request(connection, request, [*range(STREAMS)])
        # xdist knows by the end of the streams that a worker has died.
        for stream in range(STREAMS):
            os.close(stream)
        connection.recv(1)


if __name__ == "__main__":
    main(sys.argv[1])
