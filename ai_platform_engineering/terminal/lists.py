"""The lists that `chat` shows: its commands, the agents and the skills of the supervisor."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ai_platform_engineering.skills_middleware.client import SkillPage, SkillsClient
from ai_platform_engineering.terminal.background import Background
from ai_platform_engineering.terminal.commands import COMMANDS, is_own_command, may_be_mistyped
from ai_platform_engineering.text.plain_text import one_line
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import Supervisor
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from ai_platform_engineering.utils.a2a_common.skill_entries import agents_on

PAGE_SIZE: Final = 50


class Lists:
    """Skills are asked for at each use: the catalog changes while a person types."""

    def __init__(self, supervisor: Supervisor, background: Background) -> None:
        self._card = supervisor.card
        self._skills = SkillsClient(supervisor.http, supervisor.address)
        self._background = background

    def takes(self, line: str) -> bool:
        """Whether a line is for `chat` itself. A mistyped command is, unless a skill has that name."""
        return is_own_command(line) or (may_be_mistyped(line) and not self._has_skill(line.lower().removeprefix("/")))

    def show(self, line: str, console: Console) -> None:
        """The list that a command asks for; the commands themselves where it is none that lists something else."""
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
            page = self._background.start(self._skills.page(query=query, limit=PAGE_SIZE)).result()
        except SupervisorError as error:
            print(f"platform-engineer: {error}", file=sys.stderr)  # noqa: T201
            return
        if page.skills:
            _show(console, {f"/{skill['name']}": str(skill["description"]) for skill in page.skills})
        if note := _note(page, query):
            console.print(Text(f"{note}\n", style="dim"))

    def _has_skill(self, name: str) -> bool:
        try:
            return self._background.start(self._skills.find(name)).result() is not None
        except SupervisorError:
            return False


def _note(page: SkillPage, query: str) -> str:
    """What an empty list, or one that is cut, does not say by itself."""
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
