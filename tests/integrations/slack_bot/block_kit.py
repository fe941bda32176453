"""Whether Slack would take it: blocks and views, held against the letter of Block Kit's reference.

Knows nothing of the product. Violations are reported as in Slack: a sentence and a JSON pointer. Keys that the
reference does not name are wrong, too; blocks and elements that no test needs are unknown here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from tests.integrations.slack_bot.json_rules import (
    Rule,
    Surface,
    Where,
    listed,
    once,
    one_of,
    record,
    string,
    truth,
    typed,
    whole,
)

MAX_BLOCKS: Mapping[Surface, int] = {"message": 50, "modal": 100, "home": 100}
MAX_TEXT_LENGTH = 40_000
MAX_MARKDOWN_LENGTH = 12_000
MAX_BLOCKS_TEXT_LENGTH = 12_000
"""Slack refuses a message with `msg_blocks_too_long` when its texts have some 12,000 characters together."""
MAX_VIEW_SIZE = 250_000


def message_problems(blocks: Any, text: str | None = None) -> list[str]:
    """What is wrong with the blocks of a message, and with the text that stands beside them."""
    problems = _blocks_problems(blocks, "message")
    if text is not None and len(text) > MAX_TEXT_LENGTH:
        problems.append(f"must be less than {MAX_TEXT_LENGTH + 1} characters [json-pointer:/text]")
    if not problems and (length := sum(map(len, texts(blocks)))) > MAX_BLOCKS_TEXT_LENGTH:
        problems.append(f"msg_blocks_too_long: {length} characters [json-pointer:/blocks]")
    return problems


def view_problems(view: Any) -> list[str]:
    """What is wrong with a view for `views.open`, `views.push`, `views.update` or `views.publish`."""
    surface: Surface = "home" if isinstance(view, Mapping) and view.get("type") == "home" else "modal"
    problems = list(_VIEW(view, Where("/view", surface)))
    if not problems:
        problems += _blocks_problems(view["blocks"], surface, "/view/blocks")
    if not problems:
        has_input = any(block["type"] == "input" for block in view["blocks"])
        if surface == "modal" and has_input and "submit" not in view:
            problems.append("must define `submit` to use an `input` block in modals [json-pointer:/view]")
        if (size := len(json.dumps(view))) > MAX_VIEW_SIZE:
            problems.append(f"view_too_large: {size} bytes [json-pointer:/view]")
    return problems


def texts(value: Any) -> Iterator[str]:
    """Every text that people can read in a block."""
    match value:
        case Mapping():
            for key, part in value.items():
                if isinstance(part, str) and key in ("text", "title", "alt_text"):
                    yield part
                else:
                    yield from texts(part)
        case list():
            for part in value:
                yield from texts(part)


def _blocks_problems(blocks: Any, surface: Surface, pointer: str = "/blocks") -> list[str]:
    where = Where(pointer, surface)
    problems = list(listed(_block, most=MAX_BLOCKS[surface])(blocks, where))
    return problems or list(_together(blocks, where))


def _together(blocks: list[dict[str, Any]], where: Where) -> Iterator[str]:
    """What is wrong with blocks of which each is right."""
    yield from once((block["block_id"] for block in blocks if "block_id" in block), "block_id", where)
    for place, block in enumerate(blocks):
        actions = [element["action_id"] for element in _elements_of(block) if "action_id" in element]
        yield from once(actions, "action_id", where.at(place))
    if sum(element.get("focus_on_load", False) for block in blocks for element in _elements_of(block)) > 1:
        yield where.wrong("only one element may be focused on load")
    if sum(len(block["text"]) for block in blocks if block["type"] == "markdown") > MAX_MARKDOWN_LENGTH:
        yield where.wrong(f"markdown must be less than {MAX_MARKDOWN_LENGTH + 1} characters in all blocks together")
    if sum(block["type"] == "table" for block in blocks) > 1:
        yield where.wrong("only one table is allowed")


def _elements_of(block: Mapping[str, Any]) -> list[dict[str, Any]]:
    single = [block[key] for key in ("element", "accessory") if key in block]
    several = block["elements"] if block["type"] in ("actions", "context_actions") else []
    return [*single, *several]


def _words(longest: int) -> Rule:
    """Text that people read: blanks alone are none."""
    words = string(longest)

    def rule(value: Any, where: Where) -> Iterator[str]:
        yield from words(value.strip() and value if isinstance(value, str) else value, where)

    return rule


def _text_object(longest: int, *, markdown: bool = True) -> Rule:
    words = _words(longest)
    kinds = {"plain_text": record({"text": words}, {"emoji": truth})}
    if markdown:
        kinds["mrkdwn"] = record({"text": words}, {"verbatim": truth})
    return typed(kinds)


def _plain(longest: int) -> Rule:
    return _text_object(longest, markdown=False)


def _option(*, markdown: bool = False, url: bool = False) -> Rule:
    return record(
        {"text": _text_object(75, markdown=markdown), "value": string(150)},
        {"description": _text_object(75, markdown=markdown), **({"url": string(3000)} if url else {})},
    )


def _chosen_exist(element: Mapping[str, Any], where: Where) -> Iterator[str]:
    """Options have values of their own, and what is chosen at first is among them."""
    groups = element.get("option_groups")
    if groups is not None and "options" in element:
        yield where.wrong("only one of `options` and `option_groups` is allowed")
    elif groups is None and "options" not in element:
        yield where.wrong("missing required field: options")
    options = [option for group in groups for option in group["options"]] if groups else element.get("options", [])
    yield from once((option["value"] for option in options), "value", where)
    for key in ("initial_option", "initial_options"):
        chosen = element.get(key, [])
        for option in chosen if isinstance(chosen, list) else [chosen]:
            if option not in options:
                yield where.at(key).wrong("must be one of the options")


_CONFIRM = record(
    {"title": _plain(100), "text": _plain(300), "confirm": _plain(30), "deny": _plain(30)},
    {"style": one_of("primary", "danger")},
)
_DISPATCH = record({"trigger_actions_on": listed(one_of("on_enter_pressed", "on_character_entered"), most=2)})
_GROUP = record({"label": _plain(75), "options": listed(_option(), most=100)})
_FEEDBACK = record({"text": _plain(75), "value": string(2000)}, {"accessibility_label": string(75)})
_STYLE = record({}, dict.fromkeys(("bold", "italic", "strike", "code", "underline"), truth))

_ACTION: Mapping[str, Rule] = {"action_id": string(255)}
_CONFIRMED: Mapping[str, Rule] = {**_ACTION, "confirm": _CONFIRM}
_FOCUSED: Mapping[str, Rule] = {"focus_on_load": truth}
_MENU: Mapping[str, Rule] = {**_CONFIRMED, **_FOCUSED, "placeholder": _plain(150)}
_TYPING: Mapping[str, Rule] = {
    **_ACTION,
    **_FOCUSED,
    "placeholder": _plain(150),
    "initial_value": string(3000),
    "dispatch_action_config": _DISPATCH,
}
_STATIC: Mapping[str, Rule] = {
    "options": listed(_option(), most=100),
    "option_groups": listed(_GROUP, most=100),
}


def _lengths_agree(element: Mapping[str, Any], where: Where) -> Iterator[str]:
    low, high = element.get("min_length", 0), element.get("max_length", 3000)
    if low > high:
        yield where.wrong("min_length must not be greater than max_length")
    if len(element.get("initial_value", "")) > high:
        yield where.at("initial_value").wrong(f"must be less than {high + 1} characters")


def _numbers_agree(element: Mapping[str, Any], where: Where) -> Iterator[str]:
    numbers: dict[str, Decimal] = {}
    for key in ("min_value", "initial_value", "max_value"):
        if key in element:
            try:
                numbers[key] = Decimal(element[key])
            except InvalidOperation:
                yield where.at(key).wrong("must be a number")
                continue
            integer = element[key].removeprefix("-").isdigit()
            if not numbers[key].is_finite() or "e" in element[key].lower():
                yield where.at(key).wrong("must be a number in digits")
            elif not element["is_decimal_allowed"] and not integer:
                yield where.at(key).wrong("must be an integer where decimals are not allowed")
    if sorted(numbers.values()) != list(numbers.values()):
        yield where.wrong("min_value, initial_value and max_value must not contradict each other")


@dataclass(frozen=True, slots=True)
class _Element:
    rule: Rule
    blocks: frozenset[str]
    surfaces: frozenset[str] = frozenset({"message", "modal", "home"})


_ACTIVE = frozenset({"section", "actions"})
_ANYWHERE = frozenset({"section", "actions", "input"})
_INPUT = frozenset({"input"})
_MODAL = frozenset({"modal"})

_KNOWN_ELEMENTS: Mapping[str, _Element] = {
    "button": _Element(
        record(
            {"text": _plain(75)},
            {
                **_CONFIRMED,
                "value": string(2000),
                "url": string(3000),
                "style": one_of("primary", "danger"),
                "accessibility_label": string(75),
            },
        ),
        _ACTIVE,
    ),
    "overflow": _Element(record({"options": listed(_option(url=True), most=5)}, _CONFIRMED, _chosen_exist), _ACTIVE),
    "static_select": _Element(record({}, {**_MENU, **_STATIC, "initial_option": _option()}, _chosen_exist), _ANYWHERE),
    "multi_static_select": _Element(
        record(
            {},
            {
                **_MENU,
                **_STATIC,
                "initial_options": listed(_option()),
                "max_selected_items": whole(1, 10_000),
            },
            _chosen_exist,
        ),
        _ANYWHERE,
    ),
    "radio_buttons": _Element(
        record(
            {"options": listed(_option(markdown=True), most=10)},
            {**_CONFIRMED, **_FOCUSED, "initial_option": _option(markdown=True)},
            _chosen_exist,
        ),
        _ANYWHERE,
    ),
    "checkboxes": _Element(
        record(
            {"options": listed(_option(markdown=True), most=10)},
            {**_CONFIRMED, **_FOCUSED, "initial_options": listed(_option(markdown=True))},
            _chosen_exist,
        ),
        _ANYWHERE,
    ),
    "plain_text_input": _Element(
        record(
            {},
            {**_TYPING, "multiline": truth, "min_length": whole(0, 3000), "max_length": whole(1, 3000)},
            _lengths_agree,
        ),
        _INPUT,
    ),
    "number_input": _Element(
        record(
            {"is_decimal_allowed": truth},
            {**_TYPING, "min_value": string(), "max_value": string()},
            _numbers_agree,
        ),
        _INPUT,
        _MODAL,
    ),
    "url_text_input": _Element(record({}, _TYPING), _INPUT, _MODAL),
    "email_text_input": _Element(record({}, _TYPING), _INPUT, _MODAL),
    "image": _Element(record({"image_url": string(3000), "alt_text": string(2000)}), frozenset({"section", "context"})),
    "feedback_buttons": _Element(
        record({"positive_button": _FEEDBACK, "negative_button": _FEEDBACK}, _ACTION),
        frozenset({"context_actions"}),
        frozenset({"message"}),
    ),
    "icon_button": _Element(
        record(
            {"icon": one_of("trash"), "text": _plain(75)},
            {
                **_CONFIRMED,
                "value": string(2000),
                "accessibility_label": string(75),
                "visible_to_user_ids": listed(string(), most=10),
            },
        ),
        frozenset({"context_actions"}),
        frozenset({"message"}),
    ),
}


def _element(value: Any, where: Where) -> Iterator[str]:
    kind = value.get("type") if isinstance(value, Mapping) else None
    known = _KNOWN_ELEMENTS.get(kind) if isinstance(kind, str) else None
    if known is None or where.block not in known.blocks:
        yield where.wrong(f"unsupported type of element in a block of type {where.block}: {kind}")
    elif where.surface not in known.surfaces:
        yield where.wrong(f"unsupported type of element on this surface: {kind}")
    else:
        yield from known.rule({key: part for key, part in value.items() if key != "type"}, where)


def _context_element(value: Any, where: Where) -> Iterator[str]:
    is_image = isinstance(value, Mapping) and value.get("type") == "image"
    yield from (_element if is_image else _text_object(3000))(value, where)


_STYLED: Mapping[str, Rule] = {"style": _STYLE}
_SPANS = typed(
    {
        "text": record({"text": string()}, _STYLED),
        "link": record({"url": string(3000)}, {**_STYLED, "text": string(), "unsafe": truth}),
        "emoji": record({"name": string()}, {**_STYLED, "unicode": string(), "skin_tone": whole(1, 6)}),
        "user": record({"user_id": string()}, _STYLED),
        "usergroup": record({"usergroup_id": string()}, _STYLED),
        "channel": record({"channel_id": string()}, _STYLED),
        "broadcast": record({"range": one_of("here", "channel", "everyone")}, _STYLED),
    }
)
_BORDER: Mapping[str, Rule] = {"border": whole(0, 1)}
_RICH_SECTION = record({"elements": listed(_SPANS)})
_RICH_PARTS = typed(
    {
        "rich_text_section": _RICH_SECTION,
        "rich_text_quote": record({"elements": listed(_SPANS)}, _BORDER),
        "rich_text_preformatted": record({"elements": listed(_SPANS)}, {**_BORDER, "language": string()}),
        "rich_text_list": record(
            {
                "style": one_of("bullet", "ordered"),
                "elements": listed(typed({"rich_text_section": _RICH_SECTION})),
            },
            {**_BORDER, "indent": whole(0, 8), "offset": whole(0, 10_000)},
        ),
    }
)
_RICH_TEXT = record({"elements": listed(_RICH_PARTS)}, {"block_id": string(255)})


def _something_in(section: Mapping[str, Any], where: Where) -> Iterator[str]:
    if "text" not in section and "fields" not in section:
        yield where.wrong("missing required field: text")


def _same_width(table: Mapping[str, Any], where: Where) -> Iterator[str]:
    if len({len(row) for row in table["rows"]}) > 1:
        yield where.at("rows").wrong("all rows must have the same number of cells")


def _tasks_once(plan: Mapping[str, Any], where: Where) -> Iterator[str]:
    yield from once((task["task_id"] for task in plan.get("tasks", [])), "task_id", where)


_ID: Mapping[str, Rule] = {"block_id": string(255)}
_TASK_CARD = record(
    {"task_id": string(), "title": string(256)},
    {
        **_ID,
        "status": one_of("pending", "in_progress", "complete", "error"),
        "details": typed({"rich_text": _RICH_TEXT}),
        "output": typed({"rich_text": _RICH_TEXT}),
        "sources": listed(typed({"url": record({"url": string(3000), "text": string()})}), fewest=0),
    },
)
_CELL = typed({"raw_text": record({"text": string()}), "rich_text": _RICH_TEXT})
_COLUMN = record({}, {"align": one_of("left", "center", "right"), "is_wrapped": truth})

_EVERYWHERE = frozenset({"message", "modal", "home"})
_MESSAGE = frozenset({"message"})

_KNOWN_BLOCKS: Mapping[str, tuple[Rule, frozenset[str]]] = {
    "actions": (record({"elements": listed(_element, most=25)}, _ID), _EVERYWHERE),
    "context": (record({"elements": listed(_context_element, most=10)}, _ID), _EVERYWHERE),
    "context_actions": (record({"elements": listed(_element, most=5)}, _ID), _MESSAGE),
    "divider": (record({}, _ID), _EVERYWHERE),
    "header": (record({"text": _plain(150)}, _ID), _EVERYWHERE),
    "image": (
        record({"image_url": string(3000), "alt_text": string(2000)}, {**_ID, "title": _plain(2000)}),
        _EVERYWHERE,
    ),
    "input": (
        record(
            {"label": _plain(2000), "element": _element},
            {**_ID, "hint": _plain(2000), "optional": truth, "dispatch_action": truth},
        ),
        _EVERYWHERE,
    ),
    "markdown": (record({"text": string(MAX_MARKDOWN_LENGTH)}, _ID), _MESSAGE),
    "plan": (
        record(
            {"title": string(256)},
            {**_ID, "tasks": listed(typed({"task_card": _TASK_CARD}), fewest=0)},
            _tasks_once,
        ),
        _MESSAGE,
    ),
    "rich_text": (_RICH_TEXT, _EVERYWHERE),
    "section": (
        record(
            {},
            {
                **_ID,
                "text": _text_object(3000),
                "fields": listed(_text_object(2000), most=10),
                "accessory": _element,
                "expand": truth,
            },
            _something_in,
        ),
        _EVERYWHERE,
    ),
    "table": (
        record(
            {"rows": listed(listed(_CELL, most=20), most=100)},
            {**_ID, "column_settings": listed(_COLUMN, most=20)},
            _same_width,
        ),
        _MESSAGE,
    ),
    "task_card": (_TASK_CARD, _MESSAGE),
}


def _block(value: Any, where: Where) -> Iterator[str]:
    kind = value.get("type") if isinstance(value, Mapping) else None
    known = _KNOWN_BLOCKS.get(kind) if isinstance(kind, str) else None
    if known is None or where.surface not in known[1]:
        yield where.wrong(f"unsupported type: {kind}")
    else:
        rest = {key: part for key, part in value.items() if key != "type"}
        yield from known[0](rest, replace(where, block=str(kind)))


def _anything(value: Any, where: Where) -> Iterator[str]:
    return iter(())


_VIEW_KEYS: Mapping[str, Rule] = {
    "private_metadata": string(3000, 0),
    "callback_id": string(255, 0),
    "external_id": string(255, 0),
}
_VIEW = typed(
    {
        "modal": record(
            {"title": _plain(24), "blocks": _anything},
            {
                **_VIEW_KEYS,
                "submit": _plain(24),
                "close": _plain(24),
                "clear_on_close": truth,
                "notify_on_close": truth,
                "submit_disabled": truth,
            },
        ),
        "home": record({"blocks": _anything}, _VIEW_KEYS),
    }
)
