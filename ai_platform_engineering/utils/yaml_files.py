"""Reads YAML files with one mapping, for example manifests and workflows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

# Ten times as fast as SafeLoader; not every build of PyYAML has it.
FAST_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse(text: str) -> Any:
    """The value of a YAML text."""
    try:
        return yaml.load(text, Loader=FAST_LOADER)  # noqa: S506 - a safe loader
    except yaml.YAMLError:
        # SafeLoader reports the position of the error more precisely.
        return yaml.safe_load(text)


def read_keys(file: Path, what: str, allowed: Iterable[str], problem: type[Exception]) -> dict[str, Any]:
    """The mapping in `file`, which describes one `what`. Raises `problem` with a sentence that says what to correct."""
    try:
        content = parse(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise problem(f"{file}: cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise problem(f"{file}: is not UTF-8 text.") from error
    except yaml.YAMLError as error:
        raise problem(f"{file}: is not valid YAML{_place(error)}.") from error
    if not isinstance(content, dict):
        raise problem(f"{file}: must hold the keys of one {what}; allowed are {', '.join(allowed)}.")
    return content


def validation_sentences(
    file: Path,
    error: ValidationError,
    allowed: Callable[[tuple[str | int, ...]], Iterable[str]],
    items: Mapping[str, str],
) -> Iterator[str]:
    """One sentence for each problem: the place in the file, and what is allowed there. `allowed` gives the keys of a
    place; `items` has the names of the items of lists, by the key of the list."""
    for problem in error.errors(include_url=False):
        place = problem["loc"]
        named = _named(place, items)
        match problem:
            case {"type": "extra_forbidden"}:
                keys = ", ".join(allowed(place[:-1]))
                outer = f"{before}: " if (before := _named(place[:-1], items)) else ""
                yield f"{file}: {outer}{place[-1]} is not a key here; allowed are {keys}."
            case {"type": "literal_error", "ctx": {"expected": expected}}:
                yield f"{file}: {named} must be {expected}."
            case {"type": "missing"}:
                yield f"{file}: {named} is missing."
            case {"msg": message}:
                yield f"{file}: {f'{named}: ' if named else ''}{message.removeprefix('Value error, ')}."


def _named(place: Sequence[str | int], items: Mapping[str, str]) -> str:
    parts = [
        f"{items[before]} {part + 1}" if isinstance(part, int) and before in items else str(part)
        for before, part in zip(["", *map(str, place)], place, strict=False)
        if part not in items
    ]
    return ", ".join(parts)


def _place(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        position = error.problem_mark
        return f" at line {position.line + 1}, column {position.column + 1}: {error.problem}"
    return ""
