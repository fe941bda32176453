"""Placeholders in a workflow's texts: `{{ inputs.repository }}` and `{{ steps.repo.url }}`.

A value that consists of one placeholder gets the referenced value with its type. Inside a longer text the placeholder
becomes text.
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
    """A placeholder is invalid. The text describes the valid forms."""


@dataclass(frozen=True, slots=True)
class ValueReference:
    """The target of a placeholder: an input (`step` is None) or an output of a step."""

    name: str
    step: str | None = None

    def __str__(self) -> str:
        return f"inputs.{self.name}" if self.step is None else f"steps.{self.step}.{self.name}"


@dataclass(frozen=True, slots=True)
class Values:
    """The values available so far: the inputs, and the outputs of completed steps."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Mapping[str, Any]]

    def __getitem__(self, reference: ValueReference) -> Any:
        """The value. None for an optional input that was left out and for an output of a skipped step."""
        source = self.inputs if reference.step is None else self.outputs.get(reference.step, {})
        return source.get(reference.name)


def texts_in(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every string in `value`, at any depth, with its path."""
    match value:
        case str():
            yield path, value
        case Mapping():
            for key, item in value.items():
                yield from texts_in(item, (*path, str(key)))
        case list() | tuple():
            for index, item in enumerate(value):
                yield from texts_in(item, (*path, str(index)))


def references(text: str) -> list[ValueReference]:
    """The references in `text`, in order. Raises `TemplateError` for an invalid placeholder."""
    found = [_reference(match["inside"]) for match in _PLACEHOLDER.finditer(text)]
    rest = _PLACEHOLDER.sub("", text)
    if "{{" in rest or "}}" in rest:
        raise TemplateError(
            f"has {'{{' if '{{' in rest else '}}'} without a matching {'}}' if '{{' in rest else '{{'}; {_FORMS}"
        )
    return found


def render(value: Any, known: Values) -> Any:
    """`value` with its placeholders filled in. An item that is a placeholder without a value is left out of objects and
    lists, so that the tool's own default applies."""
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
    if (reference := _single_reference(text)) is not None:
        return known[reference]
    return _PLACEHOLDER.sub(lambda match: _as_text(known[_reference(match["inside"])]), text)


def _is_absent(value: Any, known: Values) -> bool:
    return isinstance(value, str) and (reference := _single_reference(value)) is not None and known[reference] is None


def _single_reference(text: str) -> ValueReference | None:
    match = _PLACEHOLDER.fullmatch(text.strip())
    # The pattern also matches two adjacent placeholders.
    return _reference(match["inside"]) if match and "{{" not in match["inside"] else None


def _reference(inside: str) -> ValueReference:
    match = _REFERENCE.fullmatch(inside.strip())
    if match is None:
        raise TemplateError(f"{{{{ {inside.strip()} }}}} is not a valid placeholder; {_FORMS}")
    return ValueReference(match["input"]) if match["input"] else ValueReference(match["output"], match["step"])


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
