"""The content of the parts of a message or artifact."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from a2a.types.a2a_pb2 import Message, Part
from google.protobuf.json_format import MessageToDict

from ai_platform_engineering.utils.a2a_common.codec.values import get_value


def text_of(parts: Iterable[Part]) -> str:
    return "".join(part.text for part in parts)


def data_of(parts: Iterable[Part]) -> dict[str, Any]:
    """The first data part that is an object, or an empty one."""
    for part in parts:
        if part.HasField("data") and isinstance(data := get_value(part.data), dict):
            return data
    return {}


def content_of(parts: Iterable[Part]) -> str:
    """The content of all parts as text: data as JSON, a file as its URL or name."""
    parts = list(parts)
    if all(part.HasField("text") for part in parts):
        return text_of(parts)
    return "\n".join(filter(None, map(_content, parts)))


def message_digest(message: Message) -> str:
    """The digest of a message's ids and content, for signatures."""
    parts = [{"data": get_value(part.data)} if part.HasField("data") else MessageToDict(part) for part in message.parts]
    covered = [message.message_id, message.context_id, message.task_id, parts]
    canonical = json.dumps(covered, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _content(part: Part) -> str:
    match part.WhichOneof("content"):
        case "text":
            return part.text
        case "data":
            return json.dumps(get_value(part.data), ensure_ascii=False)
        case "url":
            return part.url
        case "raw":
            return f"[file: {part.filename or part.media_type or 'unnamed'}]"
        case _:
            return ""
