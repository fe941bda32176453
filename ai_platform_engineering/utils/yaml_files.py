"""Reads YAML files with one mapping, for example manifests and workflows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml

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


def _place(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        position = error.problem_mark
        return f" at line {position.line + 1}, column {position.column + 1}: {error.problem}"
    return ""
