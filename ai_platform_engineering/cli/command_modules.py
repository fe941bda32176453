"""The commands by name. The module of a command is imported when the command runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ai_platform_engineering.settings import Settings

    Command = Callable[[argparse.Namespace, Settings], int]


@cache
def command(name: str) -> Command:
    """A command that imports and calls `name`, a `module.function` of this package, when it runs."""
    return partial(_run_command, name)


def _run_command(name: str, options: argparse.Namespace, settings: Settings) -> int:
    module, _, function = name.partition(".")
    command: Command = getattr(import_module(f"{__package__}.{module}"), function)
    return command(options, settings)
