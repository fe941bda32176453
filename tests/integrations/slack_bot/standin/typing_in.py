"""What people find in blocks and do with it: buttons to press, fields to fill in, and what of it Slack tells an app.

Pure: blocks are given, as they are shown, and a person's input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]
Blocks = Sequence[Json]
Typed = Mapping[tuple[str, str], Any]
"""What was typed or chosen, by block and action id, as it stands in `state.values`."""
TEXT_FIELDS = ("plain_text_input", "number_input", "email_text_input", "url_text_input")
SINGLE = ("static_select", "radio_buttons")
SEVERAL = ("multi_static_select", "checkboxes")


class NotThereError(AssertionError):
    """The person wants to use an element that is not shown. The text lists those that are."""


class NotPossibleError(AssertionError):
    """Slack does not allow the action, and sends the app nothing. The text says why."""


@dataclass(frozen=True, slots=True)
class Field:
    block: Json
    element: Json

    @property
    def key(self) -> tuple[str, str]:
        return self.block["block_id"], self.element["action_id"]

    @property
    def label(self) -> str:
        return str(self.block.get("label", self.block.get("text", {})).get("text", ""))


@dataclass(frozen=True, slots=True)
class Button:
    block: Json
    element: Json
    label: str
    value: str | None
    names: tuple[str, ...]


def elements_of(block: Json) -> list[Json]:
    single = [block[key] for key in ("element", "accessory") if key in block]
    return [*single, *(block["elements"] if block.get("type") in ("actions", "context_actions") else ())]


def buttons_in(blocks: Blocks) -> list[Button]:
    return [button for block in blocks for element in elements_of(block) for button in _buttons(block, element)]


def find_button(blocks: Blocks, name: str) -> Button:
    """The button with that label, action id or value."""
    buttons = buttons_in(blocks)
    found = [button for button in buttons if name in button.names]
    if len(found) != 1:
        there = ", ".join(repr(button.label) for button in buttons) or "none"
        raise NotThereError(f"there {'is no' if not found else 'are several'} {name!r}; the buttons are: {there}")
    return found[0]


def fields_in(blocks: Blocks) -> list[Field]:
    kinds = (*TEXT_FIELDS, *SINGLE, *SEVERAL)
    return [Field(block, element) for block in blocks for element in elements_of(block) if element["type"] in kinds]


def find_field(blocks: Blocks, name: str) -> Field:
    """The field with that label, block id or action id."""
    fields = fields_in(blocks)
    found = [field for field in fields if name in (field.label, *field.key)]
    if len(found) != 1:
        there = ", ".join(repr(field.label or field.key) for field in fields) or "none"
        raise NotThereError(f"there {'is no' if not found else 'are several'} {name!r}; the fields are: {there}")
    return found[0]


def entry(element: Json, value: Any) -> dict[str, Any]:
    """What `state.values` has for an element with that input."""
    kind = element["type"]
    if kind in TEXT_FIELDS:
        return {"type": kind, "value": str(value) if value not in (None, "") else None}
    if kind in SINGLE:
        return {"type": kind, "selected_option": None if value is None else _option(element, value)}
    wanted = element["options"] if value is True else value or ()
    chosen = [value] if isinstance(wanted, str) else wanted
    options = [one if isinstance(one, Mapping) else _option(element, one) for one in chosen]
    return {"type": kind, "selected_options": options}


def state_values(blocks: Blocks, typed: Typed) -> dict[str, dict[str, Any]]:
    """All fields there are, with what was typed or what they began with."""
    values: dict[str, dict[str, Any]] = {}
    for field in fields_in(blocks):
        block_id, action_id = field.key
        values.setdefault(block_id, {})[action_id] = typed.get(field.key) or _initial(field.element)
    return values


def problems_in(blocks: Blocks, typed: Typed) -> dict[str, str]:
    """Why Slack itself does not let a form be submitted, by block id."""
    values = state_values(blocks, typed)
    problems = {}
    for field in fields_in(blocks):
        block_id, action_id = field.key
        if field.block["type"] == "input" and (problem := _problem(field, values[block_id][action_id])):
            problems[block_id] = problem
    return problems


def _buttons(block: Json, element: Json) -> Iterator[Button]:
    match element:
        case {"type": "button" | "icon_button", "text": {"text": str(label)}}:
            value = element.get("value")
            yield Button(block, element, label, value, (label, element["action_id"], value or label))
        case {"type": "feedback_buttons"}:
            for side in ("positive_button", "negative_button"):
                button = element[side]
                label, value = button["text"]["text"], button["value"]
                yield Button(block, element, label, value, (label, value, button.get("accessibility_label", label)))


def _option(element: Json, name: str) -> Json:
    groups = element.get("option_groups", ())
    options: list[Json] = [*element.get("options", ()), *(option for group in groups for option in group["options"])]
    for option in options:
        if name in (option["text"]["text"], option["value"]):
            return option
    there = ", ".join(repr(option["text"]["text"]) for option in options)
    raise NotThereError(f"{name!r} cannot be chosen; there are: {there}")


def _initial(element: Json) -> dict[str, Any]:
    if element["type"] in TEXT_FIELDS:
        return entry(element, element.get("initial_value"))
    if element["type"] in SINGLE:
        return {"type": element["type"], "selected_option": element.get("initial_option")}
    return {"type": element["type"], "selected_options": list(element.get("initial_options", ()))}


def _problem(field: Field, filled: Json) -> str:
    value = filled.get("value") or filled.get("selected_option") or filled.get("selected_options")
    if not value:
        return "" if field.block.get("optional") else "this field is required"
    match field.element["type"]:
        case "plain_text_input":
            return _length_problem(field.element, value)
        case "number_input":
            return _number_problem(field.element, value)
        case "email_text_input":
            return "" if "@" in value else "not an email address"
        case "url_text_input":
            return "" if value.startswith(("http://", "https://")) else "not a URL"
        case _:
            return ""


def _length_problem(element: Json, value: str) -> str:
    least, most = element.get("min_length", 0), element.get("max_length", 3000)
    return "" if least <= len(value) <= most else f"from {least} to {most} characters"


def _number_problem(element: Json, value: str) -> str:
    try:
        number = float(value)
    except ValueError:
        return "not a number"
    if not element["is_decimal_allowed"] and not number.is_integer():
        return "not a whole number"
    low, high = float(element.get("min_value", "-inf")), float(element.get("max_value", "inf"))
    return "" if low <= number <= high else "out of range"
