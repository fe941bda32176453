"""A form as a message in its thread: what is asked, and the inputs or buttons to answer it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.credentials import is_secret
from ai_platform_engineering.forms.decisions import is_approval
from ai_platform_engineering.integrations.slack_bot.forms.block_kit import (
    CONFIRM_LENGTH,
    Block,
    button,
    confirmation,
    context,
    escaped_line,
    header,
    line,
    preformatted,
    section,
    size,
)
from ai_platform_engineering.integrations.slack_bot.forms.ids import (
    VALUE_LENGTH,
    Press,
    Reference,
    button_id,
    write_reference,
)
from ai_platform_engineering.integrations.slack_bot.forms.inputs import field_blocks, shown_fields
from ai_platform_engineering.text import form_words

_FALLBACK_LENGTH: Final = 500
# Slack takes some 12,000 characters in all texts of a message.
_INTRODUCTION_LENGTH: Final = 2_000
_ACTIONS_LENGTH: Final = 4_000
_FIELDS_LENGTH: Final = 2_500
_FIELD_LENGTH: Final = 400
_REMEMBERED_LENGTH: Final = 1_500
_INLINE_SIZE: Final = 8_000
_INLINE_FIELDS: Final = 3


def form_message(form: Form, task_id: str, note: str | None = None) -> tuple[str, list[Block]]:
    """The text for notifications, and the blocks. With a `note` (in Slack's own Markdown) the form takes no answer any
    more, and the note says why."""
    heading = form_words.heading(form)
    text = escaped_line(heading, _FALLBACK_LENGTH)
    if note is not None:
        return f"{text}\n{note}", [*_asked(replace(form, response=""), heading), context(note)]
    value = write_reference(Reference(task_id, form.form_id), VALUE_LENGTH)
    answering = _decision(form, value) if is_approval(form) else _inline(form, value) or _opening(form, value)
    return text, [*_asked(form, heading), *answering]


def introduction_blocks(form: Form) -> list[Block]:
    """Why it is asked, and what would be done."""
    lines = [escaped_line(text, _INTRODUCTION_LENGTH // 2) for text in form_words.introduction(form)]
    actions = form_words.action_lines(form)
    return [
        *([section("\n\n".join(lines))] if lines else []),
        *([preformatted(actions, _ACTIONS_LENGTH)] if actions else []),
    ]


def _asked(form: Form, heading: str) -> list[Block]:
    return [header(heading), *introduction_blocks(form)]


def _decision(form: Form, value: str) -> list[Block]:
    requests = form.action_requests
    buttons = [_button("Approve", "approve", value, style="primary"), _button("Reject...", "reject", value)]
    if len(requests) == 1 and form_words.arguments_of(requests[0]):
        buttons.append(_button("Edit...", "edit", value))
    always = form_words.remembered(form)
    if always is None:
        return [{"type": "actions", "elements": buttons}]
    sentence = f"Approve, and do not ask again: {always}."
    whole = len(sentence) <= CONFIRM_LENGTH
    asked = sentence if whole else "Approve, and do not ask again for what the message says beside the buttons?"
    confirm = confirmation("Always approve?", asked, "Always approve")
    buttons.append(_button("Always approve", "always", value, confirm=confirm))
    explained = [] if whole else [context(f"Always approve: {escaped_line(always, _REMEMBERED_LENGTH)}.")]
    return [*explained, {"type": "actions", "elements": buttons}]


def _inline(form: Form, value: str) -> list[Block] | None:
    """The inputs in the message itself, for a form that is short enough and has nothing to hide."""
    fields = [field for _, field in shown_fields(form)]
    if len(fields) > _INLINE_FIELDS or any(
        field.field_type == "multiline" or is_secret(field.field_name) for field in fields
    ):
        return None
    inputs = list(field_blocks(form, in_message=True))
    if size(inputs) > _INLINE_SIZE or any(_is_long(block) for block in inputs):
        return None
    submit = _button("Submit", "submit", value, style="primary")
    return [*inputs, {"type": "actions", "elements": [submit, _button("Cancel", "cancel", value)]}]


def _is_long(block: Block) -> bool:
    return bool(block.get("element", {}).get("multiline"))


def _opening(form: Form, value: str) -> list[Block]:
    """What is going to be asked, and the button that opens the modal."""
    lines: list[str] = []
    for field in form.fields:
        lines.append(f"- {line(form_words.field_line(field), _FIELD_LENGTH)}")
        if field.error:
            lines.append(f"  {line(field.error, _FIELD_LENGTH)}")
    opening = _button("Fill in", "fill_in", value, style="primary")
    return [
        preformatted(lines, _FIELDS_LENGTH),
        {"type": "actions", "elements": [opening, _button("Cancel", "cancel", value)]},
    ]


def _button(text: str, press: Press, value: str, **more: Any) -> Block:
    return button(text, button_id(press), value, **more)
