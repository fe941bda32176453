"""Names of tools: the server's name, which people and manifests use, and the name for the model.

Providers refuse a request if one tool name is not `[a-zA-Z0-9_-]{1,64}`. MCP servers may use any name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from typing import Final

MAX_LENGTH: Final = 64
GRAPH_TOOLS: Final = frozenset({"request_user_input", "read_result", "read_skill", "search_skills"})
"""Tools that every agent has in addition to those of its servers."""
_SUPERVISOR_TOOLS: Final = frozenset({"task", "write_todos", "start_workflow"})
"""Tools of the supervisor. A model must not confuse an agent's tool with one of them."""
_NOT_ALLOWED: Final = re.compile(r"[^a-zA-Z0-9_-]+")
_HASH_LENGTH: Final = 6


def unique_name(tool: str, server: str, taken: Collection[str]) -> str | None:
    """The tool's own name, or `<server>_<tool>` if that is taken; None if both are taken."""
    return next((name for name in (tool, f"{server}_{tool}") if name not in taken), None)


def model_names(servers: Mapping[str, str]) -> dict[str, str]:
    """The model's name for each tool of an agent. `servers` has the server of each tool. Valid names do not change."""
    valid = {name for name in servers if provider_name(name) == name and name not in _SUPERVISOR_TOOLS}
    used = dict.fromkeys(valid)
    names: dict[str, str] = {name: name for name in valid}
    for name in servers:
        if name in valid:
            continue
        wanted = f"{servers[name]}_{name}" if name in _SUPERVISOR_TOOLS else name
        fitted = provider_name(wanted)
        names[name] = fitted if fitted not in used and fitted not in GRAPH_TOOLS else _with_hash(fitted, name)
        used[names[name]] = None
    return names


def provider_name(name: str) -> str:
    """A name that providers accept. Deterministic."""
    fitted = _NOT_ALLOWED.sub("_", name)
    return fitted if 0 < len(fitted) <= MAX_LENGTH else _with_hash(fitted, name)


def _with_hash(fitted: str, name: str) -> str:
    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:_HASH_LENGTH]
    return f"{fitted[: MAX_LENGTH - _HASH_LENGTH - 1]}_{digest}"
