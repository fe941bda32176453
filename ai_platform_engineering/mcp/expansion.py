"""Filling `${NAME}` and `${NAME:-default}` in a server's manifest entry with values from the environment.

Environment in, endpoint out. What was filled in is remembered, so that it can be kept out of logs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ai_platform_engineering.manifest import VARIABLE, McpServer
from ai_platform_engineering.mcp.errors import NotStartable
from ai_platform_engineering.mcp.launchers import cache_variables, is_launcher, registry_variables
from ai_platform_engineering.mcp.workspace import Workspace, home_of
from ai_platform_engineering.utils.redact import Redactor, looks_secret

INHERITED_VARIABLES = (
    *("PATH", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TMP", "TEMP", "SYSTEMROOT", "PATHEXT"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TZ"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
)
"""What a process needs in order to find programs, the network and the certificates it trusts. HOME is not inherited: a
server has its own."""

_LONG_ENOUGH_TO_BE_SECRET = 8


@dataclass(frozen=True, repr=False)
class Endpoint:
    """How to reach a server, every value filled in. Has no repr, because the values may be secrets."""

    name: str
    redact: Redactor
    """Takes every value that was filled in, and may be a secret, out of a text."""
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    directory: Path | None = None
    """The working directory of the process."""
    url: str = ""
    headers: Mapping[str, str] | None = None
    module: str = ""


def endpoint(server: McpServer, environ: Mapping[str, str], workspace: Workspace | None = None) -> Endpoint:
    """Where `server` is with the values of `environ`; raises `NotStartable` naming every variable that is missing.

    An entry of `env` or `headers` that comes out empty is left out, so that `${NAME:-}` means "if there is one". A
    process runs in `workspace`, so paths that are relative to the supervisor's directory are made absolute.
    """
    if missing := missing_variables(server, environ):
        raise NotStartable(f"was not started because {_listed(missing)} {'is' if len(missing) == 1 else 'are'} not set")
    user_home = home_of(environ)
    env = {name: _located(filled, user_home) for name, text in server.env.items() if (filled := _filled(text, environ))}
    headers = {name: filled for name, text in server.headers.items() if (filled := _filled(text, environ).strip())}
    command = _located(_filled(server.command or "", environ), user_home)
    inherited = _inherited(command, environ, user_home)
    own_home = {"HOME": str(workspace.home)} if workspace else {}
    used = {name: environ[name] for name in server.variables() if environ.get(name)}
    return Endpoint(
        name=server.name,
        redact=Redactor(_secrets(inherited, env | headers | used)),
        command=str(Path(command).absolute()) if os.sep in command else command,
        args=tuple(_located(_filled(arg, environ), user_home, files_too=True) for arg in server.args),
        env=inherited | own_home | env,
        directory=workspace.directory if workspace else None,
        url=_filled(server.url or "", environ),
        headers=headers,
        module=server.module or "",
    )


def missing_variables(server: McpServer, environ: Mapping[str, str]) -> list[str]:
    """The names in `server` that have neither a value nor a default."""
    texts = (server.command or "", server.url or "", *server.args, *server.env.values(), *server.headers.values())
    matches = (match for text in texts for match in VARIABLE.finditer(text))
    return sorted({match["name"] for match in matches if match["default"] is None and not environ.get(match["name"])})


def _inherited(command: str, environ: Mapping[str, str], user_home: Path) -> dict[str, str]:
    inherited = {name: environ[name] for name in INHERITED_VARIABLES if name in environ}
    if "PATH" in inherited:
        inherited["PATH"] = _with_own_programs(inherited["PATH"])
    # Credentials of a registry are for the launcher; a server that is started without one has no use for them.
    registries = registry_variables(environ) if is_launcher(command) else {}
    return inherited | registries | cache_variables(environ, user_home)


def _located(text: str, user_home: Path, *, files_too: bool = False) -> str:
    """A path relative to the user's home or to the supervisor's directory as an absolute one; other text as it is."""
    if text.startswith("~/"):
        return str(user_home / text[2:])
    if text.startswith(("./", "../")) or (files_too and _names_file(text)):
        return str(Path(text).absolute())
    return text


def _names_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def _with_own_programs(path: str) -> str:
    """`uvx` is installed with the product, in a folder that is on nobody's PATH when it is run from there."""
    return os.pathsep.join((path, str(Path(sys.executable).parent)))


def _filled(text: str, environ: Mapping[str, str]) -> str:
    return VARIABLE.sub(lambda match: environ.get(match["name"]) or match["default"] or "", text)


def _secrets(inherited: dict[str, str], given: dict[str, str]) -> Iterator[str]:
    for name, value in given.items():
        if looks_secret(name) or (len(value) >= _LONG_ENOUGH_TO_BE_SECRET and not _plain_address(value)):
            yield value
            # A server may show what follows "Bearer" by itself.
            yield value.rpartition(" ")[2]
    for name, value in inherited.items():
        if looks_secret(name):
            yield value
    for value in (inherited | given).values():
        if password := _password_in(value):
            yield from (password, unquote(password))


def _plain_address(value: str) -> bool:
    return value.startswith(("http://", "https://")) and "@" not in value and "?" not in value


def _password_in(value: str) -> str | None:
    """The password of an address such as `https://user:password@host`, as a proxy's often is."""
    try:
        return urlsplit(value).password
    except ValueError:
        return None


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
