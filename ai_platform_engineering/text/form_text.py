"""Forms, approvals and answers as text, for every surface."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ai_platform_engineering.events import FieldRules, Form, FormField
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.forms.decisions import is_approval
from ai_platform_engineering.forms.field_names import is_secret
from ai_platform_engineering.forms.validation import is_blank
from ai_platform_engineering.text.plain_text import one_line
from ai_platform_engineering.utils.a2a_common.codec.labels import display
from ai_platform_engineering.utils.characters import clean
from ai_platform_engineering.utils.redact import MASK

BY_MESSAGE: Final = (
    'Answer with a message in this conversation: one "name: value" line for each field, or "cancel"; '
    'where something is to be approved, "approve", "approve always" or "reject: reason".'
)

_ARGUMENT_LINES: Final = 10
_ARGUMENT_WIDTH: Final = 200
_VALUE_WIDTH: Final = 60


def form_lines(form: Form) -> Iterator[str]:
    """The whole form, read-only."""
    yield heading(form)
    yield from (f"  {line}" for line in introduction(form))
    yield from (f"  {line}" for line in action_lines(form))
    for field in () if is_approval(form) else form.fields:
        yield f"  - {field_line(field)}"
        if field.error:
            yield f"    {one_line(field.error)}"


def heading(form: Form) -> str:
    asker = f" ({display(one_line(form.agent))})" if form.agent else ""
    needed = "Approval" if is_approval(form) else "Input"
    return f"{needed} needed{asker}: {one_line(form.title) or 'a few details'}"


def introduction(form: Form) -> list[str]:
    response = form.response
    for field in form.fields:
        # The error of a field is shown with the field.
        response = response.replace(field.error, "") if field.error else response
    texts = dict.fromkeys(one_line(text) for text in (response, form.description))
    return [text for text in texts if text]


def field_line(field: FormField) -> str:
    """Everything about a field in one line."""
    notes = _notes(field)
    if field.field_values:
        notes.append(f"one of {', '.join(field.field_values)}")
    if proposal(field) is not None:
        notes.append(f"now {value_text(field, proposal(field))}")
    return _described(field, notes)


def field_heading(field: FormField) -> str:
    return _described(field, _notes(field))


def option_lines(field: FormField) -> list[str]:
    return [f"{number} {one_line(option)}" for number, option in enumerate(field.field_values or (), 1)]


def entry_hint(field: FormField) -> str:
    """How to type a value of this type, if that is not obvious."""
    match field.field_type:
        case "boolean":
            return "yes or no"
        case "multiselect":
            return "numbers or names, separated by commas"
        case "multiline":
            return "several lines; an empty line ends it, /edit opens an editor"
        case _:
            return ""


def proposal(field: FormField) -> Any:
    """The value of the field when the person enters nothing."""
    return next((value for value in (field.value, field.default_value) if not is_blank(value)), None)


def value_text(field: FormField, value: Any) -> str:
    """A value on one line; long values are cut, secrets are masked."""
    if is_secret(field.field_name):
        return MASK
    match value:
        case bool():
            text = "yes" if value else "no"
        case list() | tuple():
            text = ", ".join(str(item) for item in value)
        case _:
            text = str(value)
    return _cut(one_line(text), _VALUE_WIDTH)


def action_lines(form: Form, *, whole: bool = False) -> list[str]:
    """The tool calls to approve, with their arguments: cut to a few lines, or `whole`."""
    lines: list[str] = []
    for request in form.action_requests:
        arguments = arguments_of(request)
        caller, tool = _caller(form, request), tool_of(request)
        lines.append(f"{caller} would call {tool}{' with' if arguments else ', without arguments'}")
        lines += [f"  {line}" for line in argument_lines(arguments, whole=whole)]
    return lines


def is_cut(form: Form) -> bool:
    """Whether `action_lines` leaves something out unless they are asked for `whole`."""
    return len("\n".join(action_lines(form))) < len("\n".join(action_lines(form, whole=True)))


def argument_lines(arguments: Mapping[str, Any], *, whole: bool = False) -> list[str]:
    """Every argument. Long values are cut, so that they cannot hide other arguments. `whole` shows texts with several
    lines as they are, and cuts nothing."""
    lines: list[str] = []
    for name, value in arguments.items():
        if whole:
            lines += _whole_lines(one_line(name), value)
            continue
        text = f"{one_line(name)}: {_indented(value)}"
        shown = [_cut(clean(line), _ARGUMENT_WIDTH) for line in text.split("\n")]
        hidden = len(shown) - _ARGUMENT_LINES
        lines += shown if hidden <= 0 else [*shown[:_ARGUMENT_LINES], f"  ... and {hidden} more lines"]
    return lines


def argument_text(arguments: Mapping[str, Any]) -> str:
    return _indented(arguments)


def _whole_lines(name: str, value: Any) -> list[str]:
    if isinstance(value, str) and "\n" in value:
        return [f"{name}:", *(f"  | {clean(line)}" for line in value.split("\n"))]
    return [clean(line) for line in f"{name}: {_indented(value)}".split("\n")]


def _indented(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def arguments_of(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of a call: those that identify its target first, then by name. On the wire they have no order."""
    arguments, leading = request.get("args"), request.get("remember")
    if not isinstance(arguments, Mapping):
        return {}
    first = leading if isinstance(leading, Mapping) else {}
    return {str(name): arguments[name] for name in sorted(arguments, key=lambda name: (name not in first, str(name)))}


def tool_of(request: Mapping[str, Any]) -> str:
    return one_line(str(request.get("tool") or request.get("name") or "a tool"))


def remembered(form: Form) -> str | None:
    """The exact permission that "always" would grant; None where it is not offered."""
    if len(form.action_requests) != 1:
        return None
    request = form.action_requests[0]
    leading = request.get("remember")
    if not isinstance(leading, Mapping):
        return None
    given = [f"{one_line(str(name))} = {_json(value)}" for name, value in leading.items() if value is not None]
    missing = [one_line(str(name)) for name, value in leading.items() if value is None]
    parts = [f"with {', '.join(given)}" if given else "", f"without {', '.join(missing)}" if missing else ""]
    calls = " ".join(filter(None, parts)) or "with any arguments"
    return (
        f"{_caller(form, request)} may call {tool_of(request)} {calls}, "
        "whatever else is in the call, until this conversation ends"
    )


def change_lines(before: Mapping[str, Any], changed: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, value in changed.items():
        was = f"{_json(before[name])} -> " if name in before else "(new) "
        lines.append(f"{one_line(name)}: {was}{_json(value)}")
    return lines


def answer_text(form: Form, answer: Answer) -> str:
    """An answer as a person would have typed it; secrets are masked."""
    match answer:
        case Submitted(values):
            fields = {field.field_name: field for field in form.fields}
            lines = [
                f"{name}: {value_text(fields.get(name) or FormField(name), value)}" for name, value in values.items()
            ]
            return "\n".join(one_line(line) for line in lines) or "as proposed"
        case Approved(None, remember):
            return "approve always" if remember else "approve"
        case Approved(arguments, _):
            # `value_text` masks by name, so it also works for arguments.
            pairs = [
                f"{name} = {value_text(FormField(name), _json(value))}" for name, value in (arguments or {}).items()
            ]
            return one_line(f"approve with {', '.join(pairs)}")
        case Rejected(reason):
            return one_line(f"reject: {reason}") if reason else "reject"
        case Dismissed(reason):
            return one_line(f"cancel: {reason}") if reason else "cancel"


def command_lines(forms: Sequence[Form], task_id: str, url: str | None) -> list[str]:
    """The commands that answer `forms` from a script or another terminal."""
    base = ["platform-engineer", "chat", *(["--url", url] if url else []), "--task", task_id]
    lines = ["Answer it with:"]
    for form in forms:
        which = ["--form", form.form_id] if len(forms) > 1 and form.form_id else []
        head = shlex.join(one_line(part) for part in [*base, *which])
        if is_approval(form):
            lines += [f"  {head} --approve", f"  {head} --reject REASON"]
        else:
            wanted = [field for field in form.fields if field.error or (field.required and proposal(field) is None)]
            wanted = wanted or list(form.fields[:1])
            answers = "".join(f" --answer {shlex.quote(one_line(field.field_name))}=..." for field in wanted)
            lines.append(f"  {head}{answers or ' --approve'}")
    return lines


def _described(field: FormField, notes: Sequence[str]) -> str:
    description = f": {field.field_description}" if field.field_description else ""
    return one_line(f"{field.field_name} ({', '.join(notes)}){description}")


def _notes(field: FormField) -> list[str]:
    return [field.field_type, *_rule_notes(field.rules), "required" if field.required else "optional"]


def _rule_notes(rules: FieldRules | None) -> Iterator[str]:
    if rules is None:
        return
    if rules.integer:
        yield "whole"
    if bounds := _bounds(rules.minimum, rules.maximum):
        yield bounds
    if lengths := _bounds(rules.min_length, rules.max_length):
        yield f"{lengths} characters"


def _bounds(lowest: float | None, highest: float | None) -> str:
    match lowest, highest:
        case None, None:
            return ""
        case _, None:
            return f"at least {lowest:g}"
        case None, _:
            return f"at most {highest:g}"
        case _:
            return f"{lowest:g} to {highest:g}"


def _caller(form: Form, request: Mapping[str, Any]) -> str:
    return display(one_line(str(request.get("agent") or form.agent or "the supervisor")))


def _json(value: Any) -> str:
    return _cut(one_line(json.dumps(value, ensure_ascii=False, default=str)), _ARGUMENT_WIDTH)


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[:width]}... ({len(line)} characters)"
