"""`platform-engineer slack --preview`: shows a recorded run as Slack would, in the terminal or as an HTML page."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from ai_platform_engineering.cli.exit_codes import refuse
from ai_platform_engineering.events import Ending
from ai_platform_engineering.integrations.slack_bot.preview.drawing import play, show
from ai_platform_engineering.integrations.slack_bot.preview.page.document import page
from ai_platform_engineering.integrations.slack_bot.preview.player import BOT, NAMES, moments_of
from ai_platform_engineering.recordings import CUT_SHORT, RecordingError, read_recording
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.terminal.chat import terminal_console
from ai_platform_engineering.utils.errors import ReadableError

WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class PreviewOptions:
    """`file` is a recording, or `-` for standard input. `html` is the page to write. `speed` is a factor of the
    recorded speed; None shows the end at once."""

    file: str
    html: Path | None = None
    speed: float | None = 1.0


def run_preview(options: argparse.Namespace, settings: Settings) -> int:
    speed = None if options.instant else options.speed or 1.0
    try:
        return _preview(PreviewOptions(options.preview, options.html, speed), settings)
    except (RecordingError, ReadableError) as error:
        return refuse(error)


def _preview(options: PreviewOptions, settings: Settings) -> int:
    lines = read_recording(options.file)
    moments = moments_of(lines)
    if not moments:
        raise RecordingError(f"{options.file} has questions but no events; there is nothing to show.")
    if options.html is not None:
        title = "A thread in Slack" if options.file == "-" else Path(options.file).name
        _write(options.html, page(title, moments, NAMES, BOT))
        sys.stdout.write(f"{options.html} shows {len(moments)} moments.\n")
    else:
        console = terminal_console(settings.environ)
        if console and options.speed is not None:
            play(moments, console, NAMES, BOT, options.speed)
        show(moments[-1].transcript, console or Console(width=WIDTH, color_system=None), NAMES, BOT)
    if not isinstance(lines[-1].item, Ending):
        sys.stderr.write(f"{CUT_SHORT}\n")
    return 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ReadableError(f"{path} cannot be written: {error.strerror}.") from None
