"""Launchers: `npx` and `uvx` download a server into their cache and run it from there.

A launcher first runs from its cache, so that a restart needs no registry. If that fails and `MCP_ALLOW_DOWNLOADS` is
on, it runs again with the longer timeout of a download.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

LAUNCHERS: Final = frozenset({"npx", "npm", "uvx", "uv"})
_WINDOWS_SUFFIX: Final = re.compile(r"\.(cmd|exe)$", re.IGNORECASE)
_OFFLINE: Final = "--offline"
# With one of these options the manifest requests the newest version of the registry.
_NEWEST: Final = frozenset({"--refresh", "--upgrade", "-U", "--prefer-online"})
_OWN_SETTING: Final = re.compile(r"(UV|npm_config)_\w+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Launch:
    """One command line that starts a server."""

    args: tuple[str, ...]
    downloads: bool = False
    """Whether the launcher may download the server first."""


def launches(command: str, args: Sequence[str], *, downloads: bool) -> tuple[Launch, ...]:
    """The command lines for this server. Each is tried if the process of the previous one exited during the start.

    Without `downloads`, a launcher runs from its cache only.
    """
    given = tuple(args)
    if not is_launcher(command) or _OFFLINE in given:
        return (Launch(given),)
    if not downloads:
        return (Launch((_OFFLINE, *given)),)
    cached, fetched = Launch((_OFFLINE, *given)), Launch(given, downloads=True)
    newest = any(arg in _NEWEST or arg.endswith("@latest") for arg in given)
    return (fetched, cached) if newest else (cached, fetched)


def is_launcher(command: str) -> bool:
    return _WINDOWS_SUFFIX.sub("", PurePath(command).name) in LAUNCHERS


def registry_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The launchers' settings in the environment, for example `UV_DEFAULT_INDEX` and `npm_config_registry`."""
    return {name: value for name, value in environ.items() if _OWN_SETTING.fullmatch(name)}


def cache_variables(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """The paths of the launchers' caches and configuration files, for a process with another HOME."""
    config, data, cache = (
        _xdg(environ, name, home / default)
        for name, default in (
            ("XDG_CONFIG_HOME", ".config"),
            ("XDG_DATA_HOME", ".local/share"),
            ("XDG_CACHE_HOME", ".cache"),
        )
    )
    uv_config, npm_config = config / "uv/uv.toml", home / ".npmrc"
    files = {"UV_CONFIG_FILE": uv_config, "npm_config_userconfig": npm_config, "NETRC": home / ".netrc"}
    found = {name: str(file) for name, file in files.items() if file.is_file()}
    found |= {"UV_PYTHON_INSTALL_DIR": str(data / "uv/python"), "UV_TOOL_DIR": str(data / "uv/tools")}
    # A variable would override the user's configuration file.
    if not _sets(uv_config, "cache-dir"):
        found["UV_CACHE_DIR"] = str(cache / "uv")
    if not _sets(npm_config, "cache"):
        found["npm_config_cache"] = str(home / ".npm")
    given = {name.lower(): value for name, value in environ.items()}
    return {name: _absolute(given.get(name.lower())) or path for name, path in found.items()}


def _xdg(environ: Mapping[str, str], name: str, default: Path) -> Path:
    given = Path(environ.get(name, ""))
    return given if given.is_absolute() else default


def _sets(file: Path, key: str) -> bool:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return any(line.partition("=")[0].strip() == key for line in lines)


def _absolute(path: str | None) -> str | None:
    return str(Path(path).absolute()) if path else None
