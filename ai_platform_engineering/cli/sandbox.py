"""`platform-engineer sandbox`: resets the simulated company, and prints where its file is."""

from __future__ import annotations

import argparse

from ai_platform_engineering.cli.exit_codes import refuse
from ai_platform_engineering.sandbox.world import WorldError, reset_world, world_path
from ai_platform_engineering.settings import Settings


def reset(_options: argparse.Namespace, settings: Settings) -> int:
    path = world_path(settings.data_dir)
    try:
        reset_world(path)
    except WorldError as error:
        return refuse(error)
    except OSError as error:
        return refuse(f"{path} cannot be written: {error.strerror}. Choose another directory with DATA_DIR.")
    print(f"The sandbox was reset: {path}")
    return 0


def show_path(_options: argparse.Namespace, settings: Settings) -> int:
    print(world_path(settings.data_dir))
    return 0
