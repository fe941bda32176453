"""`platform-engineer agents`: the known agents and where each runs."""

from __future__ import annotations

import argparse

from ai_platform_engineering.multi_agents.agent_registry import AgentRegistry
from ai_platform_engineering.settings import Settings


def list_agents(_options: argparse.Namespace, settings: Settings) -> int:
    registry = AgentRegistry.load(settings)
    width = max((len(entry.name) for entry in registry.entries), default=0)
    for entry in registry.entries:
        where = entry.where if entry.enabled else "off"
        print(f"{entry.name:<{width}}  {where:<10}  {registry.description(entry.name)}")
    return 0
