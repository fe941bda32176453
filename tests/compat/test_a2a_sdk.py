"""The undocumented parts of a2a-sdk that `compat/a2a_v03.py` and `compat/a2a_client.py` use."""

from __future__ import annotations

from importlib.metadata import version

import httpx
import pytest
from a2a.client.errors import A2AClientError
from a2a.client.transports.jsonrpc import JsonRpcTransport
from a2a.types.a2a_pb2 import AgentCard, Message, Part, Role, StreamResponse
from a2a.utils.errors import TaskNotFoundError
from google.protobuf.json_format import MessageToDict

CHANGED = f"a2a-sdk {version('a2a-sdk')} changed a part that compat/a2a_v03.py or compat/a2a_client.py uses"

try:
    from ai_platform_engineering.compat.a2a_client import raise_error_in
    from ai_platform_engineering.compat.a2a_v03 import (
        LEGACY_HTTP_EXTENSION_HEADER,
        FromProto,
        ToProto,
        conversions,
        pb2_v03,
        types_v03,
    )
except ImportError as error:
    raise ImportError(f"{CHANGED}: {error}.") from error

METHODS = {
    "SendMessageRequest": "to_core_send_message_request",
    "SendStreamingMessageRequest": "to_core_send_message_request",
    "GetTaskRequest": "to_core_get_task_request",
    "CancelTaskRequest": "to_core_cancel_task_request",
    "TaskResubscriptionRequest": "to_core_subscribe_to_task_request",
    "SetTaskPushNotificationConfigRequest": "to_core_create_task_push_notification_config_request",
    "GetTaskPushNotificationConfigRequest": "to_core_get_task_push_notification_config_request",
    "ListTaskPushNotificationConfigRequest": "to_core_list_task_push_notification_config_request",
    "DeleteTaskPushNotificationConfigRequest": "to_core_delete_task_push_notification_config_request",
    "GetAuthenticatedExtendedCardRequest": "to_core_get_extended_agent_card_request",
}


def test_every_method_of_protocol_0_3_has_a_type_and_a_conversion() -> None:
    missing = [name for name in METHODS if not hasattr(types_v03, name)]
    missing += [name for name in METHODS.values() if not hasattr(conversions, name)]
    assert not missing, f"{CHANGED}: a2a.compat.v0_3 has no {', '.join(missing)}."
    assert LEGACY_HTTP_EXTENSION_HEADER.lower() == "x-a2a-extensions", f"{CHANGED}: the header of extensions."


def test_a_message_is_the_same_after_a_conversion_to_0_3_and_back() -> None:
    message = Message(message_id="m", context_id="c", role=Role.ROLE_USER, parts=[Part(text="hello")])
    old = conversions.to_compat_message(message)
    assert old.model_dump(mode="json", by_alias=True)["parts"][0]["kind"] == "text", f"{CHANGED}: parts of 0.3."
    sent = pb2_v03.SendMessageRequest(request=ToProto.message(old))
    params = FromProto.message_send_params(sent)
    again = conversions.to_core_send_message_request(types_v03.SendMessageRequest(id="", params=params))
    assert MessageToDict(again.message) == MessageToDict(message), f"{CHANGED}: messages do not survive a conversion."
    item = conversions.to_compat_stream_response(StreamResponse(message=message))
    assert item.result == old, f"{CHANGED}: items of streams are converted differently."


async def test_a_json_rpc_error_becomes_the_exception_of_its_code() -> None:
    async with httpx.AsyncClient() as http:
        transport = JsonRpcTransport(http, AgentCard(), "http://127.0.0.1")
        with pytest.raises(TaskNotFoundError):
            raise_error_in({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "gone"}}, transport)
        for broken in ({"jsonrpc": "2.0", "id": 1}, [], None, {"error": "text"}):
            with pytest.raises(A2AClientError):
                raise_error_in(broken, transport)
