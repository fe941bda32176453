"""The entry point: parses the arguments, loads the settings and runs the command."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ai_platform_engineering.cli.exit_codes import INTERRUPTED, refuse
from ai_platform_engineering.cli.parser import build_parser

if TYPE_CHECKING:
    from ai_platform_engineering.cli.command_modules import Command

# Libraries read these variables at import: no tracing without a collector, and for FastMCP servers no second log and no
# runtime type checks.
_LIBRARY_DEFAULTS: Final = {
    "OTEL_INSTRUMENTATION_A2A_SDK_ENABLED": "false",
    "FASTMCP_LOG_ENABLED": "false",
    "PY_KEY_VALUE_DISABLE_BEARTYPE": "true",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    for variable, value in _LIBRARY_DEFAULTS.items():
        os.environ.setdefault(variable, value)
    options = build_parser().parse_args(argv)
    command: Command = options.run

    from ai_platform_engineering.settings import SettingsError, load_settings

    try:
        settings = load_settings()
    except SettingsError as error:
        return refuse(error)
    from ai_platform_engineering.manifest import ManifestError
    from ai_platform_engineering.multi_agents.platform_engineer.workflows import WorkflowError
    from ai_platform_engineering.utils.logs import configure_logging
    from ai_platform_engineering.utils.serving import ListenError

    configure_logging(settings, quiet=options.quiet)
    try:
        return command(options, settings)
    except (SettingsError, ManifestError, WorkflowError, ListenError) as error:
        return refuse(error)
    except KeyboardInterrupt:
        return INTERRUPTED
