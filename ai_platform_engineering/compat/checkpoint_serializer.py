"""LangGraph's serializer of checkpoints, with the encoding of each message kept as long as the message exists.

Every step of a run stores a checkpoint with all messages of the conversation, and all but the last are the same objects
as in the step before. LangGraph encodes them again each time, and has no public way to encode a part.
"""

from __future__ import annotations

import weakref
from typing import Any, Final, NamedTuple

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer, _msgpack_default, _option

_FORMAT: Final = "msgpack"


class _Encoded(NamedTuple):
    message: weakref.ref[BaseMessage]
    fields: dict[str, Any]
    encoding: Any


class CheckpointSerializer(JsonPlusSerializer):
    """For one event loop or thread at a time. Messages in a conversation are not changed, only replaced; if a field is
    assigned nevertheless, the message is encoded again."""

    def __init__(self) -> None:
        super().__init__()
        self._encoded: dict[int, _Encoded] = {}

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if isinstance(obj, dict | list):
            return _FORMAT, ormsgpack.packb(obj, default=self._encode, option=_option)
        return super().dumps_typed(obj)

    def _encode(self, value: Any) -> Any:
        if not isinstance(value, BaseMessage):
            return _msgpack_default(value)
        key = id(value)
        known = self._encoded.get(key)
        if known is not None and known.message() is value and known.fields == vars(value):
            return known.encoding
        encoding = _msgpack_default(value)
        message = weakref.ref(value, lambda _: self._encoded.pop(key, None))
        self._encoded[key] = _Encoded(message, dict(vars(value)), encoding)
        return encoding
