"""Expansion of `${NAME}` and `${NAME:-default}` in a server's manifest entry with values from the environment.

The result is an endpoint, which also redacts the inserted values in logs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import httpx

from ai_platform_engineering.manifest import VARIABLE, McpServer
from ai_platform_engineering.mcp.errors import NotStartable
from ai_platform_engineering.mcp.launchers import cache_variables, is_launcher, registry_variables
from ai_platform_engineering.mcp.workspace import ServerWorkspace, home_of
from ai_platform_engineering.utils.redact import Redactor, looks_secret, password_in

INHERITED_VARIABLES = (
    *("PATH", "USER", "LOGNAME", "SHELL", "TERM", "SYSTEMROOT", "PATHEXT"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TZ"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
)
"""Variables for programs, the network and trusted certificates. Not HOME and TMPDIR: each server has its own."""

_MIN_SECRET_LENGTH = 8


@dataclass(frozen=True, repr=False)
class Endpoint:
    """Command or address of a server, with all values expanded. It has no repr, because values may be secrets."""

    name: str
    redact: Redactor
    """Masks every inserted value that may be a secret in a text."""
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    given_env: Mapping[str, str] | None = None
    """The part of `env` that the manifest sets."""
    directory: Path | None = None
    """The working directory of the process."""
    confinement: str = ""
    """The rules of `confined.py` for the process, as JSON. Empty if it is not confined."""
    url: str = ""
    headers: Mapping[str, str] | None = None
    auth: httpx.Auth | None = None
    module: str = ""


def endpoint(server: McpServer, environ: Mapping[str, str], workspace: ServerWorkspace | None = None) -> Endpoint:
    """The endpoint of `server` with the values of `environ`. Raises `NotStartable` with all missing variables.

    An entry of `env` or `headers` with an empty value is omitted, so `${NAME:-}` makes it optional. A process runs in
    `workspace`, so paths relative to the supervisor's directory become absolute.
    """
    if missing := missing_variables(server, environ):
        raise NotStartable(f"was not started because {_listed(missing)} {'is' if len(missing) == 1 else 'are'} not set")
    user_home = home_of(environ)
    env = {
        name: _absolute_path(value, user_home)
        for name, text in server.env.items()
        if (value := expanded(text, environ))
    }
    headers = {name: value for name, text in server.headers.items() if (value := expanded(text, environ).strip())}
    command = _absolute_path(expanded(server.command or "", environ), user_home)
    inherited = _inherited(command, environ, user_home)
    directories = {"HOME": str(workspace.home), "TMPDIR": str(workspace.temporary)} if workspace else {}
    used = {name: environ[name] for name in server.variables() if environ.get(name)}
    return Endpoint(
        name=server.name,
        redact=Redactor(_secrets(inherited, env | headers | used)),
        command=str(Path(command).absolute()) if os.sep in command else command,
        args=tuple(_absolute_path(expanded(arg, environ), user_home, files=True) for arg in server.args),
        env=inherited | directories | env,
        given_env=env,
        directory=workspace.directory if workspace else None,
        url=expanded(server.url or "", environ),
        headers=headers,
        module=server.module or "",
    )


def missing_variables(server: McpServer, environ: Mapping[str, str]) -> list[str]:
    """The variables of `server` without a value and without a default."""
    matches = (match for text in server.texts() for match in VARIABLE.finditer(text))
    return sorted({match["name"] for match in matches if match["default"] is None and not environ.get(match["name"])})


def _inherited(command: str, environ: Mapping[str, str], user_home: Path) -> dict[str, str]:
    inherited = {name: environ[name] for name in INHERITED_VARIABLES if name in environ}
    if "PATH" in inherited:
        inherited["PATH"] = _with_product_programs(inherited["PATH"])
    if is_launcher(command):
        # Only a launcher needs a cache and the credentials of a registry.
        inherited |= registry_variables(environ) | cache_variables(environ, user_home)
    return inherited


def _absolute_path(text: str, user_home: Path, *, files: bool = False) -> str:
    """The absolute path for one relative to the user's home or the supervisor's directory; other text unchanged."""
    if text.startswith("~/"):
        return str(user_home / text[2:])
    if text.startswith(("./", "../")) or (files and _names_file(text)):
        return str(Path(text).absolute())
    return text


def _names_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def _with_product_programs(path: str) -> str:
    """`uvx` is installed next to the product's Python, which may not be on the PATH."""
    return os.pathsep.join((path, str(Path(sys.executable).parent)))


def expanded(text: str, environ: Mapping[str, str]) -> str:
    """The text with its placeholders replaced."""
    return VARIABLE.sub(lambda match: environ.get(match["name"]) or match["default"] or "", text)


def _secrets(inherited: dict[str, str], given: dict[str, str]) -> Iterator[str]:
    for name, value in given.items():
        if looks_secret(name) or (len(value) >= _MIN_SECRET_LENGTH and not _plain_address(value)):
            yield value
            # A server may log the token after "Bearer" alone.
            yield value.rpartition(" ")[2]
    for name, value in inherited.items():
        if looks_secret(name):
            yield value
    for value in (inherited | given).values():
        if password := password_in(value):
            yield from (password, unquote(password))


def _plain_address(value: str) -> bool:
    return value.startswith(("http://", "https://")) and "@" not in value and "?" not in value


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
