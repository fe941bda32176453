"""Validates the value of a field: type, options, rules."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlsplit

from ai_platform_engineering.events import FieldRules, FieldType, FormField
from ai_platform_engineering.forms.field_names import is_secret, quoted
from ai_platform_engineering.utils.a2a_common.codec.values import get_number

_MAX_NUMBER_LENGTH: Final = 400
_MAX_MATCHED_LENGTH: Final = 10_000
_MAX_LISTED_OPTIONS: Final = 20
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_EMAIL: Final = re.compile(r"[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+")
_BOOLEANS: Final = {"yes": True, "true": True, "no": False, "false": False}


@dataclass(frozen=True, slots=True)
class InvalidValue:
    """An invalid value; the sentence names the field and the expected values."""

    sentence: str


def is_blank(value: Any) -> bool:
    """Whether `value` means that the field was not filled in."""
    return value is None or (isinstance(value, str) and not value.strip())


def validated(field: FormField, value: Any) -> Any:
    """The valid value of `field`, or an `InvalidValue`.

    The value stays as it was given, with these conversions for values from texts and forms:

    - number: a whole number that came as a float (2.0) is an integer; a number may be given as text ("2", "2.5"), if
      no digits are lost
    - boolean: "yes", "true", "no" and "false" in any case
    - select and multiselect: an option in another case, as a number or as a boolean is the option as it is listed
    - multiselect: one text is one option, or several with commas between them
    """
    try:
        return _VALIDATORS[field.field_type](field, value)
    except _InvalidValueError as error:
        shown = "what was given" if is_secret(field.field_name) else quoted(error.given)
        return InvalidValue(f"`{field.field_name}` takes {expected(field)}; {shown} {error.wrong}.")


def expected(field: FormField) -> str:
    """The values that `field` expects, in words: a whole number from 1 to 5."""
    rules = field.rules or FieldRules()
    match field.field_type:
        case "number":
            return _numbers(rules)
        case "boolean":
            return "yes or no"
        case "select":
            return f"one of {_listed(field.field_values)}" if field.field_values else "text"
        case "multiselect" if field.field_values:
            return f"{'one or more' if field.required else 'any'} of {_listed(field.field_values)}"
        case "multiselect":
            return "texts with commas between them"
        case "url":
            kind = "an address that begins with http:// or https://"
        case "email":
            kind = "an e-mail address like name@example.com"
        case _:
            kind = "text"
    return kind + _lengths(rules) + (f" that matches the pattern `{rules.pattern}`" if rules.pattern else "")


def _listed(options: Sequence[str]) -> str:
    named = ", ".join(options[:_MAX_LISTED_OPTIONS])
    return f"{named} and {len(options) - _MAX_LISTED_OPTIONS} more" if len(options) > _MAX_LISTED_OPTIONS else named


def _lengths(rules: FieldRules) -> str:
    low, high = rules.min_length or 0, rules.max_length
    if high is None:
        return f" of at least {_characters(low)}" if low else ""
    return f" of {low} to {_characters(high)}" if low else f" of at most {_characters(high)}"


def _characters(number: int) -> str:
    return f"{number} character" if number == 1 else f"{number} characters"


def _numbers(rules: FieldRules) -> str:
    kind = "a whole number" if rules.integer else "a number"
    low = None if rules.minimum is None else _plain(rules.minimum)
    high = None if rules.maximum is None else _plain(rules.maximum)
    if low is not None and high is not None:
        return f"{kind} from {low} to {high}"
    if low is not None:
        return f"{kind} of at least {low}"
    return kind if high is None else f"{kind} of at most {high}"


def _plain(number: float) -> str:
    return str(get_number(number) if isinstance(number, float) else number)


class _InvalidValueError(Exception):
    """The part of a value that is wrong, and what is wrong with it."""

    def __init__(self, given: Any, wrong: str = "is not that") -> None:
        super().__init__(wrong)
        self.given = given
        self.wrong = wrong


def _text(field: FormField, value: Any) -> str:
    if not isinstance(value, str):
        raise _InvalidValueError(value, "is not text")
    rules = field.rules or FieldRules()
    low = rules.min_length is not None and len(value) < rules.min_length
    high = rules.max_length is not None and len(value) > rules.max_length
    if low or high:
        raise _InvalidValueError(value, f"has {len(value)}")
    if rules.pattern and not _matches(rules.pattern, value):
        raise _InvalidValueError(value, "does not")
    return value


def _matches(pattern: str, text: str) -> bool:
    """Whether `text` matches. An invalid pattern, or a text too long to match, counts as a match: the person cannot
    correct it."""
    if len(text) > _MAX_MATCHED_LENGTH:
        return True
    try:
        return re.fullmatch(pattern, text) is not None
    except (re.error, RecursionError, OverflowError, Warning):
        return True


def _url(field: FormField, value: Any) -> str:
    if not isinstance(value, str) or not _is_address(value):
        raise _InvalidValueError(value)
    return _text(field, value)


def _is_address(text: str) -> bool:
    if " " in text or not text.isprintable():
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _email(field: FormField, value: Any) -> str:
    if not isinstance(value, str) or not _EMAIL.fullmatch(value):
        raise _InvalidValueError(value)
    return _text(field, value)


def _number(field: FormField, value: Any) -> int | float:
    number = _read_number(value)
    rules = field.rules or FieldRules()
    if rules.integer and isinstance(number, float):
        # A float of this size may have lost digits of the intended number.
        rounded = "may have been rounded on its way: send it as text" if number.is_integer() else "is not that"
        raise _InvalidValueError(value, rounded)
    low = rules.minimum is not None and number < rules.minimum
    high = rules.maximum is not None and number > rules.maximum
    if low or high:
        raise _InvalidValueError(value)
    return number


def _read_number(value: Any) -> int | float:
    match value:
        case bool():
            raise _InvalidValueError(value)
        case int():
            return value
        case float() if math.isfinite(value):
            return get_number(value)
        case str() if len(text := value.strip()) <= _MAX_NUMBER_LENGTH:
            if _INTEGER.fullmatch(text):
                return int(text)
            if _DECIMAL.fullmatch(text) and math.isfinite(number := float(text)):
                if Decimal(text) != Decimal(repr(number)):
                    raise _InvalidValueError(value, "has more digits than can be kept")
                return get_number(number)
    raise _InvalidValueError(value)


def _boolean(field: FormField, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and (word := value.strip().casefold()) in _BOOLEANS:
        return _BOOLEANS[word]
    raise _InvalidValueError(value)


def _select(field: FormField, value: Any) -> str:
    option = _option(field.field_values or (), value)
    if option is None:
        raise _InvalidValueError(value)
    return option


def _multiselect(field: FormField, value: Any) -> list[str]:
    options = field.field_values or ()
    if isinstance(value, str):
        if options and (whole := _option(options, value)) is not None:
            return [whole]
        value = [piece.strip() for piece in value.split(",") if piece.strip()]
    if not isinstance(value, list | tuple) or (field.required and not value):
        raise _InvalidValueError(value)
    chosen: list[str] = []
    for item in value:
        option = _option(options, item)
        if option is None:
            raise _InvalidValueError(item)
        chosen.append(option)
    return chosen


def _option(options: Sequence[str], value: Any) -> str | None:
    """The option that `value` stands for. A field without options takes any text."""
    if not options:
        return value if isinstance(value, str) and value.strip() else None
    spelling = _spelling(value)
    if spelling is None or spelling in options:
        return spelling
    same = {option for option in options if option.strip().casefold() == spelling.strip().casefold()}
    return same.pop() if len(same) == 1 else None


def _spelling(value: Any) -> str | None:
    match value:
        case str():
            return value
        case bool() | int():
            return str(value)
        case float() if math.isfinite(value):
            return str(get_number(value))
        case _:
            return None


_VALIDATORS: Final[dict[FieldType, Callable[[FormField, Any], Any]]] = {
    "text": _text,
    "multiline": _text,
    "number": _number,
    "boolean": _boolean,
    "select": _select,
    "multiselect": _multiselect,
    "url": _url,
    "email": _email,
}
