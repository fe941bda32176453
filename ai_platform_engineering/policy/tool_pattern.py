"""Patterns of tool calls, for example `argocd.sync_application(app=prod-*)`.

Agent, tool and values may contain the wildcards `*` and `?`. Case does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Self

from ai_platform_engineering.approvals.effects import argument_texts

ALLOWED: Final = "agent.tool or agent.tool(argument=value, ...), with the wildcards * and ?"
_PATTERN: Final = re.compile(r"(?P<agent>[^.()\s]+)\.(?P<tool>[^()\s]+?)(?:\((?P<arguments>.*)\))?")
_MAX_LENGTH: Final = 500


class PatternError(ValueError):
    """The text is not a pattern of tool calls."""


@dataclass(frozen=True, slots=True)
class ToolPattern:
    agent: str
    tool: str
    arguments: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        found = _PATTERN.fullmatch(text.strip()) if len(text) <= _MAX_LENGTH else None
        if found is None:
            raise PatternError(text)
        arguments = []
        for part in filter(None, map(str.strip, (found["arguments"] or "").split(","))):
            name, separator, value = part.partition("=")
            if not separator or not name.strip():
                raise PatternError(text)
            arguments.append((name.strip(), value.strip().casefold()))
        return cls(found["agent"].casefold(), found["tool"].casefold(), tuple(arguments))

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value}" for name, value in self.arguments)
        return f"{self.agent}.{self.tool}{f'({arguments})' if arguments else ''}"

    def names(self, agent: str, tool: str) -> bool:
        """Whether some calls of the tool may match."""
        return fnmatchcase(agent.casefold(), self.agent) and fnmatchcase(tool.casefold(), self.tool)

    def covers(self, arguments: Mapping[str, Any]) -> bool:
        """Whether every value of every named argument matches. An argument that is not given does not match."""
        return all(
            (texts := [*_texts(arguments.get(name))]) and all(fnmatchcase(text, value) for text in texts)
            for name, value in self.arguments
        )

    def touches(self, arguments: Mapping[str, Any]) -> bool:
        """Whether every named argument has a value that matches."""
        return all(
            any(fnmatchcase(text, value) for text in _texts(arguments.get(name))) for name, value in self.arguments
        )


def _texts(value: Any) -> Iterator[str]:
    return (text.casefold() for text in argument_texts(value))
