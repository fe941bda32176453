"""LangGraph's serializer of checkpoints, which encodes and decodes each message of a conversation once.

Every step of a run stores a checkpoint with all messages of the conversation, and every run begins with reading one.
All but the last messages are the same as before. LangGraph converts them again each time, and has no public way to
convert a part.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any, Final, NamedTuple

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import EXT_PYDANTIC_V2, JsonPlusSerializer, _msgpack_default, _option

_FORMAT: Final = "msgpack"
_MAX_DECODED_BYTES: Final = 2_000_000
"""How much of the messages that were read is kept, as encoded: about twenty long conversations."""


class _Encoded(NamedTuple):
    message: weakref.ref[BaseMessage]
    fields: dict[str, Any]
    encoding: Any


class CheckpointSerializer(JsonPlusSerializer):
    """For one event loop or thread at a time. Messages in a conversation are not changed, only replaced; if a field is
    assigned nevertheless, the message is converted again."""

    def __init__(self) -> None:
        super().__init__()
        self._encoded: dict[int, _Encoded] = {}
        self._decoded: OrderedDict[bytes, BaseMessage] = OrderedDict()
        self._decoded_bytes = 0
        self._decode_any = self._unpack_ext_hook
        self._unpack_ext_hook = self._decode

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if isinstance(obj, dict | list):
            return _FORMAT, ormsgpack.packb(obj, default=self._encode, option=_option)
        return super().dumps_typed(obj)

    def _encode(self, value: Any) -> Any:
        if not isinstance(value, BaseMessage):
            return _msgpack_default(value)
        known = self._encoding(value)
        return self._remember(value, _msgpack_default(value)) if known is None else known

    def _decode(self, code: int, data: bytes) -> Any:
        if code != EXT_PYDANTIC_V2:
            return self._decode_any(code, data)
        known = self._decoded.get(data)
        if known is not None and self._encoding(known) is not None:
            self._decoded.move_to_end(data)
            return known
        value = self._decode_any(code, data)
        # Content of blocks is not kept: a provider's client that changes a block would change it for later runs, too.
        if isinstance(value, BaseMessage) and isinstance(value.content, str):
            self._remember(value, ormsgpack.Ext(code, data))
            self._decoded_bytes += len(data) if known is None else 0
            self._decoded[data] = value
            while self._decoded_bytes > _MAX_DECODED_BYTES:
                self._decoded_bytes -= len(self._decoded.popitem(last=False)[0])
        return value

    def _encoding(self, message: BaseMessage) -> Any:
        """The encoding of a message that was converted before and has not been changed."""
        known = self._encoded.get(id(message))
        unchanged = known is not None and known.message() is message and known.fields == vars(message)
        return known.encoding if known is not None and unchanged else None

    def _remember(self, message: BaseMessage, encoding: Any) -> Any:
        key = id(message)
        reference = weakref.ref(message, lambda _: self._encoded.pop(key, None))
        self._encoded[key] = _Encoded(reference, dict(vars(message)), encoding)
        return encoding
