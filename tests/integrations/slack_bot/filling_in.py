"""A person who fills in inputs, and the payload Slack then sends. It knows Block Kit, and nothing of forms."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any


class CannotEnterError(Exception):
    """The input does not take that."""


class NotSentError(Exception):
    """Slack keeps the modal open by itself: these blocks are empty and must not be."""


def inputs(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [block for block in blocks if block["type"] == "input"]


def options(element: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [option for group in element.get("option_groups", [element]) for option in group["options"]]


def initially(element: Mapping[str, Any]) -> dict[str, Any]:
    """The state of an untouched element."""
    match element["type"]:
        case "static_select" | "radio_buttons":
            return {"type": element["type"], "selected_option": element.get("initial_option")}
        case "multi_static_select" | "checkboxes":
            return {"type": element["type"], "selected_options": element.get("initial_options", [])}
        case kind:
            return {"type": kind, "value": element.get("initial_value")}


def entering(element: Mapping[str, Any], entry: str | list[str]) -> dict[str, Any]:
    """The state after `entry`: the text that is typed, or the options that are chosen as they are shown."""
    match element["type"]:
        case "static_select" | "radio_buttons":
            return {"type": element["type"], "selected_option": _option(element, entry)}
        case "multi_static_select" | "checkboxes":
            chosen = [_option(element, item) for item in ([entry] if isinstance(entry, str) else entry)]
            return {"type": element["type"], "selected_options": chosen}
        case kind:
            text = entry if isinstance(entry, str) else "\n".join(entry)
            if kind == "number_input" and text:
                _number(element, text)
            return {"type": kind, "value": text or None}


def state(blocks: list[dict[str, Any]], entries: Mapping[str, str | list[str]]) -> dict[str, Any]:
    """What Slack knows of the inputs after `entries`, which are made by block id."""
    return {
        "values": {
            block["block_id"]: {
                block["element"]["action_id"]: entering(block["element"], entries[block["block_id"]])
                if block["block_id"] in entries
                else initially(block["element"])
            }
            for block in inputs(blocks)
        }
    }


def submitted(view: Mapping[str, Any], entries: Mapping[str, str | list[str]]) -> dict[str, Any]:
    """The view of the `view_submission`. Raises `NotSentError` where Slack sends none."""
    entered = state(view["blocks"], entries)
    empty = [
        block["block_id"]
        for block in inputs(view["blocks"])
        if not block.get("optional") and _is_empty(*entered["values"][block["block_id"]].values())
    ]
    if empty:
        raise NotSentError(empty)
    return {**view, "id": "V1", "state": entered}


def pressed(blocks: list[dict[str, Any]], text: str, entries: Mapping[str, str | list[str]] | None = None) -> Any:
    """The `block_actions` payload after the button with this text."""
    buttons = [button for block in blocks if block["type"] == "actions" for button in block["elements"]]
    button = next(button for button in buttons if button["text"]["text"] == text)
    action = {key: button[key] for key in ("type", "action_id", "value", "text")}
    return {"type": "block_actions", "actions": [action], "state": state(blocks, entries or {})}


def _option(element: Mapping[str, Any], entry: Any) -> dict[str, Any]:
    for option in options(element):
        if option["text"]["text"] == entry:
            return option
    raise CannotEnterError(entry)


def _number(element: Mapping[str, Any], text: str) -> None:
    try:
        number = Decimal(text)
        low, high = Decimal(element.get("min_value", "-Infinity")), Decimal(element.get("max_value", "Infinity"))
    except InvalidOperation:
        raise CannotEnterError(text) from None
    whole = number.is_finite() and number == number.to_integral_value()
    if not number.is_finite() or not low <= number <= high or not (whole or element["is_decimal_allowed"]):
        raise CannotEnterError(text)


def _is_empty(state: Mapping[str, Any]) -> bool:
    return not any(state.get(key) for key in ("value", "selected_option", "selected_options"))
