"""Fills in a form or an approval in a dialogue: one field at a time, through a `Prompter`.

`prompter.TerminalPrompter` is the one for the keyboard; tests have their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.forms.decisions import is_approval
from ai_platform_engineering.forms.field_names import is_secret
from ai_platform_engineering.terminal.conversation import ChatConversation
from ai_platform_engineering.terminal.entries import InvalidEntry, parse_entry
from ai_platform_engineering.terminal.keyboard import discard_typed_input, echo_off
from ai_platform_engineering.terminal.output import Output
from ai_platform_engineering.text import form_text
from ai_platform_engineering.text.plain_text import one_line

Tone = Literal["heading", "plain", "quiet", "problem"]

WAYS_OUT: Final = "/later leaves it open, /cancel or Ctrl-D dismisses it."
DISMISSED: Final = "The form is dismissed, and the supervisor is informed."
NOT_APPROVED: Final = "Dismissed: this counts as rejected."

_CHOICES: Final = {
    "yes": "approve",
    "y": "approve",
    "no": "reject",
    "n": "reject",
    **{letters: choice for choice in ("approve", "edit", "reject", "always") for letters in (choice, choice[:2])},
    "e": "edit",
    "r": "reject",
    **dict.fromkeys(("show all", "show", "s"), "show all"),
}


class EditorError(Exception):
    """The editor failed; the message says why."""


class Prompter(Protocol):
    """Shows lines to a person and reads their input."""

    def show(self, text: str, tone: Tone = "plain") -> None:
        """Print one line."""

    def ask(self, label: str, *, hidden: bool = False) -> str:
        """Read one line, with `label` as the prompt. Raises `EOFError` for Ctrl-D, `KeyboardInterrupt` for Ctrl-C."""

    def edit(self, text: str, name: str) -> str | None:
        """Open `text` in the person's editor and return the saved text, or None without an editor.

        Raises `EditorError`.
        """


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """The person left the form open; `interrupted`: with Ctrl-C."""

    interrupted: bool = False


class _FormLeftError(Exception):
    """The person left the form before its last field."""

    def __init__(self, outcome: Dismissed | LeftOpen) -> None:
        super().__init__()
        self.outcome = outcome


def answer_forms(conversation: ChatConversation, output: Output, prompter: Prompter) -> LeftOpen | None:
    """Ask the open forms one after the other and send each answer at once, until none is open or one is left open."""
    while forms := conversation.forms:
        discard_typed_input()
        answer = ask_form(forms[0], prompter, others=len(forms) - 1)
        if isinstance(answer, LeftOpen):
            return answer
        with echo_off():
            conversation.answer(forms[0], answer, output)
    return None


def ask_form(form: Form, prompter: Prompter, *, others: int = 0) -> Answer | LeftOpen:
    """Ask for an answer to `form`; `others` is the number of further open forms."""
    prompter.show(form_text.heading(form), "heading")
    for line in form_text.introduction(form):
        prompter.show(f"  {line}")
    if others:
        prompter.show(f"  {others} more {'is' if others == 1 else 'are'} open and will be asked afterwards.", "quiet")
    for line in form_text.action_lines(form):
        prompter.show(f"  {line}")
    try:
        if is_approval(form):
            return _decide(form, prompter)
        return Submitted(_fill_in(form, prompter))
    except _FormLeftError as left:
        if isinstance(left.outcome, Dismissed):
            prompter.show(f"  {NOT_APPROVED if is_approval(form) else DISMISSED}", "quiet")
        return left.outcome


def _fill_in(form: Form, prompter: Prompter) -> dict[str, Any]:
    prompter.show(f"  Enter accepts the value in brackets. {WAYS_OUT}", "quiet")
    values: dict[str, Any] = {}
    if not form.fields:
        prompter.show("  There is nothing to fill in; Enter sends it.")
        _typed(prompter, "")
    for number, field in enumerate(form.fields, 1):
        prompter.show("")
        prompter.show(f"  {number}/{len(form.fields)} {form_text.field_heading(field)}")
        value = _ask(field, prompter)
        if value is not None:
            values[field.field_name] = value
    return values


def _ask(field: FormField, prompter: Prompter) -> Any:
    for line in form_text.option_lines(field):
        prompter.show(f"      {line}")
    if hint := form_text.entry_hint(field):
        prompter.show(f"      {hint}", "quiet")
    if field.error:
        prompter.show(f"      {one_line(field.error)}", "problem")
    proposed = form_text.proposal(field)
    label = "" if proposed is None else f"[{form_text.value_text(field, proposed)}]"
    while True:
        text = _lines(field, prompter, label) if field.field_type == "multiline" else _line(field, prompter, label)
        if text is None:
            continue
        match parse_entry(field, text):
            case InvalidEntry(reason):
                prompter.show(f"      {reason}", "problem")
            case entry:
                return entry.value


def _line(field: FormField, prompter: Prompter, label: str) -> str:
    return _typed(prompter, label, hidden=is_secret(field.field_name))


def _lines(field: FormField, prompter: Prompter, label: str) -> str | None:
    """Several lines up to an empty one, or the text from the editor; None when the editor is not available."""
    hidden = is_secret(field.field_name)
    first = _typed(prompter, label, hidden=hidden)
    if first.strip() == "/edit":
        proposed = form_text.proposal(field)
        edited = _edited(prompter, "" if proposed is None or hidden else str(proposed), "answer.txt")
        return edited if edited is None else edited.strip("\n")
    lines = [first]
    while lines[-1].strip():
        lines.append(_typed(prompter, "...", hidden=hidden))
    return "\n".join(lines[:-1])


def _decide(form: Form, prompter: Prompter) -> Answer:
    prompter.show("")
    always = form_text.remembered(form)
    editable = len(form.action_requests) == 1
    if always is not None:
        prompter.show(f"  always = approve, and do not ask again: {always}.", "quiet")
    prompter.show(f"  {WAYS_OUT}", "quiet")
    whole = form_text.action_lines(form, whole=True) if form_text.is_cut(form) else []
    offered = [
        *(["show all"] if whole else []),
        "approve",
        *(["edit"] if editable else []),
        "reject",
        *(["always"] if always is not None else []),
    ]
    draft: str | None = None
    while True:
        typed = _typed(prompter, " / ".join(offered)).strip().lower()
        choice = _CHOICES.get(typed)
        match choice if choice in offered else None:
            case "show all":
                for line in whole:
                    prompter.show(f"  {line}")
            case "approve":
                return Approved()
            case "always":
                prompter.show(f"  Remembered: {always}.", "quiet")
                return Approved(remember=True)
            case "reject":
                return Rejected(_typed(prompter, "Why not? (Enter for no reason)").strip())
            case "edit":
                before = form_text.arguments_of(form.action_requests[0])
                changed, draft = _edit(before, draft, prompter)
                if changed:
                    for line in form_text.change_lines(before, changed):
                        prompter.show(f"  {line}")
                    return Approved(changed)
            case _:
                prompter.show(f"      Type one of {', '.join(offered)}.", "problem")


def _edit(before: Mapping[str, Any], draft: str | None, prompter: Prompter) -> tuple[dict[str, Any], str | None]:
    """The changed arguments, and the edited text as the next draft when it is not valid JSON.

    Unchanged arguments are not sent: their displayed value may be shortened or masked.
    """
    text = draft if draft is not None else form_text.argument_text(before)
    edited = _edited(prompter, text, "arguments.json", complain=False)
    if edited is None:
        return _edit_each(before, prompter), None
    try:
        after = json.loads(edited)
    except ValueError as error:
        prompter.show(f"      This is not JSON: {one_line(str(error))}. `edit` opens it again.", "problem")
        return {}, edited
    if not isinstance(after, dict):
        prompter.show("      The arguments must be one JSON object. `edit` opens it again.", "problem")
        return {}, edited
    if missing := [name for name in before if name not in after]:
        prompter.show(
            f"      Left out, so unchanged: {one_line(', '.join(missing))}. Set an argument to null to remove it.",
            "quiet",
        )
    return _changes(before, after, prompter), None


def _edit_each(before: Mapping[str, Any], prompter: Prompter) -> dict[str, Any]:
    after: dict[str, Any] = {}
    for name, value in before.items():
        while name not in after:
            shown = form_text.value_text(FormField(name), value if isinstance(value, str) else json.dumps(value))
            text = _typed(prompter, f"{one_line(name)} [{shown}]", hidden=is_secret(name)).strip()
            try:
                # A string argument stays a string, also when the input looks like JSON.
                after[name] = value if not text else text if isinstance(value, str) else json.loads(text)
            except ValueError:
                prompter.show(f"      {one_line(name)} takes JSON, for example {json.dumps(value)}.", "problem")
    return _changes(before, after, prompter)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], prompter: Prompter) -> dict[str, Any]:
    changed = {name: value for name, value in after.items() if name not in before or not _same(before[name], value)}
    if not changed:
        prompter.show("      Nothing was changed.", "problem")
    return changed


def _same(one: Any, other: Any) -> bool:
    # In JSON, true is not 1.
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(other, sort_keys=True, default=str)


def _edited(prompter: Prompter, text: str, name: str, *, complain: bool = True) -> str | None:
    try:
        edited = prompter.edit(text, name)
    except EditorError as error:
        prompter.show(f"      {error}", "problem")
        return None
    if edited is None and complain:
        prompter.show("      There is no editor; set EDITOR to have one.", "problem")
    return edited


def _typed(prompter: Prompter, label: str, *, hidden: bool = False) -> str:
    """Read one line; raise `_FormLeftError` when it leaves the form."""
    try:
        line = prompter.ask(label, hidden=hidden)
    except EOFError:
        raise _FormLeftError(Dismissed()) from None
    except KeyboardInterrupt:
        raise _FormLeftError(LeftOpen(interrupted=True)) from None
    command, _, rest = line.strip().partition(" ")
    match command.lower():
        case "/later" if not rest:
            raise _FormLeftError(LeftOpen())
        case "/cancel":
            raise _FormLeftError(Dismissed(rest.strip()))
        case _:
            return line
