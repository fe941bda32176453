"""Silence: how the supervisor says that it has nothing to say, where it was not asked itself."""

from __future__ import annotations

from typing import Final

NOTHING_TO_SAY: Final = "[nothing to say]"
"""The whole answer, instead of one. Surfaces show nothing for it."""

# Models like to set off a marker, and to end it as a sentence.
_DECORATION: Final = " \t\r\n`*_\"'“”."


def is_silence(text: str) -> bool:
    return text.strip(_DECORATION).casefold() == NOTHING_TO_SAY
