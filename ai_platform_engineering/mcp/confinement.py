"""What the process of a stdio server may read and write, and as which user it runs.

It can read programs, libraries and what its manifest names, but not the home directory of the supervisor's user, the
data directory, `.env` files in the working directory, temporary files of others or mounted secrets. It can write into
its workspace only. The kernel enforces this (Landlock), also for root. `confined.py` applies it.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from ai_platform_engineering.manifest import ELSEWHERE, McpServer
from ai_platform_engineering.mcp import confined as confined_program
from ai_platform_engineering.mcp.confined import CLOSED, READ, WRITE, landlock_version
from ai_platform_engineering.mcp.expansion import Endpoint
from ai_platform_engineering.mcp.launchers import cache_variables, is_launcher
from ai_platform_engineering.mcp.packages import directory_of
from ai_platform_engineering.mcp.workspace import ServerWorkspace, home_of
from ai_platform_engineering.settings import Settings, SettingsError, wrong_value
from ai_platform_engineering.utils.private_files import is_product_file

CHILD_USER: Final = "platform-mcp"
"""The user of stdio servers, if it exists and this process may become it."""

_MIN_LANDLOCK: Final = 2
"""The first version that allows to move files between directories."""
_SECRET_MOUNTS: Final = ("/run/secrets", "/run/user")
_PROGRAM_DIRECTORIES: Final = frozenset({"bin", "sbin", "shims"})
_DEVICES: Final = tuple(Path("/dev") / name for name in ("full", "null", "ptmx", "pts", "shm", "tty", "zero"))
_SETTINGS_FILES: Final = (".env", ".env.*", "*.env")
_SCRIPTS: Final = frozenset({".py", ".js", ".mjs", ".cjs", ".ts", ".sh"})
_NODE_MODULES: Final = "node_modules"
_PROJECT_FILES: Final = ("package.json", "pyproject.toml")
_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
_TOOL_DIRECTORIES: Final = ("UV_PYTHON_INSTALL_DIR", "UV_TOOL_DIR")
_LAUNCHER_DIRECTORIES: Final = (*_TOOL_DIRECTORIES, "UV_CACHE_DIR", "npm_config_cache")
_LAUNCHER_FILES: Final = ("UV_CONFIG_FILE", "npm_config_userconfig", "NETRC")
# The capabilities to become another user, own its files and signal it: CHOWN, KILL, SETGID, SETUID.
_SWITCH_CAPABILITIES: Final = sum(1 << bit for bit in (0, 5, 6, 7))


def isolation_gap(settings: Settings) -> str | None:
    """Why stdio servers can read the files of the supervisor's user, as a sentence; None if they cannot."""
    gap = "stdio servers run as the same user and can read its files"
    if not settings.mcp_confine:
        return f"{gap}, because MCP_CONFINE is off."
    if _has_landlock():
        return None
    if child_user(settings):
        return None
    return f"{gap}: that needs Landlock (Linux 5.19), or a supervisor that runs as root with MCP_CHILD_USER."


def child_user(settings: Settings) -> tuple[int, int] | None:
    """User and group id of stdio servers, if they run as another user. Raises `SettingsError` if they cannot."""
    if not settings.mcp_confine or not sys.platform.startswith("linux"):
        return None
    name = settings.mcp_child_user or CHILD_USER
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        if settings.mcp_child_user:
            raise SettingsError(wrong_value("MCP_CHILD_USER", name, "the name of a user of this machine")) from None
        return None
    if entry.pw_uid == os.geteuid():
        return None
    if not _may_switch_user():
        if settings.mcp_child_user:
            raise SettingsError(
                f"MCP_CHILD_USER={name} needs a supervisor that runs as root, with the capabilities CHOWN, KILL, "
                "SETGID and SETUID: start it that way, or unset MCP_CHILD_USER."
            )
        return None
    return entry.pw_uid, entry.pw_gid


def confined(server: McpServer, target: Endpoint, settings: Settings, workspace: ServerWorkspace) -> Endpoint:
    """`target` with the rules for its process; unchanged if no rules can be enforced here."""
    user, landlock = child_user(settings), _has_landlock()
    if not settings.mcp_confine or not (landlock or user):
        return target
    levels = {str(path): level for path, level in decisions(server, target, settings, workspace).items()}
    rules = {"landlock": landlock, "decisions": levels, "user": user}
    return replace(target, confinement=json.dumps(rules))


def command_line(target: Endpoint) -> tuple[str, ...]:
    """The command line of the process. Raises `FileNotFoundError` or `PermissionError` if the command cannot be run."""
    if not target.confinement:
        return target.command, *target.args
    command = _program(target)
    if command is None and os.sep in target.command and Path(target.command).exists():
        raise PermissionError(target.command)
    if command is None:
        raise FileNotFoundError(target.command)
    return sys.executable, "-I", "-S", confined_program.__file__, target.confinement, command, *target.args


def decisions(server: McpServer, target: Endpoint, settings: Settings, workspace: ServerWorkspace) -> dict[Path, int]:
    """The level of paths for this server. Later steps override earlier ones."""
    env = target.env or {}
    home = home_of(settings.environ).resolve()
    shared = _shared(server, target, home)
    # A manifest that names a directory shares everything below it.
    found = {path: CLOSED for path in _private_places(home) if not any(path.is_relative_to(other) for other in shared)}
    found |= shared
    found = {path: level for path, level in found.items() if not _is_product_data(path, settings.data_dir)}
    found |= dict.fromkeys(_product_files(settings.data_dir), CLOSED)
    read = [*_programs(env, _program(target), home), *_variables(env, _CERTIFICATES)]
    read += _variables(cache_variables(settings.environ, home), _TOOL_DIRECTORIES)
    read += _variables(env, _LAUNCHER_FILES) if is_launcher(target.command) else []
    found |= {path: max(READ, found.get(path, CLOSED)) for path in read}
    if is_launcher(target.command):
        found |= dict.fromkeys(_variables(env, _LAUNCHER_DIRECTORIES), WRITE)
    if server.package is not None:
        found[directory_of(Path(server.package), settings).resolve()] = READ
    return found | dict.fromkeys((workspace.root, *_DEVICES), WRITE)


def _private_places(home: Path) -> Iterator[Path]:
    """Directories with files of the user, of other processes and of the machine, which a server does not need."""
    places = (home, Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"), *map(Path, _SECRET_MOUNTS))  # noqa: S108
    yield from (place for place in map(Path.resolve, places) if place != Path(place.anchor))


def _is_product_data(path: Path, data_dir: Path) -> bool:
    """Whether a path is the data directory or in a file of the product there. A volume may also have other files."""
    root = data_dir.expanduser().resolve()
    return path == root or (path.is_relative_to(root) and is_product_file(path.relative_to(root).parts[0]))


def _product_files(data_dir: Path) -> Iterator[Path]:
    """The data directory, and the files with settings in the working directory. No manifest can share them."""
    yield data_dir.expanduser().resolve()
    with suppress(OSError):
        names = (path for pattern in _SETTINGS_FILES for path in Path.cwd().glob(pattern))
        yield from {path.resolve() for path in names if path.is_file()}


def _programs(env: Mapping[str, str], command: str | None, home: Path) -> Iterator[Path]:
    """Programs and libraries that may be below a private directory: of the product, the PATH, and the command."""
    yield from map(Path, (sys.prefix, sys.base_prefix))
    yield Path(__file__).parents[1]
    directories = [Path(entry) for entry in env.get("PATH", "").split(os.pathsep)]
    if command is not None:
        directories += [Path(command).parent, Path(command).resolve().parent]
    for directory in directories:
        if directory.is_absolute():
            resolved = directory.resolve()
            installation = resolved.parent if resolved.name in _PROGRAM_DIRECTORIES else resolved
            # Others store their data in ~/.local too.
            alone = installation in {home, home / ".local", Path("/")}
            yield resolved if alone else installation


def _shared(server: McpServer, target: Endpoint, home: Path) -> dict[Path, int]:
    """The paths that the manifest names: in its arguments and variables, as `home` and as `local_files`."""
    found: dict[Path, int] = {}
    private = {path for place in _private_places(home) for path in (place, *place.parents)}

    def share(path: Path, level: int) -> None:
        resolved = path.expanduser().resolve()
        found[resolved] = max(level, found.get(resolved, CLOSED))

    def share_named(text: str) -> None:
        if (path := _existing(text)) is not None:
            share(path, READ if path.suffix in _SCRIPTS else WRITE)
        elif (parent := _existing(str(Path(text).parent))) is not None and parent.resolve() not in private:
            # A file that the server creates.
            share(parent, WRITE)

    for argument in target.args:
        share_named(argument)
        share_named(argument.partition("=")[2])
    for argument in (target.command, *target.args):
        script = _existing(argument)
        if script is not None and script.suffix in _SCRIPTS and (project := _project(script.resolve())) not in private:
            share(project, READ)
    for value in (target.given_env or {}).values():
        for text in value.split(os.pathsep) if "://" not in value else ():
            share_named(text)
    for linked in server.home:
        share(home / linked, WRITE)
    for rules in server.local_files.values():
        for rule in rules.values():
            for allowed in rule if rule != ELSEWHERE else ():
                share(Path(allowed), WRITE)
    return found


def _project(script: Path) -> Path:
    """The directory with the modules of a script: of its package and its dependencies, or else its own."""
    if _NODE_MODULES in script.parts:
        return Path(*script.parts[: script.parts.index(_NODE_MODULES) + 1])
    described = (parent for parent in script.parents if any((parent / name).is_file() for name in _PROJECT_FILES))
    return next(described, script.parent)


def _existing(text: str) -> Path | None:
    try:
        path = Path(text)
        return path if path.is_absolute() and path != Path(path.anchor) and path.exists() else None
    except (OSError, ValueError):
        return None


def _variables(env: Mapping[str, str], names: Iterable[str]) -> list[Path]:
    return [Path(env[name]).resolve() for name in names if env.get(name)]


def _program(target: Endpoint) -> str | None:
    return shutil.which(target.command, path=(target.env or {}).get("PATH"))


def _has_landlock() -> bool:
    return landlock_version() >= _MIN_LANDLOCK


def _may_switch_user() -> bool:
    if os.geteuid() != 0:
        return False
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    effective = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    return effective & _SWITCH_CAPABILITIES == _SWITCH_CAPABILITIES
