"""Lets tests start `python -m ai_platform_engineering.cli ...` as a fork of a process that has imported the product.

The imports are most of what a start costs. Such a command is a child of pytest as any other: it has a process id, an
environment, a directory, standard streams and signals of its own. `tests/test_docs.py` starts the installed program
instead, imports included. `FORKED_COMMANDS=0` starts every command that way.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from tests import fork_server, forks
from tests.fork_server import COMMAND_LINE
from tests.forks import Request, send_request
from tests.servers import ROOT

COMMAND = [sys.executable, "-m", COMMAND_LINE]
_PR_SET_CHILD_SUBREAPER = 36
# `Popen._execute_child` gets these by position.
_PARAMETERS = (
    *("args", "executable", "preexec_fn", "close_fds", "pass_fds", "cwd", "env", "startupinfo", "creationflags"),
    *("shell", "p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite", "restore_signals"),
    *("gid", "gids", "uid", "umask", "start_new_session", "process_group"),
)


class ForkServer:
    """`tests.fork_server` in a process of its own, from the first request on. A forked worker has one already."""

    def __init__(self, modules: Sequence[str]) -> None:
        self.modules = (COMMAND_LINE, *modules)
        self._one_at_a_time = threading.Lock()
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection = None if modules else fork_server.of_this_worker

    @property
    def is_ours(self) -> bool:
        return os.getpid() == self._owner

    def start(self, request: Request, streams: list[int]) -> int:
        with self._one_at_a_time:
            connection = self._connected()
            _be_subreaper(True)
            try:
                return send_request(connection, request, streams)
            finally:
                _be_subreaper(False)

    def stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.wait()

    def _connected(self) -> socket.socket:
        if self._connection is None:
            self._connection, theirs = socket.socketpair()
            with theirs:
                names = ("PATH", "SSL_CERT_FILE")
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.fork_server", str(theirs.fileno()), *self.modules],
                    cwd=ROOT,
                    env={"LANG": "C.UTF-8"} | {name: os.environ[name] for name in names if name in os.environ},
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
        return self._connection


def _be_subreaper(value: bool) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, int(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _umask() -> int:
    # `os.umask` would change it for the other threads meanwhile.
    return int(status_field("self", "Umask"), 8)


def status_field(process: object, name: str) -> str:
    """A field of the status that Linux shows of a process."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return next(value.strip() for field, _, value in (line.partition(":") for line in lines) if field == name)


def is_possible() -> bool:
    """Another Python may have another Popen."""
    known = tuple(signature(subprocess.Popen._execute_child).parameters)  # type: ignore[attr-defined]
    return forks.are_possible() and known == ("self", *_PARAMETERS)


@contextmanager
def forked_commands(*modules: str) -> Iterator[None]:
    """Commands that are started meanwhile are forks, unless something asks for more than a fork can have. So are other
    modules, if they are named here."""
    server = ForkServer(modules)
    plain = subprocess.Popen._execute_child  # type: ignore[attr-defined]

    def execute_child(process: Any, *values: Any) -> None:
        given = dict(zip(_PARAMETERS, values, strict=True))
        if not server.is_ours or not _is_command(given, server.modules):
            plain(process, *values)
            return
        streams = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        request = Request(
            module=given["args"][2],
            arguments=list(map(os.fspath, given["args"][3:])),
            environ=dict(os.environ if given["env"] is None else given["env"]),
            directory=str(Path(given["cwd"] or ".").resolve(strict=True)),
            umask=_umask(),
            new_session=bool(given["start_new_session"]),
        )
        process.pid = server.start(request, [number if fd == -1 else fd for number, fd in enumerate(streams)])
        process._child_created = True
        process._close_pipe_fds(*(given[name] for name in _PARAMETERS if name.startswith(("p2c", "c2p", "err"))))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "_execute_child", execute_child)
        try:
            yield
        finally:
            server.stop()


def _is_command(given: Mapping[str, Any], modules: Collection[str]) -> bool:
    args: Sequence[object] = given["args"]
    own = any(given[name] for name in ("preexec_fn", "pass_fds", "shell", "gids"))
    own = own or max(given["process_group"], given["umask"]) >= 0
    environ = os.environ if given["env"] is None else given["env"]
    # Other variables of Python change how the interpreter starts.
    python = {name for name in environ if name.startswith("PYTHON")} - {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
    match args:
        case [sys.executable, "-m", module, *_]:
            return module in modules and not own and not python
        case _:
            return False
