"""The registry: all known agents with their placement, and the reachability of remote agents.

Placement is decided once, when the registry is created. Only the reachability changes afterwards; it is a read-only
mapping that each check replaces.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Self

import httpx

from ai_platform_engineering.manifest import AgentManifest, builtin_directory, load_manifests
from ai_platform_engineering.multi_agents.connectivity import Reachability, new_client, probe_all
from ai_platform_engineering.multi_agents.placement import (
    AgentEntry,
    Where,
    half_configured,
    needs_connectivity_check,
    placement_problems,
    resolve,
    sandbox_is_on,
)
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.settings.approval_overrides import parse_overrides, unknown_agents
from ai_platform_engineering.unknown_settings import unknown_settings
from ai_platform_engineering.utils.a2a_common.codec.labels import display, one_line
from ai_platform_engineering.utils.keys import opening_key
from ai_platform_engineering.utils.redact import redact

__all__ = ["AgentEntry", "AgentRegistry", "Reachability", "Where", "known_manifests"]

logger = logging.getLogger(__name__)

_MAX_TITLE_LENGTH: Final = 80


def known_manifests(settings: Settings) -> dict[str, AgentManifest]:
    """The built-in manifests and those in `AGENTS_DIR`, which replace built-in ones of the same name."""
    directories = [builtin_directory()]
    if settings.agents_dir is not None:
        directories.append(settings.agents_dir)
    return load_manifests(directories)


class AgentRegistry:
    """All known agents of one process. Call `aclose` after use."""

    def __init__(self, settings: Settings, manifests: Mapping[str, AgentManifest]) -> None:
        self._settings = settings
        self.sandbox_on = sandbox_is_on(settings, manifests)
        self.entries: tuple[AgentEntry, ...] = tuple(resolve(manifests, settings, self.sandbox_on))
        overrides = parse_overrides(settings.require_approval_overrides)
        self.half_configured = half_configured(self.entries, settings.environ)
        """Agents with only some of their backend's settings: a message about the missing ones, by agent."""
        self.problems: tuple[str, ...] = (
            *unknown_settings(settings, manifests),
            *placement_problems(manifests, settings),
            *unknown_agents(overrides, [entry.name for entry in self.entries]),
        )
        self._by_name = {entry.name: entry for entry in self.entries}
        self._reachability: Mapping[str, Reachability] = MappingProxyType({})
        self._client: httpx.AsyncClient | None = None

    @classmethod
    def load(cls, settings: Settings) -> Self:
        return cls(settings, known_manifests(settings))

    @property
    def warnings(self) -> list[str]:
        """All problems with the settings, for the log and `doctor`."""
        return [*self.problems, *(f"{name}: {missing}" for name, missing in self.half_configured.items())]

    def enabled(self) -> list[AgentEntry]:
        return [entry for entry in self.entries if entry.enabled]

    def local(self) -> list[AgentEntry]:
        return [entry for entry in self.enabled() if entry.where == "in-process"]

    def remote(self) -> list[AgentEntry]:
        return [entry for entry in self.enabled() if entry.where == "remote"]

    def entry(self, name: str) -> AgentEntry | None:
        return self._by_name.get(name)

    @property
    def reachability(self) -> Mapping[str, Reachability]:
        """Results of the last check by agent name. An agent that was never checked is missing."""
        return self._reachability

    def title(self, name: str) -> str:
        """The agent's display name, from its manifest or else from its card."""
        entry = self._by_name[name]
        if entry.manifest is not None:
            return entry.manifest.title
        found = self._reachability.get(name)
        return one_line(found.card_name, _MAX_TITLE_LENGTH) if found is not None and found.card_name else display(name)

    def description(self, name: str) -> str:
        """The agent's purpose in one line, from its manifest or else from its card."""
        entry = self._by_name[name]
        if entry.manifest is not None:
            return entry.manifest.description
        found = self._reachability.get(name)
        if found is not None and found.card_description:
            return " ".join(found.card_description.split())
        return f"The remote agent {name}."

    @property
    def client(self) -> httpx.AsyncClient:
        """HTTP client for the checks of remote agents."""
        if self._client is None:
            self._client = new_client()
        return self._client

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def check(self) -> Mapping[str, Reachability]:
        """Check the remote agents, unless the settings skip it, and log the state of all agents."""
        remote = self.remote()
        if remote and needs_connectivity_check(self._settings, self.entries):
            self._replace(await self._probe(remote, self._settings.agent_connectivity_timeout))
        self._log_entries()
        return self._reachability

    async def watch(self, on_change: Callable[[str], None]) -> None:
        """Check the remote agents periodically until cancelled.

        `on_change` is called with the name of an agent that became reachable or whose card has a new description.
        """
        remote = self.remote()
        if not remote or not needs_connectivity_check(self._settings, self.entries):
            return
        while True:
            await asyncio.sleep(self._settings.agent_recheck_interval)
            before = self._reachability
            self._replace(await self._probe(remote, self._settings.agent_connect_timeout))
            for entry in remote:
                if self._has_changed(entry, before.get(entry.name)):
                    _notify(on_change, entry.name)

    async def _probe(self, entries: Sequence[AgentEntry], deadline: float) -> dict[str, Reachability]:
        keys = {entry.name: key.value for entry in entries if (key := opening_key(self._settings, entry.name))}
        return await probe_all(entries, self.client, deadline=deadline, tokens=keys)

    def _replace(self, found: Mapping[str, Reachability]) -> None:
        self._reachability = MappingProxyType({**self._reachability, **found})

    def _has_changed(self, entry: AgentEntry, before: Reachability | None) -> bool:
        now = self._reachability[entry.name]
        was_ok = before is not None and before.ok
        if now.ok and not was_ok:
            logger.info("%s: remote at %s, now reachable", entry.name, redact(entry.address or ""))
            return True
        if was_ok and not now.ok:
            logger.warning("%s: remote at %s, no longer reachable: %s", *_where_and_why(entry, now))
        return now.ok and before is not None and now.card_description != before.card_description

    def _log_entries(self) -> None:
        for warning in self.warnings:
            logger.warning("%s", warning)
        for entry in self.entries:
            found = self._reachability.get(entry.name)
            if not entry.enabled:
                logger.info("%s: off (%s)", entry.name, entry.why)
            elif entry.where == "in-process":
                logger.info("%s: in-process (%s)", entry.name, entry.why)
            elif found is None:
                logger.info("%s: remote at %s, not checked", entry.name, redact(entry.address or ""))
            elif found.ok:
                logger.info("%s: remote at %s, reachable", entry.name, redact(entry.address or ""))
            else:
                logger.warning("%s: remote at %s, not reachable: %s", *_where_and_why(entry, found))


def _where_and_why(entry: AgentEntry, found: Reachability) -> tuple[str, str, str | None]:
    return entry.name, redact(entry.address or ""), found.reason


def _notify(on_change: Callable[[str], None], name: str) -> None:
    try:
        on_change(name)
    except Exception:
        # An error in the callback must not stop the checks of the other agents.
        logger.exception("%s: applying the change failed", name)
