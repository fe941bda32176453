"""Runs commands of the product in forks of a process that has imported the product: a start without the imports.

`python -m tests.fork_server FD MODULE...` reads requests from the socket with this number until it is closed. Each
names the module, the arguments, the variables and the directory of a command, and comes with its standard streams. The
modules are imported before the first request; their `main` takes no arguments. The answer is the process id. The new
process is a child of the process at the other end, which has to be a child subreaper (prctl(2)) meanwhile.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from typing import TextIO, cast

import pytest

from tests.certificates import trust_one_certificate
from tests.forks import LENGTH_BYTES, STREAMS, Request, receive_request

COMMAND_LINE = "ai_platform_engineering.cli"
PRELOADED = (
    "ai_platform_engineering.agents.netutils.server",
    "ai_platform_engineering.cli.doctor",
    "ai_platform_engineering.cli.feedback",
    "ai_platform_engineering.cli.ingest",
    "ai_platform_engineering.cli.rag",
    "ai_platform_engineering.cli.servers",
    "ai_platform_engineering.cli.skills",
    "ai_platform_engineering.cli.slack",
    "ai_platform_engineering.cli.slack_preview",
    "ai_platform_engineering.cli.tasks",
    "ai_platform_engineering.cli.workflows",
    "ai_platform_engineering.cli.workflows_run",
    "ai_platform_engineering.compat.uvicorn",
    "ai_platform_engineering.integrations.slack_bot.serve",
    "ai_platform_engineering.knowledge_bases.rag.app",
    "ai_platform_engineering.knowledge_bases.rag.backend",
    "ai_platform_engineering.knowledge_bases.rag.stores.sqlite_store",
    "ai_platform_engineering.mcp.memory",
    "ai_platform_engineering.multi_agents.agent_app",
    "ai_platform_engineering.multi_agents.platform_engineer.feedback.postgres",
    "ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main",
    "ai_platform_engineering.sandbox.argocd",
    "ai_platform_engineering.sandbox.github",
    "ai_platform_engineering.sandbox.jira",
    "ai_platform_engineering.sandbox.pagerduty",
    "ai_platform_engineering.sandbox.store",
    "ai_platform_engineering.skills_middleware.rest.app",
    "ai_platform_engineering.storage.audit.postgres",
    "ai_platform_engineering.storage.checkpoints.postgres_saver",
    "ai_platform_engineering.storage.event_log.postgres.log",
    "ai_platform_engineering.storage.push.postgres_receivers",
    "ai_platform_engineering.storage.usage.postgres",
    "ai_platform_engineering.terminal.chat",
    "ai_platform_engineering.terminal.replay",
    "ai_platform_engineering.terminal.scripted",
    "ai_platform_engineering.utils.a2a_common.client.own_transport",
    "ai_platform_engineering.utils.a2a_common.server.job_worker",
    "ai_platform_engineering.utils.logs",
    "ai_platform_engineering.utils.worker_processes",
    # Packages that the modules above import when they first need them.
    "anyio._backends._asyncio",
    "httpcore",
    "httpcore2",
    "langchain_core.messages.block_translators.langchain_v0",
    "langchain_core.tracers.context",
    "langchain_core.tracers.stdout",
    "langchain_openai",
    "openai.lib.streaming.chat",
    "openai.resources.chat.chat",
    "psycopg_pool",
    "truststore",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.protocols.websockets.auto",
)
of_this_worker: socket.socket | None = None
"""The connection of a forked worker to its fork server."""


def serve(connection: socket.socket) -> Request | None:
    """Returns a request in the process that is to run it, and None in this process once the socket is closed."""
    while received := receive_request(connection):
        request, streams = received
        between = os.fork()
        if between:
            os.waitpid(between, 0)
            for stream in streams:
                os.close(stream)
            continue
        between = os.getpid()
        if os.fork():
            # An orphan becomes a child of the subreaper.
            os._exit(0)
        while os.getppid() == between:
            time.sleep(0.0002)
        connection.sendall(os.getpid().to_bytes(LENGTH_BYTES, "big"))
        connection.close()
        take_over(request, streams)
        module = sys.modules[request.module]
        sys.argv = [str(module.__file__), *request.arguments]
        sys.path[0] = request.directory
        # The module that `multiprocessing` imports again in its own processes.
        sys.modules["__main__"] = module
        return request
    return None


def take_over(request: Request, streams: list[int]) -> None:
    """Give this process all that a new one would get from its parent."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        if stream >= STREAMS:
            os.close(stream)
    random.seed()
    os.umask(request.umask)
    if request.new_session:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request.environ)
    time.tzset()
    os.chdir(request.directory)
    sys.stdin = sys.__stdin__ = _stream(sys.stdin)  # type: ignore[assignment, misc]
    sys.stdout = sys.__stdout__ = _stream(sys.stdout)  # type: ignore[assignment, misc]
    sys.stderr = sys.__stderr__ = _stream(sys.stderr, buffering=1)  # type: ignore[assignment, misc]


def _stream(like: TextIO, buffering: int = -1) -> TextIO:
    """The standard stream of this process, as the interpreter would open it."""
    number, errors = like.fileno(), like.errors
    mode = "r" if like.readable() else "w"
    return cast(TextIO, os.fdopen(number, mode, buffering, encoding="utf-8", errors=errors, closefd=False))


_exit_codes: list[int] = []
"""That of the command, in the process that has run one."""


def _exit_at_once() -> None:
    """The interpreter would free every module: that takes as long as most of a command."""
    if _exit_codes:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_exit_codes[-1])


def preload(modules: Sequence[str] = ()) -> None:
    """Import the product, as its command line does, and `modules`."""
    # Ctrl-C in the terminal is for the commands and for pytest, which closes the socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Registered first, so that it is called last.
    atexit.register(_exit_at_once)
    command_line = importlib.import_module(COMMAND_LINE)
    # This sets the variables that the command line sets before its imports.
    with redirect_stdout(io.StringIO()), suppress(SystemExit):
        command_line.main(["--version"])
    for module in (*PRELOADED, *modules):
        importlib.import_module(module)
    gc.collect()
    gc.freeze()


def run_commands(connection: socket.socket) -> None:
    """Serve requests until the socket is closed. In the process of a command, run it and exit."""
    trust_one_certificate(pytest.MonkeyPatch())
    if (request := serve(connection)) is None:
        return
    try:
        code: object = sys.modules[request.module].main()
    except SystemExit as ended:
        code = ended.code
    # Other codes are messages, which the interpreter writes.
    if code is None or isinstance(code, int):
        _exit_codes.append(code or 0)
    sys.exit(code)  # type: ignore[arg-type]


if __name__ == "__main__":
    preload(sys.argv[2:])
    run_commands(socket.socket(fileno=int(sys.argv[1])))
