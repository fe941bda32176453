"""`platform-engineer slack`: runs the Slack bot, prints the manifest of its app, or plays a recording."""

from __future__ import annotations

import argparse
from importlib.util import find_spec

from ai_platform_engineering.cli.exit_codes import fail, refuse
from ai_platform_engineering.cli.servers import warn_about_unknown_settings
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.errors import ReadableError


def run_slack(options: argparse.Namespace, settings: Settings) -> int:
    if options.manifest:
        from ai_platform_engineering.integrations.slack_bot.app_setup import manifest

        print(manifest(settings), end="")
        return 0
    if options.preview is not None:
        from ai_platform_engineering.cli.slack_preview import run_preview

        return run_preview(options, settings)
    if options.html or options.speed or options.instant:
        return refuse("--html, --speed and --instant are for --preview.")
    return _serve(options, settings)


def _serve(options: argparse.Namespace, settings: Settings) -> int:
    if find_spec("slack_bolt") is None:
        from ai_platform_engineering.installation import install_command

        return refuse(f"The Slack bot needs additional libraries: {install_command('slack')}.")
    from ai_platform_engineering.integrations.slack_bot.app_setup import check_tokens
    from ai_platform_engineering.utils.private_files import secure_data_dir

    # Missing tokens are reported before the large libraries are imported.
    check_tokens(settings)
    warn_about_unknown_settings(settings)
    secure_data_dir(settings.data_dir)
    from ai_platform_engineering.integrations.slack_bot.serve import run_slack_bot

    listening = {f"slack_{name}": getattr(options, name) for name in ("host", "port") if hasattr(options, name)}
    try:
        return run_slack_bot(settings.model_copy(update=listening))
    except ReadableError as error:
        return fail(error)
