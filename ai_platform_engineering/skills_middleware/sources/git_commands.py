"""Runs the `git` program without prompts, hooks, submodules, or the Git configuration of the machine and its users."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ai_platform_engineering.skills_middleware.sources.git_address import GitAddress
from ai_platform_engineering.utils.redact import Redactor

_PASSED_ON: Final = ("PATH", "HOME", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "TMPDIR")
_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_CONFIGURATION: Final = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    # Larger files are streamed, so that no file can exhaust the memory while a pack is received.
    "core.bigFileThreshold": "1m",
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "http.followRedirects": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "20",
    "protocol.version": "2",
}
_SIZE_CHECK_SECONDS: Final = 0.2

_WAYS_OUT: Final = (
    (("redirect", " 301", " 302", " 307", " 308"), "The server redirects; write the address it redirects to"),
    (
        ("could not read Username", "could not read Password", "Authentication failed", " 401", " 403"),
        "Set SKILLS_GIT_TOKEN to a token that may read the repository",
    ),
    (("Permission denied", "Host key verification"), "Check the SSH key and the known hosts of this user"),
    (
        ("couldn't find remote ref", "not our ref", "upload-pack: not"),
        "Check the part after the @: a branch, a tag, or all 40 digits of a commit",
    ),
    (("not found", "does not appear to be a git repository", " 404"), "Check the address"),
)
_NETWORK: Final = "Check the address and the network, then refresh the skills"


class GitError(Exception):
    """Git failed. The text gives the reason and the way out, without credentials."""


@dataclass(frozen=True, slots=True)
class Git:
    """The `git` program with the environment variables for one repository, credentials included."""

    environment: Mapping[str, str] = field(repr=False)
    redactor: Redactor = field(repr=False)

    @classmethod
    def for_address(cls, address: GitAddress, token: str | None = None) -> Git:
        """Credentials are passed in the environment, because other users of the machine can read command lines."""
        configuration = dict(_CONFIGURATION)
        secrets = [secret for secret in (token, address.password, address.user) if secret]
        if address.password is not None or (address.user is not None and token is None):
            credentials: tuple[str, str] | None = address.user or "", address.password or ""
        elif token is not None and address.address.startswith("https://"):
            # Hosts that accept tokens ignore the user name.
            credentials = address.user or "x-access-token", token
        else:
            credentials = None
        if credentials is not None:
            basic = base64.b64encode(":".join(credentials).encode()).decode()
            configuration[f"http.{address.address}.extraHeader"] = f"Authorization: Basic {basic}"
            secrets.append(basic)
        protocols = ["https", "ssh", "file", *(["http"] if address.address.startswith("http://") else [])]
        return cls(_environment(configuration, protocols), Redactor(secrets))

    async def run(
        self,
        *arguments: str,
        directory: Path,
        seconds: float,
        stdin: bytes | None = None,
        max_size: int | None = None,
    ) -> bytes:
        """Run a command in `directory`, which may grow to `max_size` bytes. Returns its output; raises `GitError`."""
        try:
            process = await asyncio.create_subprocess_exec(
                "git",
                *arguments,
                cwd=directory,
                env=dict(self.environment),
                # uvloop fails if git closes a pipe without reading it.
                stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise GitError(
                "The program git is not installed. Install it (in the image: WITH_GIT=true), or remove SKILLS_GIT."
            ) from None
        except OSError as error:
            raise GitError(f"The program git cannot be started: {error.strerror}.") from None
        finished = asyncio.ensure_future(process.communicate(stdin))
        try:
            async with asyncio.timeout(seconds):
                if max_size is not None:
                    await _until_done_or_too_large(finished, directory, max_size)
                output, errors = await finished
        except TimeoutError:
            raise GitError(f"Git did not finish within {seconds:g} s. {_NETWORK}.") from None
        finally:
            finished.cancel()
            if process.returncode is None:
                # Git has child processes, which would continue the transfer.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if process.returncode != 0:
            raise self._failure(errors.decode("utf-8", "replace"))
        return output

    def _failure(self, errors: str) -> GitError:
        lines = [line.removeprefix("remote: ").strip() for line in errors.splitlines() if line.strip()]
        fatal = [line for line in lines if line.startswith(("fatal:", "error:", "ERROR:"))]
        line = self.redactor(" ".join((fatal or lines or ["it gives no reason"])[0].split()))[:300]
        reason = line.partition(": ")[2] if line.startswith(("fatal:", "error:", "ERROR:")) else line
        way_out = next((way for words, way in _WAYS_OUT if any(word in errors for word in words)), _NETWORK)
        return GitError(f"{reason.rstrip('.')}. {way_out}.")


async def _until_done_or_too_large(
    finished: asyncio.Future[tuple[bytes, bytes]], directory: Path, max_size: int
) -> None:
    while not finished.done():
        await asyncio.wait([finished], timeout=_SIZE_CHECK_SECONDS)
        if await asyncio.to_thread(_size, directory) > max_size:
            raise GitError(f"The repository has more than {max_size // 2**20} MB. Use one with skills only.")


def _size(directory: Path) -> int:
    size = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                size += os.lstat(f"{folder}/{name}").st_size
    return size


def _environment(configuration: Mapping[str, str], protocols: list[str]) -> dict[str, str]:
    passed_on = {*_PASSED_ON, *_PROXIES, *map(str.upper, _PROXIES)}
    environment = {name: value for name, value in os.environ.items() if name in passed_on}
    environment |= {
        "GIT_ALLOW_PROTOCOL": ":".join(protocols),
        "GIT_ASKPASS": "",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": str(len(configuration)),
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=10",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    for number, (key, value) in enumerate(configuration.items()):
        environment[f"GIT_CONFIG_KEY_{number}"] = key
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
    return environment
