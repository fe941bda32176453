"""`platform-engineer agents` and `sandbox`: lists agents, installs their servers; resets or locates the sandbox."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from ai_platform_engineering.cli.exit_codes import FAILED, refuse
from ai_platform_engineering.cli.printing import print_lines, print_note
from ai_platform_engineering.mcp.packages import InstallError, NoRuntimeError, install
from ai_platform_engineering.multi_agents.agent_registry import AgentRegistry, known_manifests
from ai_platform_engineering.sandbox.store import SandboxError, reset_sandbox, sandbox_path
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.text.plain_text import aligned

ALL: Final = "all"


def list_agents(_options: argparse.Namespace, settings: Settings) -> int:
    registry = AgentRegistry.load(settings)
    rows = [
        (entry.name, entry.where if entry.enabled else "off", registry.description(entry.name))
        for entry in registry.entries
    ]
    print_lines(*aligned(rows))
    return 0


def install_servers(options: argparse.Namespace, settings: Settings) -> int:
    manifests = known_manifests(settings)
    named = [name for text in options.names for name in text.split()]
    if unknown := sorted({*named} - {*manifests, ALL}):
        return refuse(f"There is no agent {', '.join(unknown)}. Use {ALL}, or some of: {', '.join(manifests)}.")
    configured = [name for name, manifest in manifests.items() if manifest.configured(settings.environ)]
    names = [*manifests] if ALL in named else named or configured
    locks = {
        Path(server.package): name for name in names for server in manifests[name].servers if server.package is not None
    }
    if not locks:
        print("There is nothing to install. `platform-engineer agents install NAME` installs the servers of an agent.")
    failed = False
    for lock, name in locks.items():
        try:
            done = install(lock, settings)
        except InstallError as error:
            # An image has what can run in it.
            skipped = ALL in named and isinstance(error, NoRuntimeError)
            failed = failed or not skipped
            (print_lines if skipped else print_note)(f"{name}: {error}")
        else:
            print(f"{name}: {lock.name} {'was installed' if done else 'is installed already'}", flush=True)
    return FAILED if failed else 0


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
