"""Code and tables that are too long to be read in a message, as files."""

from __future__ import annotations

from typing import Final

from ai_platform_engineering.integrations.slack_bot.markdown.passages import Code, Table
from ai_platform_engineering.integrations.slack_bot.operations import File

LONGEST: Final = 3_000
MOST_LINES: Final = 80
MOST_ROWS: Final = 30
MOST_COLUMNS: Final = 10

# Where the name of a language is no ending that computers know. Every other short name is.
_ENDINGS: Final = {
    "bash": "sh",
    "c#": "cs",
    "c++": "cpp",
    "console": "txt",
    "csharp": "cs",
    "docker": "dockerfile",
    "elixir": "ex",
    "golang": "go",
    "javascript": "js",
    "jinja": "j2",
    "jinja2": "j2",
    "jsonc": "json",
    "kotlin": "kt",
    "makefile": "mk",
    "markdown": "md",
    "mermaid": "mmd",
    "plain": "txt",
    "plaintext": "txt",
    "powershell": "ps1",
    "properties": "properties",
    "protobuf": "proto",
    "python": "py",
    "python3": "py",
    "ruby": "rb",
    "rust": "rs",
    "shell": "sh",
    "terraform": "tf",
    "text": "txt",
    "typescript": "ts",
    "yml": "yaml",
    "zsh": "sh",
}


def is_long(passage: Code | Table) -> bool:
    length = sum(map(len, passage.lines))
    if isinstance(passage, Code):
        return length > LONGEST or len(passage.content) > MOST_LINES
    return length > LONGEST or len(passage.rows) > MOST_ROWS or passage.columns > MOST_COLUMNS


def attached(passage: Code | Table, number: int) -> File:
    """The file, with everything that is in the passage. Tables are rather opened as spreadsheets than as Markdown."""
    if isinstance(passage, Code):
        name, content = f"answer-{number}.{_ending(passage.fence.language)}", "".join(passage.content)
    else:
        name, content = f"table-{number}.csv", passage.csv
    return File(name, f"{name} ({size(passage)})", content)


def size(passage: Code | Table) -> str:
    if isinstance(passage, Code):
        lines = passage.content
        return f"{_count(len(lines), 'line')}, {_count(sum(map(len, lines)), 'character')}"
    return f"{_count(len(passage.rows), 'row')}, {_count(passage.columns, 'column')}"


def _ending(language: str) -> str:
    known = _ENDINGS.get(language)
    return known or (language if language.isalnum() and language.isascii() and len(language) <= 5 else "txt")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
