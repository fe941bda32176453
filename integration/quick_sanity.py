"""Starts the supervisor with two remote agents, runs the streaming harness against them, and stops everything.

Uses containers if an engine and compose are available, plain processes otherwise. It always uses the offline model and
the sandbox, so it needs no key and does not depend on external services. `make quick-sanity` calls it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from dotenv import dotenv_values

ROOT: Final = Path(__file__).resolve().parent.parent
HARNESS: Final = ROOT / "integration" / "test_streaming_harness.py"
AGENTS: Final = ("github", "netutils")
ENV_FILE: Final = ROOT / "integration" / "quick-sanity.env"
COMPOSE_FILE: Final = ROOT / "docker-compose.dev.yaml"

ENGINE_SECONDS: Final = 20
START_SECONDS: Final = 60
STOP_SECONDS: Final = 10
DOCTOR_SECONDS: Final = 60

_READY = re.compile(r" is ready at (http://\S+)")


class QuickSanityError(Exception):
    """A part of the deployment is missing or does not answer. The text names it."""


@dataclass(frozen=True)
class Deployment:
    """A running supervisor, and the command that runs `doctor` in its environment."""

    url: str
    doctor: tuple[str, ...]
    environ: Mapping[str, str]
    directory: Path


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.quick_sanity", description=__doc__)
    modes = ("containers", "processes")
    parser.add_argument(
        "--with", dest="mode", choices=modes, help="how to start it (default: containers if there is an engine)"
    )
    options, pytest_arguments = parser.parse_known_args(argv)
    _SigtermHandler.install()
    mode = options.mode or ("containers" if engine_available() else "processes")
    print(f"Starting the supervisor and {' and '.join(AGENTS)} as {mode}.", flush=True)
    try:
        with containers() if mode == "containers" else processes() as deployment:
            check_placement(doctor_report(deployment))
            run_harness(deployment.url, pytest_arguments)
    except QuickSanityError as error:
        print(f"quick-sanity: {error}", file=sys.stderr)
        return 1
    print("The supervisor and both agents are up, are remote to each other, and stream as they should.")
    return 0


class _SigtermHandler:
    """SIGTERM exits through the `finally` blocks of all running parts, but not while a process is being started."""

    deferred = False
    received = False

    @classmethod
    def install(cls) -> None:
        signal.signal(signal.SIGTERM, cls._receive)

    @classmethod
    def _receive(cls, *_: object) -> None:
        if not cls.deferred:
            sys.exit(143)
        cls.received = True

    @classmethod
    @contextmanager
    def defer(cls) -> Iterator[None]:
        """Defer SIGTERM until the block has registered the process that it starts."""
        cls.deferred = True
        try:
            yield
        finally:
            cls.deferred = False
        if cls.received:
            cls.received = False
            sys.exit(143)


def engine_available() -> bool:
    """Whether a container engine answers and compose is installed."""
    if shutil.which("docker") is None:
        return False
    try:
        for command in (["docker", "info"], ["docker", "compose", "version"]):
            subprocess.run(command, capture_output=True, check=True, timeout=ENGINE_SECONDS)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return False
    return True


@contextmanager
def processes() -> Iterator[Deployment]:
    """Three processes on free ports, with a temporary data directory."""
    with TemporaryDirectory(prefix="quick-sanity-") as name, ExitStack() as running:
        directory = Path(name)
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        environ = {**inherited, "DATA_DIR": str(directory / "data")}
        shutil.copy(ENV_FILE, directory / ".env")
        agents = {name: running.enter_context(program(["agent", name], directory, environ)) for name in AGENTS}
        environ |= {f"{name.upper()}_AGENT_URL": agent.address() for name, agent in agents.items()}
        supervisor = running.enter_context(program(["serve"], directory, environ))
        yield Deployment(supervisor.address(), (*_PROGRAM, "doctor", "--json"), environ, directory)


_PROGRAM: Final = (sys.executable, "-m", "ai_platform_engineering.cli")


@dataclass(frozen=True)
class Program:
    """A running `platform-engineer` process and its output file."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def address(self) -> str:
        """Wait until the program is ready, and return its URL."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            if ready := _READY.search(self.output()):
                return ready[1]
            if ended:
                raise QuickSanityError(f"{self.name} did not start.")
            time.sleep(0.05)
        raise QuickSanityError(f"{self.name} was not ready within {START_SECONDS} seconds.")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def program(arguments: Sequence[str], directory: Path, environ: Mapping[str, str]) -> Iterator[Program]:
    """Run `platform-engineer ARGUMENTS` on a free port until the block ends. If the block fails, print its output.

    It runs in `directory`, so that a developer's .env file has no effect.
    """
    name = " ".join(arguments)
    log = directory / f"{name}.log"
    with ExitStack() as ending:
        with log.open("wb") as output, _SigtermHandler.defer():
            command = [*_PROGRAM, *arguments, "--port", "0"]
            process = subprocess.Popen(command, cwd=directory, env=environ, stdout=output, stderr=subprocess.STDOUT)
            running = Program(name, process, log)
            ending.callback(running.stop)
        try:
            yield running
            if process.poll() is not None:
                raise QuickSanityError(f"{name} exited unexpectedly with code {process.returncode}.")
        except Exception:
            print(f"--- {name} ---\n{running.output()}", file=sys.stderr)
            raise


@contextmanager
def containers() -> Iterator[Deployment]:
    """The services of the development compose file, in a separate project, on a free port."""
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    environ = {
        **{name: value for name, value in os.environ.items() if name not in dotenv_values(ENV_FILE)},
        "ENV_FILE": str(ENV_FILE),
        "A2A_HOST": "127.0.0.1",
        "A2A_PORT": str(port),
        "A2A_PUBLIC_URL": url,
    }
    compose = compose_command(f"quick-sanity-{os.getpid()}")
    try:
        # Waits until every health check succeeds, and fails when one does not.
        _compose(compose, ["up", "--detach", "--build", "--wait", "--wait-timeout", "180"], environ)
        doctor = (*compose, "exec", "--no-TTY", "caipe-supervisor", "platform-engineer", "doctor", "--json")
        yield Deployment(url, doctor, environ, ROOT)
    except Exception:
        subprocess.run([*compose, "logs", "--no-color"], cwd=ROOT, env=environ, check=False)
        raise
    finally:
        _compose(compose, ["down", "--volumes", "--remove-orphans", "--timeout", str(STOP_SECONDS)], environ)


def compose_command(project: str) -> tuple[str, ...]:
    profiles = [word for agent in AGENTS for word in ("--profile", agent)]
    files = ("--file", str(COMPOSE_FILE), "--env-file", str(ENV_FILE))
    return ("docker", "compose", "--project-name", project, *files, *profiles)


def _compose(compose: Sequence[str], arguments: Sequence[str], environ: Mapping[str, str]) -> None:
    code = subprocess.run([*compose, *arguments], cwd=ROOT, env=environ, check=False).returncode
    if code:
        raise QuickSanityError(f"docker compose {arguments[0]} ended with {code}.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def doctor_report(deployment: Deployment) -> Any:
    """The report of `doctor`, run in the supervisor's environment."""
    try:
        result = subprocess.run(
            deployment.doctor,
            cwd=deployment.directory,
            env=deployment.environ,
            stdout=subprocess.PIPE,
            check=False,
            timeout=DOCTOR_SECONDS,
        )
        return json.loads(result.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        raise QuickSanityError(f"doctor gave no report: {error}") from error


def check_placement(report: Any) -> None:
    """Raise unless each agent is enabled, remote, reachable, and has tools."""
    rows = {row["name"]: row for row in report["agents"]}
    for agent in AGENTS:
        row = rows.get(agent)
        if row is None:
            raise QuickSanityError(f"the supervisor knows no agent named {agent}.")
        if not row["enabled"] or row["where"] != "remote":
            raise QuickSanityError(f"{agent} does not run outside of the supervisor: {row['why']}.")
        if not row["reachable"] or not row["tools"]:
            raise QuickSanityError(f"{agent} at {row['address']} cannot be used: {row['problem'] or 'no tools'}.")


def run_harness(url: str, pytest_arguments: Sequence[str]) -> None:
    """Run the harness against a supervisor. Raise unless all its tests pass."""
    command = [sys.executable, "-m", "pytest", *pytest_arguments, str(HARNESS)]
    code = subprocess.run(command, cwd=ROOT, env={**os.environ, "SUPERVISOR_URL": url}, check=False).returncode
    if code:
        raise QuickSanityError(f"the streaming harness failed against {url}.")


if __name__ == "__main__":
    sys.exit(main())
