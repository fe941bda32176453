"""The warning about agents on real backends that the offline model drives."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from ai_platform_engineering.llm import is_offline
from ai_platform_engineering.multi_agents.placement import AgentEntry
from ai_platform_engineering.settings import Settings, SettingsError


def offline_warning(settings: Settings, entries: Iterable[AgentEntry]) -> str | None:
    """Names the agents of this process that can only read until a real model is chosen; `None` if there are none."""
    names = [entry.name for entry in entries if entry.has_real_backend and _drives(settings, entry)]
    if not names:
        return None
    return (
        f"The offline model is used with real backends ({', '.join(names)}). It chooses tools by matching words, so it "
        "can only read there: calls that change something are refused. Set LLM_PROVIDER to use a real model."
    )


def _drives(settings: Settings, entry: AgentEntry) -> bool:
    # A provider that is not known is reported where the model is made.
    with suppress(SettingsError):
        return is_offline(settings, entry.name, entry.manifest.model if entry.manifest else None)
    return False
