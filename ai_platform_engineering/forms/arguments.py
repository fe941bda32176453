"""The arguments of a tool call for display, and the interpretation of arguments that a person edited.

People see the arguments in full, with secrets masked. A shown value that comes back unchanged stands for the original
value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ai_platform_engineering.forms.field_names import is_secret
from ai_platform_engineering.utils.redact import MASK, redact

MAX_LENGTH: Final = 200_000
"""Characters of all arguments of a call. More cannot be shown to a person, so such a call cannot be approved."""

NOTED_LENGTH: Final = 2_000
"""Maximum number of characters of one argument in a note for a model."""

_PHRASE_LENGTH: Final = 80
_PHRASES: Final = 6


class ShownInPartError(ValueError):
    """A value that was masked for display was edited, so the complete value is unknown."""


def can_be_shown(args: Mapping[str, Any]) -> bool:
    """Whether a person can be shown these arguments in full."""
    return len(_json(args)) <= MAX_LENGTH


def noted_arguments(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments for a note to a model: masked, and with long values cut."""
    return {name: _cut(value, NOTED_LENGTH) for name, value in masked_arguments(args).items()}


def masked_arguments(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with credentials masked at any depth: by the name of a key, and by the look of a value."""
    return {name: _masked(value, is_secret(name)) for name, value in args.items()}


def edited_arguments(args: Mapping[str, Any], edit: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """`args` with the changes of `edit`; arguments that are not in `edit` stay.

    None removes an argument, unless the schema allows null.
    """
    shown = masked_arguments(args)
    changed = {
        name: _whole(value, shown.get(name), args.get(name), hidden=_hides(shown.get(name)))
        for name, value in edit.items()
    }
    described = schema.get("properties") or {}
    unset = {name for name, value in args.items() if value is None}
    removed = {
        name for name, value in changed.items() if value is None and not _takes_none(described.get(name))
    } - unset
    return {name: value for name, value in {**args, **changed}.items() if name not in removed}


def in_words(args: Mapping[str, Any]) -> str:
    """The arguments on one line: `name="web", revision=3`. None stands for an argument that was not given."""
    given = [f"{name}={_phrase(value)}" for name, value in masked_arguments(args).items() if value is not None]
    missing = [name for name, value in args.items() if value is None]
    more = [f"{len(given) - _PHRASES} more"] if len(given) > _PHRASES else []
    parts = (", ".join(given[:_PHRASES] + more), f"without {', '.join(missing)}" if missing else "")
    return " ".join(filter(None, parts))


def same_value(one: Any, other: Any) -> bool:
    """Equality of JSON values: true is not a number, 1 and 1.0 are equal."""
    match one, other:
        case bool(), bool():
            return one is other
        case (bool(), _) | (_, bool()):
            return False
        case Mapping(), Mapping():
            return one.keys() == other.keys() and all(same_value(one[key], other[key]) for key in one)
        case ((list() | tuple()), (list() | tuple())):
            return len(one) == len(other) and all(map(same_value, one, other))
        case _:
            return bool(one == other)


def _takes_none(described: Any) -> bool:
    if not isinstance(described, Mapping):
        return False
    kinds = described.get("type")
    variants = [*described.get("anyOf", ()), *described.get("oneOf", ())]
    return kinds == "null" or (isinstance(kinds, list) and "null" in kinds) or any(map(_takes_none, variants))


def _masked(value: Any, secret: bool) -> Any:
    match value:
        case None | bool() | "":
            return value
        case str() | int() | float() if secret:
            return MASK
        case str():
            return redact(value)
        case Mapping():
            return {str(key): _masked(item, secret or is_secret(str(key))) for key, item in value.items()}
        case list() | tuple():
            return [_masked(item, secret) for item in value]
        case _:
            return value


def _cut(value: Any, length: int) -> Any:
    text = value if isinstance(value, str) else _json(value)
    return value if len(text) <= length else f"{text[:length]}… [{length} of {len(text)} characters]"


def _phrase(value: Any) -> str:
    text = _json(value)
    return text if len(text) <= _PHRASE_LENGTH else f"{text[:_PHRASE_LENGTH]}…"


def _whole(edited: Any, shown: Any, value: Any, *, hidden: bool) -> Any:
    """The value that `edited` stands for, if `value` was shown as `shown`. `hidden`: part of the value was not
    shown."""
    if same_value(edited, shown):
        return value
    match edited, shown, value:
        case Mapping(), Mapping(), Mapping():
            return {key: _whole(item, shown.get(key), value.get(key), hidden=hidden) for key, item in edited.items()}
        case list(), list(), (list() | tuple()) if len(edited) == len(shown):
            # An item that differs from the shown one may be another item that was moved to this position.
            return [
                original if same_value(item, as_shown) else _given(item, hidden=hidden)
                for item, as_shown, original in zip(edited, shown, value, strict=True)
            ]
        case _:
            return _given(edited, hidden=hidden)


def _given(edited: Any, *, hidden: bool) -> Any:
    if hidden and _hides(edited):
        raise ShownInPartError
    return edited


def _hides(value: Any) -> bool:
    return MASK in _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
