from __future__ import annotations

from typing import Any

import pytest
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest
from google.protobuf.json_format import ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_platform_engineering.utils.a2a_common.codec.event_json import message_1_0
from ai_platform_engineering.utils.a2a_common.codec.values import set_fields
from ai_platform_engineering.utils.a2a_common.server import request_json
from ai_platform_engineering.utils.a2a_common.server.request_json import read_send_request

# Halves of surrogate pairs are among the texts.
TEXTS = st.text(st.characters(codec=None, exclude_categories=()), max_size=5)
OTHERS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(TEXTS | OTHERS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner))
ROLES = st.sampled_from(["ROLE_USER", "ROLE_AGENT", "ROLE_UNSPECIFIED", "ROLE_OTHER", 1])
PARTS = st.fixed_dictionaries({"text": TEXTS}) | st.fixed_dictionaries({"data": VALUES}) | VALUES
PLAIN = {
    "role": st.just("ROLE_USER"),
    "parts": st.lists(st.fixed_dictionaries({"text": TEXTS}), max_size=2),
    "metadata": st.dictionaries(TEXTS, TEXTS | st.booleans()),
}
ODD = {"role": ROLES | VALUES, "parts": st.lists(PARTS, max_size=2) | VALUES, "metadata": VALUES}
IDS = {"messageId": TEXTS, "contextId": TEXTS, "taskId": TEXTS}
MESSAGES = (
    st.fixed_dictionaries(PLAIN, optional=IDS)
    | st.fixed_dictionaries(PLAIN | {name: each | ODD[name] for name, each in PLAIN.items()}, optional=IDS)
    | st.fixed_dictionaries({}, optional=ODD | dict.fromkeys([*IDS, "extensions", "strange"], TEXTS | VALUES))
)
REQUESTS = st.fixed_dictionaries(
    {"message": MESSAGES}, optional={"configuration": st.just({"historyLength": 1}), "tenant": TEXTS}
)


def read_by_the_sdk(params: dict[str, Any]) -> SendMessageRequest | None:
    try:
        return ParseDict(params, SendMessageRequest(), ignore_unknown_fields=True)
    except Exception:
        return None


def read_by_us(params: dict[str, Any]) -> SendMessageRequest | None:
    try:
        return read_send_request(params)
    except Exception:
        return None


@given(params=REQUESTS)
@settings(max_examples=150, deadline=None)
def test_it_is_what_the_sdk_reads(params: dict[str, Any]) -> None:
    assert read_by_us(params) == read_by_the_sdk(params)


def test_what_a_supervisor_sends_needs_no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    message = Message(message_id="m", context_id="c", role=Role.ROLE_USER, parts=[Part(text="hello")])
    set_fields(message.metadata, {"trace_id": "t", "delegated": True, "stream_text": False})
    monkeypatch.delattr(request_json, "ParseDict")
    assert read_send_request({"message": message_1_0(message)}) == SendMessageRequest(message=message)
