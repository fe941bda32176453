"""Placeholders in a workflow's texts: `{{ inputs.repository }}` and `{{ steps.repo.url }}`.

A value that is one placeholder and nothing else keeps the type of what stands behind it; inside a longer text the
placeholder becomes text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_PLACEHOLDER: Final = re.compile(r"\{\{(?P<inside>.*?)\}\}", re.DOTALL)
_REFERENCE: Final = re.compile(r"inputs\.(?P<input>\w+)|steps\.(?P<step>\w+)\.(?P<output>\w+)")
_FORMS: Final = "use {{ inputs.<name> }} or {{ steps.<step>.<output> }}"


class TemplateError(ValueError):
    """A placeholder cannot be read; the text says which are possible."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What a placeholder stands for: an input (`step` is None), or an output of a step."""

    name: str
    step: str | None = None

    def __str__(self) -> str:
        return f"inputs.{self.name}" if self.step is None else f"steps.{self.step}.{self.name}"


@dataclass(frozen=True, slots=True)
class Values:
    """What is known so far: the inputs, and the outputs of each step that has any."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Mapping[str, Any]]

    def __getitem__(self, reference: Reference) -> Any:
        """The value, or None where there is none: an optional input left out, an output of a skipped step."""
        source = self.inputs if reference.step is None else self.outputs.get(reference.step, {})
        return source.get(reference.name)


def texts_in(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text in `value`, at any depth, with the keys that lead to it."""
    match value:
        case str():
            yield path, value
        case Mapping():
            for key, item in value.items():
                yield from texts_in(item, (*path, str(key)))
        case list() | tuple():
            for index, item in enumerate(value):
                yield from texts_in(item, (*path, str(index)))


def references(text: str) -> list[Reference]:
    """What the placeholders of `text` stand for, in order. Raises TemplateError for one that cannot be read."""
    found = [_reference(match["inside"]) for match in _PLACEHOLDER.finditer(text)]
    rest = _PLACEHOLDER.sub("", text)
    if "{{" in rest or "}}" in rest:
        raise TemplateError(f"has {'{{' if '{{' in rest else '}}'} without its other half; {_FORMS}")
    return found


def render(value: Any, known: Values) -> Any:
    """`value` with its placeholders filled in. What a placeholder without a value stands for alone is left out of
    objects and lists, so that a tool's own default holds."""
    match value:
        case str():
            return _rendered_text(value, known)
        case Mapping():
            return {str(key): render(item, known) for key, item in value.items() if not _is_absent(item, known)}
        case list() | tuple():
            return [render(item, known) for item in value if not _is_absent(item, known)]
        case _:
            return value


def _rendered_text(text: str, known: Values) -> Any:
    if (alone := _alone(text)) is not None:
        return known[alone]
    return _PLACEHOLDER.sub(lambda match: _as_text(known[_reference(match["inside"])]), text)


def _is_absent(value: Any, known: Values) -> bool:
    return isinstance(value, str) and (alone := _alone(value)) is not None and known[alone] is None


def _alone(text: str) -> Reference | None:
    match = _PLACEHOLDER.fullmatch(text.strip())
    # Two placeholders side by side also begin and end like one.
    return _reference(match["inside"]) if match and "{{" not in match["inside"] else None


def _reference(inside: str) -> Reference:
    match = _REFERENCE.fullmatch(inside.strip())
    if match is None:
        raise TemplateError(f"{{{{ {inside.strip()} }}}} is no placeholder; {_FORMS}")
    return Reference(match["input"]) if match["input"] else Reference(match["output"], match["step"])


def _as_text(value: Any) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case list() | tuple():
            return ", ".join(map(_as_text, value))
        case _:
            return json.dumps(value, ensure_ascii=False)
