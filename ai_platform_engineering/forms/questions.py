"""The payload of an interrupt, and the form that is shown for it.

Our own graphs pass a form to `interrupt`. For any other payload, people get a form with one field for a reply.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.arguments import masked_arguments
from ai_platform_engineering.utils.a2a_common.codec.forms import form_data, is_form_data, read_form
from ai_platform_engineering.utils.a2a_common.codec.labels import display

RESPONSE_FIELD: Final = FormField("response", "multiline", "Your reply")
APPROVAL_FIELDS: Final = (
    FormField("decision", "select", "Whether this may be done", ("approve", "reject")),
    FormField("reason", "text", "Why it may not be done", required=False),
)

_ARGUMENT_KEYS: Final = ("args", "remember")
_NO_TEXT: Final = "It needs more information to go on."


def question_data(form: Form) -> dict[str, Any]:
    """`form` as the payload of an interrupt, without its id: that is the id of the interrupt."""
    data = form_data(form)
    del data["form_id"]
    return data


def form_of(interrupt_id: str, payload: Any, agent: str | None = None) -> Form:
    """The form for the payload of an interrupt. `agent` is used if the payload does not name an agent."""
    if isinstance(payload, Mapping) and is_form_data(payload):
        form = read_form(payload)
    elif isinstance(payload, Mapping) and (requests := _requests(payload.get("action_requests"), agent)):
        form = Form("", _approval_title(requests), action_requests=requests)
    else:
        form = Form("", "", (RESPONSE_FIELD,), _text(payload).strip() or _NO_TEXT)
    asker = form.agent or agent
    return replace(
        form,
        form_id=interrupt_id,
        title=form.title.strip() or (f"{display(asker)} needs your input" if asker else "Your input is needed"),
        fields=_answerable(form),
        agent=asker,
        # Foreign forms may contain credentials, and many people see the event.
        action_requests=without_credentials(form.action_requests),
    )


def without_credentials(requests: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The actions of an approval, with credentials masked."""
    return tuple(
        request
        | {key: masked_arguments(value) for key in _ARGUMENT_KEYS if isinstance(value := request.get(key), Mapping)}
        for request in map(dict, requests)
    )


def _answerable(form: Form) -> tuple[FormField, ...]:
    """The fields that can be filled in. Values are given by name, so fields without a unique name are left out."""
    named: dict[str, FormField] = {}
    for field in form.fields:
        if field.field_name.strip():
            named.setdefault(field.field_name, field)
    if not named and form.action_requests:
        return APPROVAL_FIELDS
    return tuple(named.values()) if named or not form.fields else (RESPONSE_FIELD,)


def _requests(data: object, agent: str | None) -> tuple[dict[str, Any], ...]:
    """The actions of LangChain's human-in-the-loop request, with our keys."""
    if not isinstance(data, list | tuple):
        return ()
    return tuple(
        {
            "agent": agent,
            "tool": str(request["name"]),
            "args": masked_arguments(args) if isinstance(args := request.get("args"), Mapping) else {},
            "description": str(request.get("description") or ""),
        }
        for request in data
        if isinstance(request, Mapping) and request.get("name")
    )


def _approval_title(requests: Sequence[Mapping[str, Any]]) -> str:
    return f"Approve {requests[0]['tool']}?" if len(requests) == 1 else f"Approve {len(requests)} actions?"


def _text(payload: Any) -> str:
    if isinstance(payload, str):
        return payload
    if payload is None:
        return ""
    for written in (_json, repr):
        with suppress(TypeError, ValueError, RecursionError):
            return written(payload)
    return ""


def _json(payload: Any) -> str:
    return json.dumps(payload, ensure_ascii=False, default=str)
