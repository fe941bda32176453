"""In which channels the bot answers, and how: what the team's file says, which may be changed while the bot runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ai_platform_engineering.integrations.slack_bot.channel_rules import Channel, Rules, read_rules
from ai_platform_engineering.settings import SettingsError

__all__ = ["Channel", "Channels", "load_channels"]

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
"""How long a change of the file may go unnoticed."""

_Version = tuple[int, int, int]


class Channels:
    """The rules of all channels. A new version of the file that cannot be used changes nothing and is told once: a slip
    in it must not silence the bot."""

    def __init__(self, path: Path | None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._looked = monotonic()
        # Asked for before reading: what is written in between is another version.
        self._version = _version(path) if path else None
        self._rules = read_rules(path) if path else Rules()

    def of(self, channel_id: str, *, direct: bool) -> Channel:
        """The rules of a channel, or of direct messages."""
        if self._path:
            self._look_at(self._path)
        if channel_id in self._rules.listed:
            return self._rules.listed[channel_id]
        return self._rules.direct if direct else self._rules.others

    def _look_at(self, path: Path) -> None:
        now = self._monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        version = _version(path)
        if version == self._version:
            return
        self._version = version
        try:
            self._rules = read_rules(path)
        except SettingsError as error:
            logger.warning("The channels stay as they were. %s", " ".join(error.problems))
        else:
            logger.info("%s has changed, and is in force.", path)


def load_channels(path: Path | None) -> Channels:
    """The rules in that file, or, without one, the bot answers in every channel when it is mentioned. Raises
    `SettingsError` where the file cannot be used."""
    return Channels(path)


def _version(path: Path) -> _Version | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
