"""Locked packages: the programs of stdio servers, installed before they are used.

A directory with `package.json` and `package-lock.json`, or with `requirements.txt`, names every package of the tree
with its hash. `agents install` installs it below `MCP_SERVERS_DIR`; a server starts from there without a registry.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp.errors import NotSent
from ai_platform_engineering.mcp.expansion import INHERITED_VARIABLES
from ai_platform_engineering.mcp.launchers import registry_variables
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.redact import redact

_NPM_FILES: Final = ("package.json", "package-lock.json")
_REQUIREMENTS: Final = "requirements.txt"
_PYTHON_VERSION: Final = ".python-version"
_COMPLETE: Final = ".complete"
"""A file that is written when everything else is installed."""
_DIGEST_LENGTH: Final = 12
_SHOWN: Final = 400


class InstallError(Exception):
    """A package could not be installed. The text says what to do."""


class NoRuntimeError(InstallError):
    """The machine lacks Node.js or a version of Python."""


def directory_of(lock: Path, settings: Settings) -> Path:
    """Where the package is installed. A changed lock has another directory."""
    digest = hashlib.sha256()
    for name in (*_NPM_FILES, _REQUIREMENTS):
        if (file := lock / name).is_file():
            digest.update(file.read_bytes())
    return settings.servers_dir / f"{lock.name}-{digest.hexdigest()[:_DIGEST_LENGTH]}"


def is_installed(lock: Path, settings: Settings) -> bool:
    return (directory_of(lock, settings) / _COMPLETE).is_file()


def located(agent: str, server: McpServer, settings: Settings) -> McpServer:
    """The server with the path of its installed program. Raises `NotSent` if its package is not installed."""
    if server.package is None or server.command is None:
        return server
    lock = Path(server.package)
    if not is_installed(lock, settings):
        raise NotSent(f"is not installed; `platform-engineer agents install {agent}` installs it")
    programs = "" if os.sep in server.command else "node_modules/.bin" if _is_npm(lock) else "bin"
    return server.model_copy(update={"command": str(directory_of(lock, settings) / programs / server.command)})


def install(lock: Path, settings: Settings) -> bool:
    """Install the package with all its dependencies; False if it was installed already. Raises `InstallError`.

    No code of an npm package runs during the installation.
    """
    with _locked(settings.servers_dir):
        if is_installed(lock, settings):
            return False
        directory = directory_of(lock, settings)
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        if _is_npm(lock):
            _install_npm(lock, directory, settings.environ)
        else:
            _install_python(lock, directory, settings.environ)
        (directory / _COMPLETE).touch()
        for other in settings.servers_dir.glob(f"{lock.name}-{'?' * _DIGEST_LENGTH}"):
            if other != directory:
                shutil.rmtree(other, ignore_errors=True)
    return True


def _is_npm(lock: Path) -> bool:
    return (lock / _NPM_FILES[0]).is_file()


def _install_npm(lock: Path, directory: Path, environ: Mapping[str, str]) -> None:
    npm = _found("npm", environ)
    if npm is None:
        raise NoRuntimeError(f"{lock.name} needs Node.js 20 or newer with npm: install it and run this again.")
    for name in _NPM_FILES:
        shutil.copy(lock / name, directory)
    _run([npm, "ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund"], directory, lock.name, environ)


def _install_python(lock: Path, directory: Path, environ: Mapping[str, str]) -> None:
    uv = _found("uv", environ)
    if uv is None:
        raise NoRuntimeError(f"{lock.name} needs uv: install it with `pip install uv` and run this again.")
    version_file, requirements = lock / _PYTHON_VERSION, lock / _REQUIREMENTS
    version = version_file.read_text(encoding="utf-8").strip() if version_file.is_file() else sys.executable
    try:
        _run([uv, "venv", "--quiet", "--allow-existing", "--python", version, directory], directory, lock.name, environ)
    except InstallError:
        if version == sys.executable:
            raise
        raise NoRuntimeError(
            f"{lock.name} needs Python {version}, which uv cannot find or download: install it and run this again."
        ) from None
    python = str(directory / "bin/python")
    sync: list[str | Path] = [uv, "pip", "sync", "--quiet", "--python", python, "--require-hashes"]
    _run([*sync, "--build-constraints", requirements, requirements], directory, lock.name, environ)


def _run(command: list[str | Path], directory: Path, name: str, environ: Mapping[str, str]) -> None:
    env = {variable: environ[variable] for variable in (*INHERITED_VARIABLES, "HOME") if variable in environ}
    env |= registry_variables(environ)
    done = subprocess.run(command, cwd=directory, env=env, capture_output=True, check=False, text=True)  # noqa: S603
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip() and "complete log" not in line]
        raise InstallError(f"{name} was not installed: {redact(' '.join(lines)[-_SHOWN:])}")


def _found(program: str, environ: Mapping[str, str]) -> str | None:
    """The program in the PATH, or next to the product's Python."""
    return shutil.which(program, path=os.pathsep.join((environ.get("PATH", ""), str(Path(sys.executable).parent))))


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """One installation at a time."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o755)
        with (directory / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    except PermissionError as error:
        raise InstallError(
            f"{directory} cannot be written: {error.strerror}. Choose another directory with MCP_SERVERS_DIR."
        ) from None
