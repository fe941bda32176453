"""A form or an approval, asked of a person field by field.

Who the person is, is left open: `person` talks to the one at the keyboard.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.forms.credentials import is_secret
from ai_platform_engineering.forms.decisions import is_approval
from ai_platform_engineering.terminal.editor import EditorError
from ai_platform_engineering.terminal.entries import Wrong, entered
from ai_platform_engineering.text import form_words
from ai_platform_engineering.text.plain_text import one_line

Tone = Literal["heading", "plain", "quiet", "problem"]

WAYS_OUT: Final = "/later leaves it open, /cancel or Ctrl-D dismisses it."
DISMISSED: Final = "The form is dismissed; the supervisor is told so."
NOT_APPROVED: Final = "Dismissed: this counts as rejected."

_CHOICES: Final = {
    "yes": "approve",
    "y": "approve",
    "no": "reject",
    "n": "reject",
    **{letters: choice for choice in ("approve", "edit", "reject", "always") for letters in (choice, choice[:2])},
    "e": "edit",
    "r": "reject",
}


class Person(Protocol):
    """Somebody who is asked."""

    def tell(self, text: str, tone: Tone = "plain") -> None:
        """Say one line."""

    def ask(self, label: str, *, hidden: bool = False) -> str:
        """What is typed after `label`. Raises `EOFError` for Ctrl-D and `KeyboardInterrupt` for Ctrl-C."""

    def edit(self, text: str, name: str) -> str | None:
        """`text` as it comes out of the editor, nothing where there is none. Raises `EditorError`."""


@dataclass(frozen=True, slots=True)
class PutOff:
    """The form stays open; `interrupted` where it was left with Ctrl-C."""

    interrupted: bool = False


class _LeftError(Exception):
    """The form is left before its end."""

    def __init__(self, outcome: Dismissed | PutOff) -> None:
        super().__init__()
        self.outcome = outcome


def answer_of(form: Form, person: Person, *, others: int = 0) -> Answer | PutOff:
    """Ask `person` to answer `form`; `others` are open beside it."""
    person.tell(form_words.heading(form), "heading")
    for line in form_words.introduction(form):
        person.tell(f"  {line}")
    if others:
        person.tell(f"  {others} more {'is' if others == 1 else 'are'} open and will be asked afterwards.", "quiet")
    for line in form_words.action_lines(form):
        person.tell(f"  {line}")
    try:
        if is_approval(form):
            return _decide(form, person)
        return Submitted(_fill_in(form, person))
    except _LeftError as left:
        if isinstance(left.outcome, Dismissed):
            person.tell(f"  {NOT_APPROVED if is_approval(form) else DISMISSED}", "quiet")
        return left.outcome


def _fill_in(form: Form, person: Person) -> dict[str, Any]:
    person.tell(f"  Enter takes what is in brackets. {WAYS_OUT}", "quiet")
    values: dict[str, Any] = {}
    if not form.fields:
        person.tell("  There is nothing to fill in; Enter sends it.")
        _typed(person, "")
    for number, field in enumerate(form.fields, 1):
        person.tell("")
        person.tell(f"  {number}/{len(form.fields)} {form_words.field_heading(field)}")
        value = _ask(field, person)
        if value is not None:
            values[field.field_name] = value
    return values


def _ask(field: FormField, person: Person) -> Any:
    for line in form_words.option_lines(field):
        person.tell(f"      {line}")
    if hint := form_words.entry_hint(field):
        person.tell(f"      {hint}", "quiet")
    if field.error:
        person.tell(f"      {one_line(field.error)}", "problem")
    proposed = form_words.proposal(field)
    label = "" if proposed is None else f"[{form_words.value_text(field, proposed)}]"
    while True:
        text = _lines(field, person, label) if field.field_type == "multiline" else _line(field, person, label)
        if text is None:
            continue
        match entered(field, text):
            case Wrong(reason):
                person.tell(f"      {reason}", "problem")
            case entry:
                return entry.value


def _line(field: FormField, person: Person, label: str) -> str:
    return _typed(person, label, hidden=is_secret(field.field_name))


def _lines(field: FormField, person: Person, label: str) -> str | None:
    """Several lines, up to an empty one; nothing where the editor was asked for and cannot be had."""
    hidden = is_secret(field.field_name)
    first = _typed(person, label, hidden=hidden)
    if first.strip() == "/edit":
        proposed = form_words.proposal(field)
        edited = _edited(person, "" if proposed is None or hidden else str(proposed), "answer.txt")
        return edited if edited is None else edited.strip("\n")
    lines = [first]
    while lines[-1].strip():
        lines.append(_typed(person, "...", hidden=hidden))
    return "\n".join(lines[:-1])


def _decide(form: Form, person: Person) -> Answer:
    person.tell("")
    always = form_words.remembered(form)
    editable = len(form.action_requests) == 1
    if always is not None:
        person.tell(f"  always = approve, and do not ask again: {always}.", "quiet")
    person.tell(f"  {WAYS_OUT}", "quiet")
    offered = ["approve", *(["edit"] if editable else []), "reject", *(["always"] if always is not None else [])]
    draft: str | None = None
    while True:
        typed = _typed(person, " / ".join(offered)).strip().lower()
        choice = _CHOICES.get(typed)
        match choice if choice in offered else None:
            case "approve":
                return Approved()
            case "always":
                person.tell(f"  Remembered: {always}.", "quiet")
                return Approved(remember=True)
            case "reject":
                return Rejected(_typed(person, "Why not? (Enter for no reason)").strip())
            case "edit":
                before = form_words.arguments_of(form.action_requests[0])
                changed, draft = _edit(before, draft, person)
                if changed:
                    for line in form_words.change_lines(before, changed):
                        person.tell(f"  {line}")
                    return Approved(changed)
            case _:
                person.tell(f"      Type one of {', '.join(offered)}.", "problem")


def _edit(before: Mapping[str, Any], draft: str | None, person: Person) -> tuple[dict[str, Any], str | None]:
    """The arguments that were changed, and the text as it was left where that is no JSON.

    Only those: what is shown of an argument may be less than what it is, so an unchanged one must not be sent.
    """
    text = draft if draft is not None else form_words.argument_text(before)
    edited = _edited(person, text, "arguments.json", complain=False)
    if edited is None:
        return _edit_each(before, person), None
    try:
        after = json.loads(edited)
    except ValueError as error:
        person.tell(f"      This is not JSON: {one_line(str(error))}. `edit` opens it again.", "problem")
        return {}, edited
    if not isinstance(after, dict):
        person.tell("      The arguments must be one JSON object. `edit` opens it again.", "problem")
        return {}, edited
    if missing := [name for name in before if name not in after]:
        person.tell(
            f"      Left out, so unchanged: {one_line(', '.join(missing))}. Set to null what is to go.", "quiet"
        )
    return _changes(before, after, person), None


def _edit_each(before: Mapping[str, Any], person: Person) -> dict[str, Any]:
    after: dict[str, Any] = {}
    for name, value in before.items():
        while name not in after:
            shown = form_words.value_text(FormField(name), value if isinstance(value, str) else json.dumps(value))
            text = _typed(person, f"{one_line(name)} [{shown}]", hidden=is_secret(name)).strip()
            try:
                # A text stays a text, whatever it looks like.
                after[name] = value if not text else text if isinstance(value, str) else json.loads(text)
            except ValueError:
                person.tell(f"      {one_line(name)} takes JSON, for example {json.dumps(value)}.", "problem")
    return _changes(before, after, person)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], person: Person) -> dict[str, Any]:
    changed = {name: value for name, value in after.items() if name not in before or not _same(before[name], value)}
    if not changed:
        person.tell("      Nothing was changed.", "problem")
    return changed


def _same(one: Any, other: Any) -> bool:
    # In JSON, true is not 1.
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(other, sort_keys=True, default=str)


def _edited(person: Person, text: str, name: str, *, complain: bool = True) -> str | None:
    try:
        edited = person.edit(text, name)
    except EditorError as error:
        person.tell(f"      {error}", "problem")
        return None
    if edited is None and complain:
        person.tell("      There is no editor; set EDITOR to have one.", "problem")
    return edited


def _typed(person: Person, label: str, *, hidden: bool = False) -> str:
    """A line, unless it leaves the form."""
    try:
        line = person.ask(label, hidden=hidden)
    except EOFError:
        raise _LeftError(Dismissed()) from None
    except KeyboardInterrupt:
        raise _LeftError(PutOff(interrupted=True)) from None
    command, _, rest = line.strip().partition(" ")
    match command.lower():
        case "/later" if not rest:
            raise _LeftError(PutOff())
        case "/cancel":
            raise _LeftError(Dismissed(rest.strip()))
        case _:
            return line
