"""Stored conversations as JSON, for `GET /conversations` and `GET /conversations/{id}`. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from a2a.types.a2a_pb2 import Message, TaskArtifactUpdateEvent

from ai_platform_engineering.events import SUPERVISOR, Form, InputRequired
from ai_platform_engineering.events_json import Asked, encode
from ai_platform_engineering.forms.answers import (
    Answer,
    Approved,
    Dismissed,
    Rejected,
    Submitted,
    answer_text,
    read_answer,
)
from ai_platform_engineering.forms.field_names import is_secret
from ai_platform_engineering.forms.replies import Resume, interpret
from ai_platform_engineering.identity.access import ConversationAccess, may_share
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.storage.event_log.conversations import ConversationRow
from ai_platform_engineering.storage.event_log.event_log import Entry
from ai_platform_engineering.storage.event_log.task_history import SentMessage, TaskHistory
from ai_platform_engineering.utils.a2a_common.codec.decoding import kind_of
from ai_platform_engineering.utils.a2a_common.codec.values import get_fields
from ai_platform_engineering.utils.a2a_common.protocol import STATE_NAMES
from ai_platform_engineering.utils.a2a_common.request_context import bounded_user
from ai_platform_engineering.utils.a2a_common.server.incoming import question_of, reply_of
from ai_platform_engineering.utils.a2a_common.server.timeline import first_message, first_question, iso_time, timeline

Json = dict[str, Any]

_PARTS: Final = frozenset({"input_required", "partial_result", "final_result"})
"""Artifacts that make up one event together with the status that follows them."""
_MASK: Final = "••••••"


def conversation_json(row: ConversationRow, caller: Principal) -> Json:
    return {
        "id": row.id,
        "name": row.name,
        **access_json(row.access, caller),
        "question": first_question(row.first),
        "state": STATE_NAMES[row.state],
        "tasks": row.tasks,
        "created": iso_time(row.created_ns),
        "changed": iso_time(row.changed_ns),
    }


def access_json(access: ConversationAccess, caller: Principal) -> Json:
    """Who may use a conversation, for a caller who may."""
    return {
        "owner": access.owner or None,
        "owned": access.owner == caller.owner,
        "groups": sorted(access.groups),
        "may_share": may_share(access, caller),
    }


def task_json(history: TaskHistory) -> Json:
    """A task with its events so far. A subscriber with `last_seq` gets the events that follow."""
    entries = _complete(history.entries())
    submitted = history.submitted
    lines: list[Json] = []
    decisions: list[Json] = []
    replies = iter(history.messages)
    open_forms: tuple[Form, ...] = ()
    messages = [(sent.after, sent.message) for sent in history.messages]
    for seq, item in timeline(submitted, entries, messages, SUPERVISOR):
        at_ns = history.times[seq - 1] if seq else history.created_ns
        number = seq
        if not isinstance(item, Message):
            line = encode(item)
            open_forms = item.forms if isinstance(item, InputRequired) else ()
            # A form that is shown again was not decided: the answer was refused.
            shown = {form.form_id for form in open_forms}
            decisions = [decision for decision in decisions if decision["form_id"] not in shown]
        else:
            # A subscriber with the number of the event before it gets the events that follow.
            number = max(0, seq - 1)
            question = question_of(item)
            if seq:
                sent = next(replies)
                if open_forms:
                    question, found = _reply(open_forms, sent)
                    decisions += [{**decision, "at": iso_time(at_ns), "by": _sender(sent)} for decision in found]
            line = encode(Asked(question, submitted.context_id))
        lines.append({"seq": number, "at": round((at_ns - history.created_ns) / 1e9, 3), **line})
    return {
        "id": submitted.id,
        "state": STATE_NAMES[history.state],
        "question": first_question(submitted),
        "message_id": first_message(submitted).message_id,
        "created": iso_time(history.created_ns),
        "changed": iso_time(history.changed_ns),
        "last_seq": len(entries),
        "events": lines,
        "decisions": decisions,
    }


def _complete(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The entries without the parts of an event whose last part is missing."""
    count = len(entries)
    while count and _is_part(entries[count - 1]):
        count -= 1
    return entries[:count]


def _is_part(entry: Entry) -> bool:
    event = entry.event
    return isinstance(event, TaskArtifactUpdateEvent) and kind_of(event.artifact.metadata) in _PARTS


def _reply(forms: Sequence[Form], sent: SentMessage) -> tuple[str, list[Json]]:
    """A message to open forms in words, without credentials, and its decision if it answers one of them."""
    reply = reply_of(sent.message)
    meaning = interpret(forms, reply)
    if isinstance(meaning, Resume):
        answer = _masked(meaning.answer)
        return answer_text(answer), [_decision(meaning.form, answer, in_words=reply.resume is None)]
    refused = read_answer(reply.resume or {})
    if refused is not None:
        return answer_text(_masked(refused)), []
    has_secrets = any(is_secret(field.field_name) for form in forms for field in form.fields)
    return _MASK if has_secrets else question_of(sent.message), []


def _decision(form: Form, answer: Answer, *, in_words: bool) -> Json:
    values: Mapping[str, Any] = {}
    reason = ""
    match answer:
        case Submitted(values):
            kind = "text" if in_words else "values"
        case Approved(None):
            kind = "approve"
        case Approved(arguments):
            kind, values = "edit", arguments or {}
        case Rejected(reason):
            kind = "reject"
        case Dismissed(reason):
            kind = "cancel"
    return {
        "form_id": form.form_id,
        "kind": kind,
        "values": dict(values),
        "reason": reason or None,
        "always": isinstance(answer, Approved) and answer.remember,
    }


def _masked(answer: Answer) -> Answer:
    match answer:
        case Submitted(values):
            return Submitted(_without_secrets(values))
        case Approved(arguments) if arguments is not None:
            return replace(answer, arguments=_without_secrets(arguments))
        case _:
            return answer


def _without_secrets(values: Mapping[str, Any]) -> Json:
    return {name: _MASK if value and is_secret(name) else value for name, value in values.items()}


def _sender(sent: SentMessage) -> str | None:
    """The verified subject. Where no authentication is required, the user that the client names."""
    if sent.caller != ANONYMOUS:
        return sent.caller.subject
    user = get_fields(sent.message.metadata).get("user")
    return bounded_user(user) if isinstance(user, str) and user else None
