"""The commands of `chat` itself. Every other `/name` is a skill, which the supervisor answers for."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

COMMANDS: Final = {
    "/help": "this list",
    "/agents": "what the supervisor can do",
    "/skills": "the skills; /skills WORDS searches them, /NAME uses one",
    "/answer": "fill in the form that was left open",
    "/new": "begin a new conversation; nothing of this one is remembered",
    "/quit": "end (also Ctrl-D; Ctrl-C stops a request that is running)",
}
_OWN: Final = frozenset({*COMMANDS, "/exit"})


def is_own_command(line: str) -> bool:
    """Whether the first word is a command of `chat`, whatever follows it."""
    return _first_word(line) in _OWN


def may_be_mistyped(line: str) -> bool:
    """Whether a line is one word that resembles a command, such as `/hepl`."""
    word = _first_word(line)
    return word == line.strip().lower() and word.startswith("/") and bool(get_close_matches(word, _OWN, 1, 0.75))


def _first_word(line: str) -> str:
    return line.split(maxsplit=1)[0].lower() if line.strip() else ""
