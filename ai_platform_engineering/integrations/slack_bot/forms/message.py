"""A form as a message in its thread: the question with inputs or buttons, and the note below an answered form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.forms.arguments import masked_arguments
from ai_platform_engineering.forms.decisions import is_approval
from ai_platform_engineering.forms.field_names import is_secret
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
    FormReference,
    Press,
    button_id,
    write_reference,
)
from ai_platform_engineering.integrations.slack_bot.forms.inputs import field_blocks, shown_fields
from ai_platform_engineering.text import form_text

_FALLBACK_LENGTH: Final = 500
_NOTE_LENGTH: Final = 1_000
# All texts of a message together may have about 12,000 characters.
_INTRODUCTION_LENGTH: Final = 2_000
_ACTIONS_LENGTH: Final = 4_000
_FIELDS_LENGTH: Final = 2_500
_FIELD_LENGTH: Final = 400
_REMEMBERED_LENGTH: Final = 1_500
_INLINE_SIZE: Final = 8_000
_INLINE_FIELDS: Final = 3


def form_message(form: Form, task_id: str, note: str | None = None) -> tuple[str, list[Block]]:
    """The text for notifications, and the blocks. With a `note` (in mrkdwn) the form is closed: it has no inputs, and
    the note says why."""
    heading = form_text.heading(form)
    text = escaped_line(heading, _FALLBACK_LENGTH)
    if note is not None:
        return f"{text}\n{note}", [*_asked(replace(form, response=""), heading), context(note)]
    value = write_reference(FormReference(task_id, form.form_id), VALUE_LENGTH)
    answering = _decision(form, value) if is_approval(form) else _inline(form, value) or _opening(form, value)
    return text, [*_asked(form, heading), *answering]


def introduction_blocks(form: Form) -> list[Block]:
    """The introduction of the form, and the tool calls to approve."""
    lines = [escaped_line(text, _INTRODUCTION_LENGTH // 2) for text in form_text.introduction(form)]
    actions = form_text.action_lines(form)
    return [
        *([section("\n\n".join(lines))] if lines else []),
        *([preformatted(actions, _ACTIONS_LENGTH)] if actions else []),
    ]


def _asked(form: Form, heading: str) -> list[Block]:
    return [header(heading), *introduction_blocks(form)]


def _decision(form: Form, value: str) -> list[Block]:
    requests = form.action_requests
    buttons = [_button("Approve", "approve", value, style="primary"), _button("Reject...", "reject", value)]
    if len(requests) == 1 and form_text.arguments_of(requests[0]):
        buttons.append(_button("Edit...", "edit", value))
    if form_text.is_cut(form) or len("\n".join(form_text.action_lines(form))) > _ACTIONS_LENGTH:
        buttons.append(_button("Show all", "show_all", value))
    always = form_text.remembered(form)
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
    """The inputs in the message itself; None for long forms and for forms with secrets."""
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
    """A list of the fields, and the button that opens the modal."""
    lines: list[str] = []
    for field in form.fields:
        lines.append(f"- {line(form_text.field_line(field), _FIELD_LENGTH)}")
        if field.error:
            lines.append(f"  {line(field.error, _FIELD_LENGTH)}")
    opening = _button("Fill in", "fill_in", value, style="primary")
    return [
        preformatted(lines, _FIELDS_LENGTH),
        {"type": "actions", "elements": [opening, _button("Cancel", "cancel", value)]},
    ]


def _button(text: str, press: Press, value: str, **more: Any) -> Block:
    return button(text, button_id(press), value, **more)


def answered_note(form: Form, answer: Answer, person_mention: str) -> str:
    """The person and their answer, in mrkdwn; secrets are masked. `person_mention` is a mention in mrkdwn."""
    match answer:
        case Submitted():
            text = form_text.answer_text(form, answer).replace("\n", ", ")
            return f"Answered by {person_mention}: {escaped_line(text, _NOTE_LENGTH)}"
        case Approved(None, True):
            remembered = form_text.remembered(form) or "the same need not be approved again in this conversation"
            return f"Approved by {person_mention}, from now on: {escaped_line(remembered, _NOTE_LENGTH)}"
        case Approved(None):
            return f"Approved by {person_mention}"
        case Approved(arguments, remember):
            shown = Approved(masked_arguments(arguments or {}), remember)
            text = form_text.answer_text(form, shown).removeprefix("approve with ")
            return f"Approved by {person_mention} with {escaped_line(text, _NOTE_LENGTH)}"
        case Rejected(reason):
            return f"Rejected by {person_mention}{_because(reason)}"
        case Dismissed(reason):
            return f"Canceled by {person_mention}{_because(reason)}"


def _because(reason: str) -> str:
    return f": {escaped_line(reason, _NOTE_LENGTH)}" if reason.strip() else ""
