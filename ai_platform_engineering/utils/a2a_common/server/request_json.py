"""Parses the request to send a message from the JSON of protocol 1.0.

A plain message, as supervisors send it, is parsed directly, at a fraction of the cost of the SDK's parser. The SDK
parses all others, and reports the errors of invalid ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from a2a.types.a2a_pb2 import Message, Part, SendMessageRequest
from google.protobuf.json_format import ParseDict

from ai_platform_engineering.utils.a2a_common.codec.event_json import Json
from ai_platform_engineering.utils.a2a_common.codec.values import set_fields

_PLAIN_KEYS: Final = frozenset({"messageId", "contextId", "taskId", "role", "parts", "metadata"})


def read_send_request(params: Json) -> SendMessageRequest:
    match params:
        case {"message": {"role": str(), "parts": list(parts), "metadata": dict(metadata)} as message} if (
            len(params) == 1 and message.keys() <= _PLAIN_KEYS and _are_texts(parts) and _are_plain(metadata.values())
        ):
            with suppress(TypeError, ValueError):
                return SendMessageRequest(message=_plain_message(message))
    return ParseDict(params, SendMessageRequest(), ignore_unknown_fields=True)


def _are_texts(parts: Iterable[Any]) -> bool:
    return all(isinstance(part, dict) and part.keys() == {"text"} for part in parts)


def _are_plain(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str | bool) for value in values)


def _plain_message(body: Json) -> Message:
    message = Message(
        message_id=body.get("messageId"),
        context_id=body.get("contextId"),
        task_id=body.get("taskId"),
        role=body["role"],
        parts=[Part(text=part["text"]) for part in body["parts"]],
    )
    message.metadata.SetInParent()
    set_fields(message.metadata, body["metadata"])
    return message
