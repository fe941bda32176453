"""Parses Slack's payloads (a pressed button, a submitted modal) into an answer or into validation errors.

Typed values are never lost: a modal with errors stays open and shows them, and a form in a message is shown again with
the typed values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.forms.arguments import same_value
from ai_platform_engineering.forms.decisions import answerable, decide, is_approval
from ai_platform_engineering.forms.filling import FilledForm, InvalidForm, fill
from ai_platform_engineering.integrations.slack_bot.forms.arguments import arguments, changed_argument, shown_text
from ai_platform_engineering.integrations.slack_bot.forms.block_kit import line
from ai_platform_engineering.integrations.slack_bot.forms.ids import (
    FormReference,
    ModalKind,
    Press,
    block_id,
    read_block_id,
    read_button_id,
    read_modal_id,
    read_reference,
    version_of,
)
from ai_platform_engineering.integrations.slack_bot.forms.inputs import shown_fields
from ai_platform_engineering.integrations.slack_bot.forms.values import entered_value
from ai_platform_engineering.text import form_text

NOTHING_CHANGED: Final = "Nothing was changed. To approve it as it is, close this and press Approve."

_ERROR_LENGTH: Final = 1_000


@dataclass(frozen=True, slots=True)
class PressedFormButton:
    """A button below a form."""

    press: Press
    reference: FormReference


@dataclass(frozen=True, slots=True)
class OpenModal:
    """A modal has to be opened for the answer."""

    kind: ModalKind


@dataclass(frozen=True, slots=True)
class _SubmittedInput:
    """An input of a payload: its block id, its state, and whether it had an initial value."""

    block: str
    state: Mapping[str, Any]
    prefilled: bool = False


def read_button(payload: Mapping[str, Any]) -> PressedFormButton | None:
    """The pressed button, if it belongs to a form."""
    actions = payload.get("actions")
    action = actions[0] if isinstance(actions, list) and actions else None
    if not isinstance(action, Mapping):
        return None
    press, reference = read_button_id(action.get("action_id")), read_reference(action.get("value"))
    return PressedFormButton(press, reference) if press is not None and reference is not None else None


def read_press(form: Form, press: Press, payload: Mapping[str, Any]) -> Answer | OpenModal | Form:
    """The effect of a button on `form`: an answer, a modal to open, or the form to show again."""
    match press:
        case "submit":
            return read_message_state(form, payload)
        case "fill_in":
            return OpenModal("form")
        case "reject" | "edit" | "show_all":
            return OpenModal(press)
        case "approve":
            return Approved()
        case "always":
            return Approved(remember=form_text.remembered(form) is not None)
        case "cancel":
            return Rejected() if is_approval(form) else Dismissed()


def read_message_state(form: Form, payload: Mapping[str, Any]) -> Answer | Form:
    """The answer in the inputs of a message, or the form with the typed values and their errors."""
    state = payload.get("state")
    outcome = _outcome(form, _entries(state, {}))
    return outcome.form if isinstance(outcome, InvalidForm) else outcome


def read_submission(form: Form, view: Mapping[str, Any]) -> Answer | dict[str, str]:
    """The answer in a submitted modal, or the errors by block id."""
    entries = _entries(view.get("state"), view)
    match read_modal_id(view.get("callback_id")):
        case "reject":
            reason = str(entries[0].state.get("value") or "").strip() if 0 in entries else ""
            return Rejected(reason) if is_approval(form) else Dismissed(reason)
        case "edit":
            return _edited(form, entries)
        case _:
            outcome = _outcome(form, entries)
            return _errors(outcome.form, entries) if isinstance(outcome, InvalidForm) else outcome


def _outcome(form: Form, entries: Mapping[int, _SubmittedInput]) -> Answer | InvalidForm:
    fields = shown_fields(answerable(form))
    values = {
        field.field_name: entered_value(field, entries[position].state)
        for position, field in fields
        if position in entries
    }
    if is_approval(form):
        return decide(form, values)
    outcome = fill(form, values)
    return Submitted(outcome.values) if isinstance(outcome, FilledForm) else outcome


def _errors(form: Form, entries: Mapping[int, _SubmittedInput]) -> dict[str, str]:
    """The errors by block id; the error of a field without an input is shown at the last input."""
    last = max(entries, default=0)
    errors: dict[str, list[str]] = {}
    named = {field.field_name: (position, field) for position, field in reversed(list(enumerate(form.fields)))}
    for position, field in named.values():
        if field.error:
            place = position if position in entries else last
            errors.setdefault(_block(form, entries, place), []).append(field.error)
    if not errors:
        errors[_block(form, entries, last)] = [form.response]
    return {block: line(" ".join(sentences), _ERROR_LENGTH) for block, sentences in errors.items()}


def _edited(form: Form, entries: Mapping[int, _SubmittedInput]) -> Approved | dict[str, str]:
    changed: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for position, argument in enumerate(arguments(form)):
        entry = entries.get(position)
        text = None if entry is None else entry.state.get("value") or ""
        if entry is None or text == (shown_text(argument) if entry.prefilled else ""):
            continue
        try:
            after = changed_argument(argument, str(text))
        except ValueError as error:
            errors[entry.block] = str(error)
        else:
            changed |= {} if same_value(after, argument.value) else {argument.name: after}
    if errors or changed:
        return errors or Approved(changed)
    return {_block(form, entries, min(entries, default=0)): NOTHING_CHANGED}


def _block(form: Form, entries: Mapping[int, _SubmittedInput], position: int) -> str:
    return entries[position].block if position in entries else block_id(position, version_of(form))


def _entries(state: object, view: Mapping[str, Any]) -> dict[int, _SubmittedInput]:
    """The inputs by the position of their field. Blocks of other apps or forms are ignored."""
    prefilled = set(_prefilled(view.get("blocks")))
    values = state.get("values") if isinstance(state, Mapping) else None
    entries: dict[int, _SubmittedInput] = {}
    for block, actions in values.items() if isinstance(values, Mapping) else ():
        position = read_block_id(block)
        element = next(iter(actions.values()), None) if isinstance(actions, Mapping) else None
        if position is not None and isinstance(element, Mapping):
            entries[position] = _SubmittedInput(block, element, block in prefilled)
    return entries


def _prefilled(blocks: object) -> Iterator[str]:
    for block in blocks if isinstance(blocks, list) else ():
        match block:
            case {"block_id": str(name), "element": {"initial_value": str()}}:
                yield name
