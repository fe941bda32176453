"""What a request says: the question in its message, and the context that goes with it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from a2a.server.agent_execution import RequestContext as A2ARequest
from a2a.types.a2a_pb2 import Message, Part
from google.protobuf.json_format import MessageToDict, MessageToJson

from ai_platform_engineering.utils.a2a_common.request_context import RequestContext

_LONGEST_MARK = 200


def question_of(message: Message | None) -> str:
    """The text of a message; data as JSON, files by name."""
    parts = message.parts if message is not None else ()
    return "\n".join(text for part in parts if (text := _part_text(part)).strip())


def request_context(request: A2ARequest) -> RequestContext:
    marks = _marks(request)
    return RequestContext(
        context_id=request.context_id or "",
        task_id=request.task_id or "",
        trace_id=_mark(marks, "trace_id") or uuid.uuid4().hex,
        user=_mark(marks, "user"),
        auth_token=_bearer(request),
        stream_text=marks.get("stream_text") is not False,
        stream_sub_agent_text=marks.get("stream_sub_agent_text") is True,
        delegated=marks.get("delegated") is True,
    )


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


def _marks(request: A2ARequest) -> Mapping[str, Any]:
    own = MessageToDict(request.message.metadata) if request.message is not None else {}
    return {**(request.metadata or {}), **own}


def _mark(marks: Mapping[str, Any], name: str) -> str | None:
    value = marks.get(name)
    return value[:_LONGEST_MARK] if isinstance(value, str) and value else None


def _bearer(request: A2ARequest) -> str | None:
    headers = request.call_context.state.get("headers", {}) if request.call_context else {}
    scheme, _, token = str(headers.get("authorization", "")).partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None
