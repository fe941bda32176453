"""A form as a modal: the whole form, the arguments of a call to edit, or the reason of a rejection."""

from __future__ import annotations

from typing import Any, Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.decisions import answerable
from ai_platform_engineering.integrations.slack_bot.forms.arguments import argument_blocks
from ai_platform_engineering.integrations.slack_bot.forms.block_kit import (
    SECTION_LENGTH,
    TITLE_LENGTH,
    Block,
    context,
    escaped_line,
    input_block,
    plain,
    section,
    size,
    verbatim,
)
from ai_platform_engineering.integrations.slack_bot.forms.elements import text_element
from ai_platform_engineering.integrations.slack_bot.forms.ids import (
    METADATA_LENGTH,
    FormReference,
    ModalKind,
    block_id,
    modal_id,
    version_of,
    write_reference,
)
from ai_platform_engineering.integrations.slack_bot.forms.inputs import field_blocks, shown_fields
from ai_platform_engineering.integrations.slack_bot.forms.message import introduction_blocks
from ai_platform_engineering.integrations.slack_bot.places import ThreadPlace
from ai_platform_engineering.text import form_text

# Slack's limit for a view is 250 kB.
_VIEW_SIZE: Final = 230_000
# Slack counts some characters differently, which matters where a view is full of text.
_TEXT_SIZE: Final = 200_000
_MAX_PIECES: Final = 95
_MISSING: Final = (
    "{} more fields stay as they are proposed. To change them, answer in the thread, with one `name: value` line each."
)


def modal(form: Form, task_id: str, place: ThreadPlace, kind: ModalKind = "form") -> dict[str, Any]:
    """The view to open."""
    match kind:
        case "form":
            title, submit, blocks = form.title, "Submit", _form_blocks(answerable(form))
        case "edit":
            title, submit, blocks = "Change the call", "Approve with changes", _edit_blocks(form)
        case "reject":
            title, submit, blocks = "Reject", "Reject", _reject_blocks(form)
        case "show_all":
            title, submit, blocks = "The whole call", "", _whole_blocks(form, task_id)
    return {
        "type": "modal",
        "callback_id": modal_id(kind),
        "private_metadata": write_reference(FormReference(task_id, form.form_id, place), METADATA_LENGTH),
        "title": plain(title.strip() or "A few details", TITLE_LENGTH),
        **({"submit": plain(submit, TITLE_LENGTH)} if submit else {}),
        "close": plain("Close", TITLE_LENGTH),
        "blocks": blocks,
    }


def _form_blocks(form: Form) -> list[Block]:
    whole_title = [section(f"*{escaped_line(form.title, 200)}*")] if len(form.title) > TITLE_LENGTH else []
    blocks = [*whole_title, *introduction_blocks(form)]
    inputs = list(field_blocks(form, max_size=_VIEW_SIZE - size(blocks)))
    if not inputs:
        return [*blocks, section("There is nothing to fill in.")]
    if missing := len({field.field_name for field in form.fields}) - len(shown_fields(form)):
        inputs.append(context(_MISSING.format(missing)))
    return [*blocks, *inputs]


def _edit_blocks(form: Form) -> list[Block]:
    call = [text.removesuffix(" with") for text in form_text.action_lines(form)[:1]]
    intro = [section(f"{escaped_line(text, 500)}. Arguments that you do not change stay as they are.") for text in call]
    return [*intro, *argument_blocks(form, max_size=_VIEW_SIZE)]


def _whole_blocks(form: Form, task_id: str) -> list[Block]:
    """The calls with all of their arguments, in as many blocks as a view takes."""
    text = "\n".join(form_text.action_lines(form, whole=True))
    blocks: list[Block] = []
    room = _TEXT_SIZE
    for start in range(0, len(text), SECTION_LENGTH):
        block = verbatim(text[start : start + SECTION_LENGTH])
        room -= size(block)
        if len(blocks) == _MAX_PIECES or room < 0:
            route = f"`/approvals/{task_id}/{form.form_id}`"
            rest = f"{len(text) - start:,} more characters do not fit here. They are on the web page, and at {route}."
            return [*blocks, context(rest)]
        blocks.append(block)
    return blocks or [section("There are no calls to show.")]


def _reject_blocks(form: Form) -> list[Block]:
    reason = text_element(None, multiline=True)
    name = block_id(0, version_of(form))
    hint = "The agent receives this reason."
    return [*introduction_blocks(form), input_block(name, "Why not?", reason, hint, optional=True)]
