"""The check of a call's arguments before they go to a stdio server: a model must not name files of this machine.

An argument that names a local file is refused unless the manifest allows the directory. The supervisor's own files are
always refused. Files in the server's working directory are always allowed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from mcp.types import Tool

from ai_platform_engineering.manifest import ELSEWHERE, FileRule
from ai_platform_engineering.mcp.file_arguments import Schema, items_of, names_file, properties_of

_MAX_PATH: Final = 4096
_MAX_DEPTH: Final = 100
_SHOWN: Final = 80
_NOT_ALLOWED: Final = "a file of this machine, which it may not use"
_ADDRESS: Final = re.compile(r"(?!file:)[a-z][a-z0-9+.-]*://|data:", re.IGNORECASE)
_FILE_ADDRESS: Final = re.compile(r"file:(?=[/~.%])", re.IGNORECASE)
_SEPARATORS: Final = re.compile(r"[,;\n]")
_ANY_SEPARATORS: Final = re.compile(r"[,;|\s]+")
# Programs and libraries contain no secrets, and commands for other machines name them.
_PROGRAMS: Final = tuple(
    Path(parent) / name for parent in ("/", "/usr", "/usr/local") for name in ("bin", "sbin", "lib", "lib64")
)


@dataclass(frozen=True, slots=True)
class _ArgumentText:
    """A string in the arguments of a call."""

    argument: str
    """The top-level argument that contains the string."""
    text: str
    names_file: bool
    """Whether the schema describes it as a file of this machine."""


def protected_paths(data_dir: Path) -> tuple[Path, ...]:
    """Paths that no manifest can allow: the product's data, the supervisor's directory, and /proc."""
    paths = [data_dir.expanduser(), Path("/proc")]
    try:
        directory = Path.cwd()
    except FileNotFoundError:
        pass
    else:
        # A supervisor that runs in `/` does not own that directory.
        paths.append(directory / ".env" if directory == Path(directory.anchor) else directory)
    return tuple(path.resolve() for path in paths)


def refusal(
    tool: Tool,
    arguments: Mapping[str, Any],
    rules: Mapping[str, FileRule],
    protected: Sequence[Path],
    directory: Path | None,
) -> str | None:
    """Why the call must not be sent, as a text for the model; None if it is allowed.

    `rules` are the manifest's rules for this tool, by argument. `directory` is the server's working directory.
    """
    base = directory or Path("/nonexistent")
    for found in _texts(tool, arguments):
        rule = rules.get(found.argument)
        if rule is None:
            reason = _local_file(found, protected, base)
        elif rule == ELSEWHERE:
            reason = _supervisor_file(_candidates(found.text), protected, base)
        elif not rule:
            reason = _local_file(_ArgumentText(found.argument, found.text, names_file=True), protected, base)
        else:
            reason = _outside_directories(found.text, rule, protected, base)
        if reason:
            return (
                f"{tool.name} was not called: its argument {found.argument!r} names {reason}: {_shown(found.text)}. "
                "Pass the content itself or a URL if the tool accepts one, or continue without the file."
            )
    return None


def _local_file(found: _ArgumentText, protected: Sequence[Path], base: Path) -> str | None:
    candidates = _candidates(found.text)
    if reason := _supervisor_file(candidates, protected, base):
        return reason
    named = found.names_file and not _is_no_file(found.text)
    return _NOT_ALLOWED if named or any(_is_local(candidate, base) for candidate in candidates) else None


def _outside_directories(text: str, rule: Iterable[str], protected: Sequence[Path], base: Path) -> str | None:
    """Every path in `text`, with any separator, must be below a directory that the manifest allows."""
    words = (word for word in _ANY_SEPARATORS.split(text) if _is_path(word))
    parts = [part for part in (*_candidates(text), *_SEPARATORS.split(text), *words) if not _is_no_file(part)]
    if reason := _supervisor_file(parts, protected, base):
        return reason
    allowed = [Path(path).expanduser().resolve() for path in rule]
    for part in parts:
        path = _path(part, base)
        if path is not None and not any(path.is_relative_to(root) for root in (*allowed, base)):
            return "a file outside of the directories that the manifest allows"
    return None


def _supervisor_file(texts: Iterable[str], protected: Sequence[Path], base: Path) -> str | None:
    for text in texts:
        path = _path(text, base)
        if path is not None and not path.is_relative_to(base) and any(_is_below(path, root) for root in protected):
            return "a file of the supervisor, which no tool may use"
    return None


def _is_local(text: str, base: Path) -> bool:
    """Whether the text of any argument is the path of a file of this machine."""
    path = _path(text, base)
    if path is None or path.is_relative_to(base):
        return False
    if text.startswith("/"):
        return _exists(path) and not path.is_dir() and not any(path.is_relative_to(root) for root in _PROGRAMS)
    # A relative path out of the directory, `~` or a file address. Inside of a sentence, the file must exist.
    return not re.search(r"\s", text) or _exists(path)


def _texts(tool: Tool, arguments: Mapping[str, Any]) -> Iterator[_ArgumentText]:
    root = tool.inputSchema
    properties = properties_of(root, root)
    for name, value in arguments.items():
        schema = properties.get(name, {})
        yield from _texts_in(value, schema, name, names_file(name, schema, properties, tool.name), tool, 0)


def _texts_in(
    value: Any, schema: Schema, argument: str, is_file: bool, tool: Tool, depth: int
) -> Iterator[_ArgumentText]:
    root = tool.inputSchema
    if depth > _MAX_DEPTH:
        yield _ArgumentText(argument, "a value that is nested too deeply", names_file=True)
        return
    match value:
        case str():
            parsed = _parsed(value)
            if parsed is None:
                yield _ArgumentText(argument, value, is_file)
            else:
                yield from _texts_in(parsed, schema, argument, is_file, tool, depth + 1)
        case Mapping():
            properties = properties_of(schema, root)
            for name, inner in value.items():
                described = properties.get(name, {})
                named = names_file(str(name), described, properties or value, tool.name)
                yield _ArgumentText(argument, str(name), names_file=False)
                yield from _texts_in(inner, described, argument, named, tool, depth + 1)
        case list() | tuple():
            for inner in value:
                yield from _texts_in(inner, items_of(schema, root), argument, is_file, tool, depth + 1)


def _parsed(text: str) -> Any:
    """The list or object of a text in JSON, which some tools expect; None for other text."""
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _candidates(text: str) -> list[str]:
    """The paths that a text may contain: itself, items between commas, the value of an option, an upload with `@`."""
    whole = text.strip().strip("\"'")
    if not whole or "\n" in whole:
        return []
    parts = [whole]
    if not re.search(r"[^,;]\s", whole):
        parts += [part for piece in re.split(r"[,;]", whole) for part in piece.strip().split("=")]
    return list(dict.fromkeys(part.strip().strip("\"'").removeprefix("@") for part in parts if part.strip()))


def _is_no_file(text: str) -> bool:
    """Whether a text is not a file name: it is empty or an address."""
    if not text.strip():
        return True
    return _is_address(text.strip()) and not any(_is_path(part.strip()) for part in _SEPARATORS.split(text))


def _is_address(text: str) -> bool:
    """A program that treats an address as a path resolves `..` in it, so an address with too many `..` is a path."""
    return bool(_ADDRESS.match(text)) and not os.path.normpath(text).startswith("..")


def _is_path(text: str) -> bool:
    return text.startswith(("/", "~", "./", "../")) or bool(_FILE_ADDRESS.match(text))


def _path(text: str, base: Path) -> Path | None:
    """The path in a text, with links and `..` resolved; None if the text is not a path."""
    text = text.strip()
    if len(text) > _MAX_PATH:
        # The system refuses a path of this length, but a program may normalise it first.
        text = os.path.normpath(text)
    if not text or len(text) > _MAX_PATH or "\0" in text or _is_address(text):
        return None
    if _FILE_ADDRESS.match(text):
        text = unquote(urlsplit(text).path if text[5:7] == "//" else text[5:])
    path = Path(text)
    with suppress(RuntimeError):
        # `~name` of an unknown user is a file name.
        path = path.expanduser()
    try:
        return (base / path).resolve()
    except (OSError, RuntimeError, ValueError):
        return None


def _is_below(path: Path, root: Path) -> bool:
    """Compares names, and inodes for file systems with several names of one directory."""
    if path.is_relative_to(root):
        return True
    try:
        wanted = root.stat()
    except OSError:
        return False
    for parent in (path, *path.parents):
        try:
            if os.path.samestat(parent.stat(), wanted):
                return True
        except (OSError, ValueError):
            continue
    return False


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")
