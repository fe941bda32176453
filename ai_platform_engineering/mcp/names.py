"""Names of tools: a server's own name, which people and manifests use, and the one a model is given for it.

Providers refuse a whole request for one name that is not `[a-zA-Z0-9_-]{1,64}`; MCP servers may call a tool anything.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from typing import Final

MAX_LENGTH: Final = 64
GRAPH_TOOLS: Final = frozenset({"request_user_input", "read_result", "read_skill", "search_skills"})
"""Tools that every agent has besides those of its servers."""
_STEERING_TOOLS: Final = frozenset({"task", "write_todos", "start_workflow"})
"""Tools of the supervisor. A model that knows them must not take an agent's tool for one."""
_NOT_ALLOWED: Final = re.compile(r"[^a-zA-Z0-9_-]+")
_HASH_LENGTH: Final = 6


def unique_name(tool: str, server: str, taken: Collection[str]) -> str | None:
    """The tool's own name, or with the server's name before it if that is taken; None if both are."""
    return next((name for name in (tool, f"{server}_{tool}") if name not in taken), None)


def model_names(servers: Mapping[str, str]) -> dict[str, str]:
    """The model's name for each of an agent's tools, given with their servers. A name that can stay stays."""
    kept = {name for name in servers if provider_name(name) == name and name not in _STEERING_TOOLS}
    given = dict.fromkeys(kept)
    names: dict[str, str] = {name: name for name in kept}
    for name in servers:
        if name in kept:
            continue
        wanted = f"{servers[name]}_{name}" if name in _STEERING_TOOLS else name
        fitting = provider_name(wanted)
        names[name] = fitting if fitting not in given and fitting not in GRAPH_TOOLS else _with_hash(fitting, name)
        given[names[name]] = None
    return names


def provider_name(name: str) -> str:
    """The name as providers take it, the same for the same name."""
    fitting = _NOT_ALLOWED.sub("_", name)
    return fitting if 0 < len(fitting) <= MAX_LENGTH else _with_hash(fitting, name)


def _with_hash(fitting: str, name: str) -> str:
    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:_HASH_LENGTH]
    return f"{fitting[: MAX_LENGTH - _HASH_LENGTH - 1]}_{digest}"
