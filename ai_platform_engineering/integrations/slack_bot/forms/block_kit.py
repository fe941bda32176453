"""The Block Kit elements that forms use. Every text is cut to Slack's limit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from ai_platform_engineering.utils.a2a_common.codec.labels import one_line
from ai_platform_engineering.utils.characters import clean

Block = dict[str, Any]

SECTION_LENGTH: Final = 3_000
HEADER_LENGTH: Final = 150
LABEL_LENGTH: Final = 2_000
OPTION_LENGTH: Final = 75
CONFIRM_LENGTH: Final = 300
TITLE_LENGTH: Final = 24
INITIAL_LENGTH: Final = 3_000
BUTTON_LENGTH: Final = 75

_NOTHING: Final = "–"
_MAX_ESCAPE_LENGTH: Final = 5
_LINE_LENGTH: Final = 500
_MISSING: Final = "... and {} more lines"


def line(text: str, max_length: int) -> str:
    """`text` on one line, never empty: Slack rejects an empty text."""
    return one_line(text, max_length) or _NOTHING


def plain(text: str, max_length: int) -> Block:
    """Text without formatting and emoji: `:8080:` stays as it is."""
    return {"type": "plain_text", "text": line(text, max_length), "emoji": False}


def escaped(text: str) -> str:
    """Escape `text`, so that it cannot mention people or become a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def markdown(text: str, max_length: int) -> Block:
    """Text that is escaped already. `verbatim`: Slack does not turn names and addresses in it into links."""
    return {"type": "mrkdwn", "text": text[:max_length], "verbatim": True}


def escaped_line(text: str, max_length: int) -> str:
    """`text` on one line, cut first and then escaped, so that no escape sequence is cut."""
    written = escaped(line(text, max_length))
    return written if len(written) <= max_length else escaped(line(text, max_length // _MAX_ESCAPE_LENGTH))


def header(text: str) -> Block:
    return {"type": "header", "text": plain(text, HEADER_LENGTH)}


def section(text: str) -> Block:
    return {"type": "section", "text": markdown(text, SECTION_LENGTH)}


def context(text: str) -> Block:
    return {"type": "context", "elements": [markdown(text, SECTION_LENGTH)]}


def preformatted(lines: Sequence[str], max_length: int) -> Block:
    """`lines` as preformatted text. Long lines are cut, and a last line says how many lines are missing."""
    shown: list[str] = []
    max_size = max_length - len(_MISSING.format(10**6))
    for number, text in enumerate(map(_cut, lines)):
        max_size -= len(text) + 1
        if max_size < 0:
            shown.append(_MISSING.format(len(lines) - number))
            break
        shown.append(text)
    return verbatim("\n".join(shown))


def verbatim(text: str) -> Block:
    """`text` as preformatted text, as it is."""
    element = {"type": "text", "text": text if text.strip() else _NOTHING}
    return {"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [element]}]}


def button(text: str, action_id: str, value: str, **more: Any) -> Block:
    return {"type": "button", "text": plain(text, BUTTON_LENGTH), "action_id": action_id, "value": value, **more}


def confirmation(title: str, text: str, confirm: str) -> Block:
    return {
        "title": plain(title, 100),
        "text": plain(text, CONFIRM_LENGTH),
        "confirm": plain(confirm, 30),
        "deny": plain("Cancel", 30),
    }


def input_block(block_id: str, label: str, element: Block, hint: str, *, optional: bool) -> Block:
    block = {
        "type": "input",
        "block_id": block_id,
        "label": plain(label, LABEL_LENGTH),
        "element": element,
        "optional": optional,
    }
    return {**block, "hint": plain(hint, LABEL_LENGTH)} if hint.strip() else block


def size(part: object) -> int:
    """The size of the JSON, which Slack limits."""
    return len(json.dumps(part))


def _cut(text: str) -> str:
    text = clean(text)
    return text if len(text) <= _LINE_LENGTH else f"{text[:_LINE_LENGTH]}…"
