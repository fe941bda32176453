"""An HTTP server of this process on a free loopback port."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def served(
    handler: type[BaseHTTPRequestHandler], *, callers_die: bool = False, context: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Yields the address; requests are answered in threads until the end, over TLS with a context. Errors of callers
    that may be killed are not printed."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    # A client may keep its connection open.
    server.daemon_threads = True
    if callers_die:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
