"""`platform-engineer replay`: plays a recorded run in the terminal."""

from __future__ import annotations

import argparse

from ai_platform_engineering.cli.exit_codes import refuse
from ai_platform_engineering.recordings import RecordingError
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.terminal.replay import replay


def run_replay(options: argparse.Namespace, settings: Settings) -> int:
    try:
        return replay(options.file, None if options.instant else options.speed, settings)
    except RecordingError as error:
        return refuse(error)
