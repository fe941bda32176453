"""Code and tables that are too long for a message, as files."""

from __future__ import annotations

from typing import Final

from ai_platform_engineering.integrations.slack_bot.markdown.passages import Block, Code
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import File

MAX_LENGTH: Final = 3_000
MAX_LINES: Final = 80
MAX_ROWS: Final = 30
MAX_COLUMNS: Final = 10

# Languages whose name is not a file extension. Every other short name is used as the extension.
_EXTENSIONS: Final = {
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


def is_long(block: Block) -> bool:
    if len(block.text) > MAX_LENGTH:
        return True
    if isinstance(block, Code):
        return block.line_count > MAX_LINES
    return block.row_count > MAX_ROWS or block.columns > MAX_COLUMNS


def file_name(block: Block, number: int) -> str:
    """Tables become CSV files, which open as spreadsheets."""
    return f"answer-{number}.{_extension(block.fence.language)}" if isinstance(block, Code) else f"table-{number}.csv"


def attached(block: Block, number: int) -> File:
    """The file with the whole content of the block."""
    name = file_name(block, number)
    return File(name, f"{name} ({size(block)})", block.content if isinstance(block, Code) else block.csv)


def size(block: Block) -> str:
    if isinstance(block, Code):
        return f"{_count(block.line_count, 'line')}, {_count(len(block.content), 'character')}"
    return f"{_count(block.row_count, 'row')}, {_count(block.columns, 'column')}"


def _extension(language: str) -> str:
    known = _EXTENSIONS.get(language)
    return known or (language if language.isalnum() and language.isascii() and len(language) <= 5 else "txt")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
