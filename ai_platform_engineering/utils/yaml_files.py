"""Files of one YAML mapping, as people write manifests and workflows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml

# Ten times as fast as the other; not every build of PyYAML has it.
FAST_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse(text: str) -> Any:
    """What a text in YAML holds."""
    try:
        return yaml.load(text, Loader=FAST_LOADER)  # noqa: S506 - a safe loader
    except yaml.YAMLError:
        # The other one knows better where the mistake is.
        return yaml.safe_load(text)


def read_keys(file: Path, what: str, allowed: Iterable[str], problem: type[Exception]) -> dict[str, Any]:
    """The keys and values in `file`, which holds those of one `what`; raises `problem` with the way out."""
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
        mark = error.problem_mark
        return f" at line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return ""
