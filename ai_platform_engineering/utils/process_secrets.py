"""The secrets of this process: other processes of the same user cannot read them from its memory or its environment.

Linux only. A process of root with CAP_SYS_PTRACE can still read the memory.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from ai_platform_engineering.settings import Settings, secret_variables
from ai_platform_engineering.utils.redact import looks_secret

logger = logging.getLogger(__name__)

_PR_SET_DUMPABLE: Final = 4
# The fields of /proc/self/stat with the addresses of the initial environment, counted from the state (field 3).
_ENV_START, _ENV_END = 47, 48
# Libraries read these variables themselves, some of them with every request.
_LIBRARY_PREFIXES: Final = ("LANGSMITH_", "LANGCHAIN_", "OTEL_", "HF_", "PG", "GOOGLE_APPLICATION_", "AWS_CONTAINER_")


def hide_process() -> None:
    """Make /proc/<pid>/environ, mem, maps and fd unreadable for other processes of the same user, and ptrace too.

    The process then writes no core dump. Forks inherit this, executed programs do not.
    """
    if not sys.platform.startswith("linux"):
        logger.debug("Other processes of this user can read the memory of this one: only Linux can prevent it")
    elif ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        logger.warning("Other processes of this user can read the memory of this one: %s", _last_error())


def remove_secrets(settings: Settings) -> None:
    """Remove the secrets from the environment of this process, after the settings have been loaded from it.

    Processes that it starts do not inherit them, and /proc/<pid>/environ shows empty values.
    """
    names = removable(os.environ, settings)
    for name in names:
        del os.environ[name]
    if names and sys.platform.startswith("linux"):
        _overwrite_initial_values({os.fsencode(name) for name in names})


def removable(environ: Iterable[str], settings: Settings) -> list[str]:
    """The variables with secrets, without those that a library of this process reads from the environment itself."""
    if _uses_litellm(settings.environ):
        # It reads the keys of all providers.
        return []
    # Bedrock needs the region, and reads the credentials itself.
    kept = (*_LIBRARY_PREFIXES, "AWS_") if settings.aws_region else _LIBRARY_PREFIXES
    secrets = secret_variables()
    return [name for name in environ if (name in secrets or looks_secret(name)) and not name.startswith(kept)]


def _uses_litellm(environ: Mapping[str, str]) -> bool:
    return any(
        name.startswith("LITELLM_") or (name.endswith("LLM_PROVIDER") and value.lower() == "litellm")
        for name, value in environ.items()
    )


def _overwrite_initial_values(names: set[bytes]) -> None:
    """Clear values in the memory that the kernel filled at the start. `environ` no longer points to them."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
    if not 0 < start < end:
        return
    position = start
    for entry in ctypes.string_at(start, end - start).split(b"\0"):
        name, separator, value = entry.partition(b"=")
        if separator and name in names:
            ctypes.memset(position + len(name) + 1, 0, len(value))
        position += len(entry) + 1


def _last_error() -> str:
    return os.strerror(ctypes.get_errno())
