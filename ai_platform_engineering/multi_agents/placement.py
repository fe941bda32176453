"""Placement: which agents are enabled, where each runs, and why. Pure functions, no I/O.

`ENABLE_<NAME>` takes precedence over `DISTRIBUTED_AGENTS`, which takes precedence over `DISTRIBUTED_MODE`. If none of
them is set, an agent with a configured backend is enabled and runs in-process.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

from ai_platform_engineering.manifest import AgentManifest, McpServer
from ai_platform_engineering.settings import Settings, SettingsError, parse_flag, wrong_value

Where = Literal["in-process", "remote"]

EVERY_AGENT: Final = "__all__"
DEFAULT_PORT: Final = 8000

_ADDRESS_VARIABLE: Final = re.compile(r"(?P<name>[A-Z][A-Z0-9_]*)_AGENT_(?:URL|HOST)")
_HOST: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_.])?")

# Monitoring products use variables of the same form (DD_AGENT_HOST, JAEGER_AGENT_HOST). They are agents of ours only if
# ENABLE_<NAME> or DISTRIBUTED_AGENTS names them.
_MONITORING: Final = frozenset({"dd", "dd_trace", "instana", "jaeger", "otel_exporter_jaeger"})


@dataclass(frozen=True)
class AgentEntry:
    """One known agent. `address` is set if it is enabled and remote. An agent without a manifest is always remote."""

    name: str
    enabled: bool
    where: Where
    why: str
    address: str | None = None
    manifest: AgentManifest | None = None
    sandboxed: bool = False

    @property
    def has_real_backend(self) -> bool:
        """Whether this process runs the agent against a real backend, not the sandbox."""
        if not self.enabled or self.manifest is None or self.where == "remote" or self.sandboxed:
            return False
        return bool(self.manifest.requires) or any(server.transport != "memory" for server in self.manifest.servers)

    def servers(self) -> list[McpServer]:
        """The MCP servers that this process runs for the agent: those of its manifest, or its sandbox server."""
        if self.manifest is None or self.where == "remote":
            return []
        if self.sandboxed:
            return [McpServer(name=self.name, transport="memory", module=self.manifest.sandbox)]
        return list(self.manifest.servers)


def parse_distributed(distributed_agents: str, distributed_mode: bool) -> frozenset[str]:
    """The agents to run remotely: names in lower case, `{EVERY_AGENT}`, or an empty set."""
    if not distributed_agents.strip():
        return frozenset({EVERY_AGENT}) if distributed_mode else frozenset()
    names = frozenset(token.strip().lower() for token in distributed_agents.split(",") if token.strip())
    return frozenset({EVERY_AGENT}) if "all" in names else names


def is_distributed(name: str, distributed: Iterable[str]) -> bool:
    """Whether `distributed`, a result of `parse_distributed`, includes this agent."""
    return not {name, EVERY_AGENT}.isdisjoint(distributed)


def resolve_address(name: str, environ: Mapping[str, str]) -> str:
    """The URL of a remote agent: its URL setting, else host and port settings, else its usual container name."""
    variable = _prefix(name)
    if url := _value(environ, f"{variable}_AGENT_URL"):
        return _checked_url(f"{variable}_AGENT_URL", url)
    host = _value(environ, f"{variable}_AGENT_HOST")
    port = _port(f"{variable}_AGENT_PORT", environ)
    if host:
        return f"http://{_checked_host(f'{variable}_AGENT_HOST', host)}:{port}"
    return f"http://agent-{name.replace('_', '-')}:{port}"


def resolve(manifests: Mapping[str, AgentManifest], settings: Settings, sandbox_on: bool) -> list[AgentEntry]:
    """One entry per known agent, sorted by name: agents with a manifest, and agents with only an address."""
    environ = settings.environ
    distributed = parse_distributed(settings.distributed_agents, settings.distributed_mode)
    entries = [_place(manifest, settings, distributed, sandbox_on) for manifest in manifests.values()]
    entries += [_place_address_only(name, environ) for name in _address_only(environ, manifests, distributed)]
    return sorted(entries, key=lambda entry: entry.name)


def placement_problems(manifests: Mapping[str, AgentManifest], settings: Settings) -> list[str]:
    """One message for each unknown name in `DISTRIBUTED_AGENTS`."""
    distributed = parse_distributed(settings.distributed_agents, settings.distributed_mode)
    known = {*manifests, *_address_only(settings.environ, manifests, distributed)}
    return [_unknown_name(name, sorted(known)) for name in sorted(distributed - known - {EVERY_AGENT})]


def half_configured(entries: Iterable[AgentEntry], environ: Mapping[str, str]) -> dict[str, str]:
    """Agents with only some of their backend's settings: a message about the missing ones, by agent."""
    problems = {}
    for entry in entries:
        if entry.manifest is None or entry.where == "remote" or _enable_flag(entry.name, environ) is False:
            continue
        missing = entry.manifest.missing(environ)
        given = [name for name in entry.manifest.requires if name not in missing]
        if not (missing and given):
            continue
        instead = "it answers from the sandbox" if entry.sandboxed else "it is off" if not entry.enabled else "it fails"
        verb = "is" if len(given) == 1 else "are"
        problems[entry.name] = f"{_listed(given)} {verb} set, but {_not_set(missing)}, so {instead}."
    return problems


def standalone(name: str, manifests: Mapping[str, AgentManifest], settings: Settings, sandbox_on: bool) -> AgentEntry:
    """The entry of an agent that this process serves alone. It is in-process regardless of the placement settings."""
    manifest = manifests.get(name.lower())
    if manifest is None:
        raise SettingsError(f"There is no agent named {name!r}.{_suggestion(name, sorted(manifests))}")
    sandboxed = sandbox_on and manifest.sandbox is not None
    why = _local_reason(manifest, manifest.missing(settings.environ), sandboxed)
    return AgentEntry(manifest.name, True, "in-process", why, manifest=manifest, sandboxed=sandboxed)


def sandbox_is_on(settings: Settings, manifests: Mapping[str, AgentManifest]) -> bool:
    """The value of `SANDBOX`; for `auto`, whether no agent has the settings of its real backend.

    Agents without required settings do not count.
    """
    match settings.sandbox:
        case "true":
            return True
        case "false":
            return False
        case _:
            return not any(
                manifest.requires and manifest.configured(settings.environ) for manifest in manifests.values()
            )


def needs_connectivity_check(settings: Settings, entries: Iterable[AgentEntry]) -> bool:
    """Whether remote agents are checked: as the setting says, by default if there are any."""
    if settings.skip_agent_connectivity_check is not None:
        return not settings.skip_agent_connectivity_check
    return any(entry.enabled and entry.where == "remote" for entry in entries)


def _place(manifest: AgentManifest, settings: Settings, distributed: frozenset[str], sandbox_on: bool) -> AgentEntry:
    name, environ = manifest.name, settings.environ
    flag = _enable_flag(name, environ)
    missing = manifest.missing(environ)
    has_sandbox = sandbox_on and manifest.sandbox is not None
    has_address = bool(_address_variable(name, environ))
    placed_remote = is_distributed(name, distributed)

    if flag is False:
        why = f"ENABLE_{_prefix(name)}=false"
        return AgentEntry(name, False, "remote" if placed_remote else "in-process", why, manifest=manifest)
    if flag is None and missing and not (has_sandbox or has_address or name in distributed):
        why = _not_set(missing)
        return AgentEntry(name, False, "remote" if placed_remote else "in-process", why, manifest=manifest)
    if placed_remote:
        why = _distribution_reason(name, settings, distributed)
        return AgentEntry(name, True, "remote", why, resolve_address(name, environ), manifest)
    if has_address and missing and not has_sandbox:
        why = "its address is set and nothing else is configured"
        return AgentEntry(name, True, "remote", why, resolve_address(name, environ), manifest)
    why = _local_reason(manifest, missing, has_sandbox)
    return AgentEntry(name, True, "in-process", why, manifest=manifest, sandboxed=has_sandbox)


def _place_address_only(name: str, environ: Mapping[str, str]) -> AgentEntry:
    if _enable_flag(name, environ) is False:
        return AgentEntry(name, False, "remote", f"ENABLE_{_prefix(name)}=false")
    kind = "URL" if _value(environ, f"{_prefix(name)}_AGENT_URL") else "host"
    return AgentEntry(name, True, "remote", f"only a {kind} is known", resolve_address(name, environ))


def _address_only(
    environ: Mapping[str, str], manifests: Mapping[str, AgentManifest], distributed: frozenset[str]
) -> list[str]:
    names = {
        match["name"].lower()
        for variable in environ
        if (match := _ADDRESS_VARIABLE.fullmatch(variable)) and _value(environ, variable)
    }
    return sorted(
        name
        for name in names - manifests.keys()
        if name not in _MONITORING or name in distributed or _enable_flag(name, environ)
    )


def _local_reason(manifest: AgentManifest, missing: Sequence[str], sandboxed: bool) -> str:
    if sandboxed:
        return "sandbox"
    if missing:
        return f"enabled, but {_not_set(missing)}"
    return "configured" if manifest.requires else "needs no settings"


def _distribution_reason(name: str, settings: Settings, distributed: frozenset[str]) -> str:
    if name in distributed:
        return "named in DISTRIBUTED_AGENTS"
    return "DISTRIBUTED_AGENTS=all" if settings.distributed_agents.strip() else "DISTRIBUTED_MODE=true"


def _unknown_name(name: str, known: Sequence[str]) -> str:
    variable = f"{re.sub(r'[^A-Z0-9]+', '_', name.upper()).strip('_')}_AGENT_URL"
    return (
        f"DISTRIBUTED_AGENTS names {name!r}, which is not a known agent.{_suggestion(name, known)}"
        f" An agent without a manifest needs its address in {variable}."
    )


def _suggestion(name: str, known: Sequence[str]) -> str:
    if near := difflib.get_close_matches(name.lower().replace("-", "_"), known, n=1):
        return f" Did you mean {near[0]!r}?"
    return f" Known agents: {', '.join(known)}." if known else " No agent is known."


def _not_set(missing: Sequence[str]) -> str:
    return f"{_listed(missing)} {'is' if len(missing) == 1 else 'are'} not set"


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _enable_flag(name: str, environ: Mapping[str, str]) -> bool | None:
    variable = f"ENABLE_{_prefix(name)}"
    value = _value(environ, variable)
    return parse_flag(variable, value) if value else None


def _address_variable(name: str, environ: Mapping[str, str]) -> str:
    prefix = _prefix(name)
    return _value(environ, f"{prefix}_AGENT_URL") or _value(environ, f"{prefix}_AGENT_HOST")


def _checked_url(variable: str, url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        usable = usable and not (parts.query or parts.fragment) and not re.search(r"\s", url)
    except ValueError:
        usable = False
    if not usable:
        allowed = f"the address of an agent, for example http://host:{DEFAULT_PORT}"
        raise SettingsError(wrong_value(variable, url, allowed))
    return url.rstrip("/")


def _checked_host(variable: str, host: str) -> str:
    bare = host.removeprefix("[").removesuffix("]")
    try:
        return f"[{bare}]" if ipaddress.ip_address(bare).version == 6 else bare
    except ValueError:
        if _HOST.fullmatch(host):
            return host
    allowed = f"a host name or an IP address (set {variable.removesuffix('HOST')}URL for a whole URL)"
    raise SettingsError(wrong_value(variable, host, allowed))


def _port(variable: str, environ: Mapping[str, str]) -> int:
    value = _value(environ, variable)
    # Kubernetes sets <SERVICE>_PORT=tcp://<address> for every service, including one named "x-agent".
    if not value or value.startswith(("tcp://", "udp://")):
        return DEFAULT_PORT
    if not (re.fullmatch(r"[0-9]{1,5}", value) and 1 <= int(value) <= 65535):
        raise SettingsError(wrong_value(variable, value, "a whole number from 1 to 65535"))
    return int(value)


def _value(environ: Mapping[str, str], variable: str) -> str:
    return environ.get(variable, "").strip()


def _prefix(name: str) -> str:
    return name.upper()
