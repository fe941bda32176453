"""The commands of `chat`, and the lists that /help, /agents and /skills print. Any other `/name` is a skill."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ai_platform_engineering.skills_middleware.client import SkillPage, SkillsClient
from ai_platform_engineering.terminal.background import BackgroundLoop
from ai_platform_engineering.text.plain_text import one_line
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import Supervisor
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from ai_platform_engineering.utils.a2a_common.protocol import agents_on
from ai_platform_engineering.utils.characters import clean

PAGE_SIZE: Final = 50

COMMANDS: Final = {
    "/help": "this list",
    "/agents": "the agents of the supervisor",
    "/skills": "the skills; /skills WORDS searches them, /NAME uses one",
    "/answer": "fill in the form that was left open",
    "/new": "start a new conversation, without the memory of this one",
    "/quit": "exit (also Ctrl-D; Ctrl-C stops a request that is running)",
}
_OWN: Final = frozenset({*COMMANDS, "/exit"})


def is_chat_command(line: str) -> bool:
    """Whether the first word is a command of `chat`."""
    return _first_word(line) in _OWN


def looks_mistyped(line: str) -> bool:
    """Whether the line is one word that resembles a command, for example `/hepl`."""
    word = _first_word(line)
    return word == line.strip().lower() and word.startswith("/") and bool(get_close_matches(word, _OWN, 1, 0.75))


def _first_word(line: str) -> str:
    return line.split(maxsplit=1)[0].lower() if line.strip() else ""


class InfoCommands:
    """The commands that print a list. Skills are requested on each use, because the catalog can change."""

    def __init__(self, supervisor: Supervisor, background: BackgroundLoop) -> None:
        self._card = supervisor.card
        self._skills = SkillsClient(supervisor.http, supervisor.address)
        self._background = background

    def handles(self, line: str) -> bool:
        """Whether `line` is a command of `chat`. A mistyped command counts, unless a skill has that name."""
        return is_chat_command(line) or (looks_mistyped(line) and not self._has_skill(line.lower().removeprefix("/")))

    def show(self, line: str, console: Console) -> None:
        """Print the list of agents or skills; for every other command, print the list of commands."""
        command, _, words = line.partition(" ")
        match command.lower(), words.strip():
            case "/agents", "":
                _show(console, {agent.id: agent.description for agent in agents_on(self._card)})
            case "/skills", query:
                self._show_skills(console, query)
            case _:
                _show(console, COMMANDS)

    def _show_skills(self, console: Console, query: str) -> None:
        try:
            page = self._background.submit(self._skills.page(query=query, limit=PAGE_SIZE)).result()
        except SupervisorError as error:
            print(f"platform-engineer: {clean(str(error))}", file=sys.stderr)  # noqa: T201
            return
        if page.skills:
            _show(console, {f"/{skill['name']}": str(skill["description"]) for skill in page.skills})
        if note := _note(page, query):
            console.print(Text(f"{note}\n", style="dim"))

    def _has_skill(self, name: str) -> bool:
        try:
            return self._background.submit(self._skills.find(name)).result() is not None
        except SupervisorError:
            return False


def _note(page: SkillPage, query: str) -> str:
    """A note below a list that is empty or incomplete."""
    if not page.skills:
        return f"No skill matches {query!r}." if query else "There are no skills."
    more = page.total - len(page.skills)
    return f"{more} more: /skills WORDS searches them." if more > 0 else ""


def _show(console: Console, rows: Mapping[str, str]) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, meaning in rows.items():
        table.add_row(Text(one_line(name), style="bold"), Text(one_line(meaning)))
    console.print(table)
    console.print()
