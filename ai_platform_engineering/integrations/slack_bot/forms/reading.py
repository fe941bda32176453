"""What Slack sends when a form is answered, as the answer it is, or as what is wrong with it.

Nothing that was typed is lost: what is wrong in a modal is said there, and the modal stays open; a form that was filled
in wrongly in its message comes back with what was typed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.forms.arguments import same_value
from ai_platform_engineering.forms.decisions import answerable, decide, is_approval
from ai_platform_engineering.forms.filling import Filled, Refused, fill
from ai_platform_engineering.integrations.slack_bot.forms.arguments import arguments, changed_argument, shown_text
from ai_platform_engineering.integrations.slack_bot.forms.block_kit import line
from ai_platform_engineering.integrations.slack_bot.forms.ids import (
    ModalKind,
    Press,
    Reference,
    block_id,
    read_block_id,
    read_button_id,
    read_modal_id,
    read_reference,
    version_of,
)
from ai_platform_engineering.integrations.slack_bot.forms.inputs import shown_fields
from ai_platform_engineering.integrations.slack_bot.forms.values import entered
from ai_platform_engineering.text import form_words

NOTHING_CHANGED: Final = "Nothing was changed. To approve it as it is, close this and press Approve."

_ERROR_LENGTH: Final = 1_000


@dataclass(frozen=True, slots=True)
class Pressed:
    """A button below a form."""

    press: Press
    reference: Reference


@dataclass(frozen=True, slots=True)
class OpenModal:
    """The answer is given in a modal."""

    kind: ModalKind


@dataclass(frozen=True, slots=True)
class _Entry:
    """An input as it was sent: its block, what is in it, whether something stood in it when it was shown."""

    block: str
    state: Mapping[str, Any]
    prefilled: bool = False


def read_button(payload: Mapping[str, Any]) -> Pressed | None:
    """The button that was pressed, if it is one of a form's."""
    actions = payload.get("actions")
    action = actions[0] if isinstance(actions, list) and actions else None
    if not isinstance(action, Mapping):
        return None
    press, reference = read_button_id(action.get("action_id")), read_reference(action.get("value"))
    return Pressed(press, reference) if press is not None and reference is not None else None


def read_press(form: Form, press: Press, payload: Mapping[str, Any]) -> Answer | OpenModal | Form:
    """What a button says to `form`: an answer, that a modal is wanted, or the form to be shown again."""
    match press:
        case "submit":
            return read_message_state(form, payload)
        case "fill_in":
            return OpenModal("form")
        case "reject" | "edit":
            return OpenModal(press)
        case "approve":
            return Approved()
        case "always":
            return Approved(remember=form_words.remembered(form) is not None)
        case "cancel":
            return Rejected() if is_approval(form) else Dismissed()


def read_message_state(form: Form, payload: Mapping[str, Any]) -> Answer | Form:
    """The answer in the inputs of a message, or the form with what was typed and what is wrong with it."""
    state = payload.get("state")
    outcome = _outcome(form, _entries(state, {}))
    return outcome.form if isinstance(outcome, Refused) else outcome


def read_submission(form: Form, view: Mapping[str, Any]) -> Answer | dict[str, str]:
    """The answer in a modal that was sent, or what is wrong, by block id."""
    entries = _entries(view.get("state"), view)
    match read_modal_id(view.get("callback_id")):
        case "reject":
            reason = str(entries[0].state.get("value") or "").strip() if 0 in entries else ""
            return Rejected(reason) if is_approval(form) else Dismissed(reason)
        case "edit":
            return _edited(form, entries)
        case _:
            outcome = _outcome(form, entries)
            return _errors(outcome.form, entries) if isinstance(outcome, Refused) else outcome


def _outcome(form: Form, entries: Mapping[int, _Entry]) -> Answer | Refused:
    fields = shown_fields(answerable(form))
    values = {
        field.field_name: entered(field, entries[position].state) for position, field in fields if position in entries
    }
    if is_approval(form):
        return decide(form, values)
    outcome = fill(form, values)
    return Submitted(outcome.values) if isinstance(outcome, Filled) else outcome


def _errors(form: Form, entries: Mapping[int, _Entry]) -> dict[str, str]:
    """What is wrong, each at its input; where there is none for it, at the last one."""
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


def _edited(form: Form, entries: Mapping[int, _Entry]) -> Approved | dict[str, str]:
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


def _block(form: Form, entries: Mapping[int, _Entry], position: int) -> str:
    return entries[position].block if position in entries else block_id(position, version_of(form))


def _entries(state: object, view: Mapping[str, Any]) -> dict[int, _Entry]:
    """The inputs by the position of what they ask for. What is none of ours is passed over."""
    prefilled = set(_prefilled(view.get("blocks")))
    values = state.get("values") if isinstance(state, Mapping) else None
    entries: dict[int, _Entry] = {}
    for block, actions in values.items() if isinstance(values, Mapping) else ():
        position = read_block_id(block)
        element = next(iter(actions.values()), None) if isinstance(actions, Mapping) else None
        if position is not None and isinstance(element, Mapping):
            entries[position] = _Entry(block, element, block in prefilled)
    return entries


def _prefilled(blocks: object) -> Iterator[str]:
    for block in blocks if isinstance(blocks, list) else ():
        match block:
            case {"block_id": str(name), "element": {"initial_value": str()}}:
                yield name
