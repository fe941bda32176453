"""Reads a request: the question or answer in its message, and its context."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from a2a.server.context import ServerCallContext
from a2a.types.a2a_pb2 import Message, Part, Task
from google.protobuf.json_format import MessageToJson

from ai_platform_engineering.budgets.decisions import Allowance
from ai_platform_engineering.forms.replies import FormReply
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.policy.decisions import PrincipalPolicy
from ai_platform_engineering.storage.event_log.event_log import StoredRequest
from ai_platform_engineering.utils.a2a_common.codec.parts import data_of
from ai_platform_engineering.utils.a2a_common.codec.values import get_fields
from ai_platform_engineering.utils.a2a_common.delegation import ALLOWANCE, APPROVAL, POLICY, PRINCIPAL, SKILLS, TAINT
from ai_platform_engineering.utils.a2a_common.request_context import (
    MAX_INSTRUCTIONS_LENGTH,
    USER_TOKEN_HEADER,
    RequestContext,
    bounded_user,
    is_delegated,
    is_to_conversation,
    safe_trace_id,
)


def question_of(message: Message | None) -> str:
    """The text of a message, with data as JSON and files as their names."""
    parts = message.parts if message is not None else ()
    return "\n".join(text for part in parts if (text := _part_text(part)).strip())


def reply_of(message: Message | None) -> FormReply:
    """The message as a reply to an open form."""
    parts = message.parts if message is not None else ()
    resume = next((data["resume"] for part in parts if "resume" in (data := data_of([part]))), None)
    text = "\n".join(part.text for part in parts if part.text.strip())
    to_conversation = message is not None and is_to_conversation(message)
    return FormReply(text, resume if isinstance(resume, Mapping) else None, to_conversation)


def request_context(
    request: StoredRequest, task_id: str, context_id: str, *, auth_token: str | None = None, task: Task | None = None
) -> RequestContext:
    """The context of a request. If it continues `task`, the metadata of its first message are the defaults."""
    metadata = _metadata(request.message, task)
    delegated = metadata.get("delegated") is True
    user, trace_id = metadata.get("user"), metadata.get("trace_id")
    return RequestContext(
        context_id=context_id,
        task_id=task_id,
        trace_id=safe_trace_id(trace_id) if isinstance(trace_id, str) and trace_id else uuid.uuid4().hex,
        user=bounded_user(user) if isinstance(user, str) and user else None,
        auth_token=auth_token,
        stream_text=metadata.get("stream_text") is not False,
        stream_sub_agent_text=metadata.get("stream_sub_agent_text") is True,
        delegated=delegated,
        # Admission has removed these from messages that no supervisor signed.
        approvals=_objects(metadata.get("approvals")) if delegated else (),
        # Of this message only: a decision is not a default for later messages.
        approval=next(iter(_objects([get_fields(request.message.metadata).get(APPROVAL)])), None),
        step=next(iter(_objects([metadata.get("step")])), None) if delegated else None,
        taint=_taint(metadata.get(TAINT)),
        skills=_objects(metadata[SKILLS]) if delegated and SKILLS in metadata else None,
        instructions=_instructions(metadata.get("instructions")),
        silent_when_unsure=metadata.get("silent_when_unsure") is True,
        caller=_principal(metadata.get(PRINCIPAL)) if delegated else request.caller,
        policy=_policy(metadata.get(POLICY)) if delegated else None,
        allowance=_allowance(metadata.get(ALLOWANCE)) if delegated else None,
    )


def _principal(stated: Any) -> Principal:
    """The principal that a supervisor delegates work for."""
    return Principal.read(stated) if isinstance(stated, Mapping) else ANONYMOUS


def _policy(stated: Any) -> PrincipalPolicy | None:
    """The rules that a supervisor sends with a delegation."""
    return PrincipalPolicy.read(stated) if isinstance(stated, Mapping) else None


def _allowance(stated: Any) -> Allowance | None:
    """What a delegated run may use."""
    return Allowance.read(stated) if isinstance(stated, Mapping) else None


def _taint(stated: Any) -> Mapping[str, Any] | None:
    """The taint of a delegation. What is not text in it is dropped."""
    if not isinstance(stated, Mapping):
        return None
    lists = {name: values if isinstance(values := stated.get(name), list) else [] for name in ("sources", "hosts")}
    return {name: [value for value in values if isinstance(value, str)] for name, values in lists.items()}


def bearer_token(context: ServerCallContext | None) -> str | None:
    """The bearer token of a call."""
    scheme, _, token = _header(context, "Authorization").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def users_token(context: ServerCallContext, message: Message) -> str | None:
    """The bearer token of the user who sends a message. With a delegation it comes beside the credential of the
    supervisor, which may be the token of another person."""
    return _header(context, USER_TOKEN_HEADER) or None if is_delegated(message) else bearer_token(context)


def _header(context: ServerCallContext | None, name: str) -> str:
    headers = context.state.get("headers", {}) if context else {}
    return str(headers.get(name.lower(), ""))


def _part_text(part: Part) -> str:
    match part.WhichOneof("content"):
        case "text":
            return part.text
        case "data":
            return MessageToJson(part.data, indent=None, ensure_ascii=False)
        case "url":
            return f"[file: {part.filename or part.url}]"
        case _:
            return f"[file: {part.filename}]" if part.filename else ""


def _metadata(message: Message, task: Task | None) -> Mapping[str, Any]:
    own = get_fields(message.metadata)
    if task is None:
        return own
    first = get_fields(task.history[0].metadata) if task.history else {}
    # A form may be answered by another user, and its answer is not limited.
    first.pop("user", None)
    first.pop(ALLOWANCE, None)
    trace = get_fields(task.metadata).get("trace_id")
    return {**first, **own} | ({"trace_id": trace} if trace else {})


def _objects(values: Any) -> tuple[Mapping[str, Any], ...]:
    return tuple(value for value in values if isinstance(value, Mapping)) if isinstance(values, list) else ()


def _instructions(value: Any) -> str:
    return value[:MAX_INSTRUCTIONS_LENGTH].strip() if isinstance(value, str) else ""
