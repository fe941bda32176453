"""The manifest from which Slack makes the app: what it may do, and what it is told."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from ai_platform_engineering.settings import Settings

_COMMAND: Final = "- command: /platform\n"


def manifest(settings: Settings) -> str:
    """The manifest as YAML, with the slash command that is set."""
    text = files(__package__).joinpath("manifest.yaml").read_text(encoding="utf-8")
    return text.replace(_COMMAND, f"- command: {settings.slack_command}\n")
