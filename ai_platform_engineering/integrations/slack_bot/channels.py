"""In which channels the bot answers, and how. The rules come from a file that is reloaded when it changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ai_platform_engineering.integrations.slack_bot.channel_rules import Channel, ChannelRules, read_rules
from ai_platform_engineering.settings import SettingsError

__all__ = ["Channel", "Channels", "load_channels"]

logger = logging.getLogger(__name__)

CHECK_SECONDS: Final = 5.0
"""Minimum seconds between two checks for a changed file."""

_Version = tuple[int, int, int]


class Channels:
    """The rules of all channels. An invalid new version of the file is logged once and ignored, so that a mistake in it
    does not silence the bot."""

    def __init__(self, path: Path | None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._checked_at = monotonic()
        # Read before the content, so that a change in between is seen as a new version.
        self._version = _version(path) if path else None
        self._rules = read_rules(path) if path else ChannelRules()

    def of(self, channel_id: str, *, direct: bool) -> Channel:
        """The rules of a channel, or of direct messages."""
        if self._path:
            self._reload_if_changed(self._path)
        if channel_id in self._rules.listed:
            return self._rules.listed[channel_id]
        return self._rules.direct if direct else self._rules.others

    def _reload_if_changed(self, path: Path) -> None:
        now = self._monotonic()
        if now - self._checked_at < CHECK_SECONDS:
            return
        self._checked_at = now
        version = _version(path)
        if version == self._version:
            return
        self._version = version
        try:
            self._rules = read_rules(path)
        except SettingsError as error:
            logger.warning("The channel rules stay unchanged. %s", " ".join(error.problems))
        else:
            logger.info("%s has changed and was reloaded.", path)


def load_channels(path: Path | None) -> Channels:
    """The rules in that file. Without a file, the bot answers mentions in every channel. Raises `SettingsError` if the
    file is invalid."""
    return Channels(path)


def _version(path: Path) -> _Version | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
