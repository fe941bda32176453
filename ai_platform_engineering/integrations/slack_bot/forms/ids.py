"""Ids and metadata that Slack sends back: they name the button, the modal, the field and the form."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from ai_platform_engineering.events import Form
from ai_platform_engineering.integrations.slack_bot.places import ThreadPlace

Press = Literal["submit", "fill_in", "cancel", "approve", "always", "reject", "edit", "show_all"]
"""The buttons below a form. `fill_in`, `reject`, `edit` and `show_all` open a modal."""
ModalKind = Literal["form", "edit", "reject", "show_all"]

BUTTONS: Final = re.compile(rf"form\.button\.({'|'.join(get_args(Press))})")
"""The action ids of all buttons."""
MODALS: Final = re.compile(rf"form\.modal\.({'|'.join(get_args(ModalKind))})")
"""The callback ids of all modals."""
INPUT: Final = "form.input"
"""The action id of every input; the block id names the field."""

VALUE_LENGTH: Final = 2_000
METADATA_LENGTH: Final = 3_000

_PRESSES: Final[dict[str, Press]] = {f"form.button.{press}": press for press in get_args(Press)}
_KINDS: Final[dict[str, ModalKind]] = {f"form.modal.{kind}": kind for kind in get_args(ModalKind)}
_BLOCK: Final = re.compile(r"form\.field\.([0-9]{1,6})\.[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class FormReference:
    """The form that a button or a modal belongs to; `place` is the thread where it was opened."""

    task_id: str
    form_id: str
    place: ThreadPlace | None = None


def button_id(press: Press) -> str:
    return f"form.button.{press}"


def read_button_id(action_id: object) -> Press | None:
    return _PRESSES.get(action_id) if isinstance(action_id, str) else None


def modal_id(kind: ModalKind) -> str:
    return f"form.modal.{kind}"


def read_modal_id(callback_id: object) -> ModalKind | None:
    return _KINDS.get(callback_id) if isinstance(callback_id, str) else None


def version_of(form: Form) -> str:
    """Another text whenever the form looks different."""
    return hashlib.blake2s(repr((form.fields, form.response)).encode(errors="replace"), digest_size=4).hexdigest()


def block_id(position: int, version: str) -> str:
    """The block id of the field at `position`. For a block with the same id Slack keeps the typed text and ignores a
    new initial value, so the id changes with the version of the form."""
    return f"form.field.{position}.{version}"


def read_block_id(text: object) -> int | None:
    """The position of the field with this block id."""
    found = _BLOCK.fullmatch(text) if isinstance(text, str) else None
    return int(found[1]) if found else None


def write_reference(reference: FormReference, max_length: int) -> str:
    """`reference` as JSON. Ids that are too long are left out: a task with one open form needs no form id."""
    for candidate in (reference, replace(reference, form_id=""), FormReference("", "")):
        data: dict[str, Any] = {"task": candidate.task_id, "form": candidate.form_id}
        if candidate.place is not None:
            data["place"] = [candidate.place.team, candidate.place.channel, candidate.place.thread_ts]
        text = json.dumps(data)
        if len(text) <= max_length:
            break
    return text


def read_reference(text: object) -> FormReference | None:
    """The reference in `text`, or None if it names no task."""
    try:
        data = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    match data:
        case {"task": str(task), "form": str(form), "place": [str(team), str(channel), str(thread_ts)]} if task:
            return FormReference(task, form, ThreadPlace(team, channel, thread_ts))
        case {"task": str(task), "form": str(form)} if task:
            return FormReference(task, form)
        case _:
            return None
