"""What can be wrong with a skill: a code for programs, a path, and a sentence for people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """`code` is stable, such as `name` or `symlink`; `path` is the file, empty for the skill as a whole."""

    code: str
    message: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidSkillError(ValueError):
    """A skill cannot be used. The text has one line per problem."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))
