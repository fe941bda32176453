"""`platform-engineer agents` and `sandbox`: lists the agents; resets the sandbox, or prints its path."""

from __future__ import annotations

import argparse

from ai_platform_engineering.cli.exit_codes import refuse
from ai_platform_engineering.multi_agents.agent_registry import AgentRegistry
from ai_platform_engineering.sandbox.store import SandboxError, reset_sandbox, sandbox_path
from ai_platform_engineering.settings import Settings


def list_agents(_options: argparse.Namespace, settings: Settings) -> int:
    registry = AgentRegistry.load(settings)
    width = max((len(entry.name) for entry in registry.entries), default=0)
    for entry in registry.entries:
        where = entry.where if entry.enabled else "off"
        print(f"{entry.name:<{width}}  {where:<10}  {registry.description(entry.name)}")
    return 0


def restore_sandbox(_options: argparse.Namespace, settings: Settings) -> int:
    path = sandbox_path(settings.data_dir)
    try:
        reset_sandbox(path)
    except SandboxError as error:
        return refuse(error)
    except OSError as error:
        return refuse(f"{path} cannot be written: {error.strerror}. Choose another directory with DATA_DIR.")
    print(f"The sandbox was reset: {path}")
    return 0


def show_sandbox_path(_options: argparse.Namespace, settings: Settings) -> int:
    print(sandbox_path(settings.data_dir))
    return 0
