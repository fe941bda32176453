"""The methods of JSON-RPC: how each parses its parameters, which method it calls and how it encodes the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message as ProtoMessage
from pydantic import BaseModel

from ai_platform_engineering.compat.a2a_v03 import conversions, types_v03
from ai_platform_engineering.utils.a2a_common.codec.event_json import (
    Json,
    ProtocolVersion,
    stream_json,
    task_1_0,
    task_page_1_0,
)
from ai_platform_engineering.utils.a2a_common.server.request_json import read_send_request

Writer = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Method:
    version: ProtocolVersion
    call: str
    """The name of the handler's method."""
    read: Callable[[Json], ProtoMessage]
    write: Writer | None
    """Encodes the result, given the parameters; None for a method whose response is a stream."""


def _v1(model: type[ProtoMessage], call: str, write: Writer | None) -> Method:
    return Method("1.0", call, lambda params: ParseDict(params, model(), ignore_unknown_fields=True), write)


def _v03(
    name: str, model: type[BaseModel], convert: Callable[[Any], ProtoMessage], call: str, write: Writer | None
) -> Method:
    def read(params: Json) -> ProtoMessage:
        return convert(model.model_validate({"jsonrpc": "2.0", "id": "", "method": name, "params": params}))

    return Method("0.3", call, read, write)


def _as_dict(result: ProtoMessage, params: ProtoMessage) -> Any:
    return MessageToDict(result)


def _as_task(result: a2a_pb2.Task, params: ProtoMessage) -> Any:
    return task_1_0(result)


def _as_item(version: ProtocolVersion, result: a2a_pb2.Task | a2a_pb2.Message, params: ProtoMessage) -> Any:
    return stream_json(result, version)


def _as_tasks(result: a2a_pb2.ListTasksResponse, params: a2a_pb2.ListTasksRequest) -> Any:
    return task_page_1_0(result, with_artifacts=params.include_artifacts)


def _as_nothing(result: None, params: ProtoMessage) -> Any:
    return None


def _as_model(convert: Callable[[Any], BaseModel], result: ProtoMessage, params: ProtoMessage) -> Any:
    return convert(result).model_dump(mode="json", by_alias=True, exclude_none=True)


_as_config: Final = partial(_as_model, conversions.to_compat_task_push_notification_config)


def _as_configs(result: a2a_pb2.ListTaskPushNotificationConfigsResponse, params: ProtoMessage) -> Any:
    return [_as_config(config, params) for config in result.configs]


METHODS: Final[Mapping[str, Method]] = {
    "SendMessage": Method("1.0", "on_message_send", read_send_request, partial(_as_item, "1.0")),
    "SendStreamingMessage": Method("1.0", "stream_message", read_send_request, None),
    "GetTask": _v1(a2a_pb2.GetTaskRequest, "on_get_task", _as_task),
    "ListTasks": _v1(a2a_pb2.ListTasksRequest, "on_list_tasks", _as_tasks),
    "CancelTask": _v1(a2a_pb2.CancelTaskRequest, "on_cancel_task", _as_task),
    "SubscribeToTask": _v1(a2a_pb2.SubscribeToTaskRequest, "stream_task", None),
    "CreateTaskPushNotificationConfig": _v1(
        a2a_pb2.TaskPushNotificationConfig, "on_create_task_push_notification_config", _as_dict
    ),
    "GetTaskPushNotificationConfig": _v1(
        a2a_pb2.GetTaskPushNotificationConfigRequest, "on_get_task_push_notification_config", _as_dict
    ),
    "ListTaskPushNotificationConfigs": _v1(
        a2a_pb2.ListTaskPushNotificationConfigsRequest, "on_list_task_push_notification_configs", _as_dict
    ),
    "DeleteTaskPushNotificationConfig": _v1(
        a2a_pb2.DeleteTaskPushNotificationConfigRequest, "on_delete_task_push_notification_config", _as_nothing
    ),
    "GetExtendedAgentCard": _v1(a2a_pb2.GetExtendedAgentCardRequest, "on_get_extended_agent_card", _as_dict),
    "message/send": _v03(
        "message/send",
        types_v03.SendMessageRequest,
        conversions.to_core_send_message_request,
        "on_message_send",
        partial(_as_item, "0.3"),
    ),
    "message/stream": _v03(
        "message/stream",
        types_v03.SendStreamingMessageRequest,
        conversions.to_core_send_message_request,
        "stream_message",
        None,
    ),
    "tasks/get": _v03(
        "tasks/get",
        types_v03.GetTaskRequest,
        conversions.to_core_get_task_request,
        "on_get_task",
        partial(_as_item, "0.3"),
    ),
    "tasks/cancel": _v03(
        "tasks/cancel",
        types_v03.CancelTaskRequest,
        conversions.to_core_cancel_task_request,
        "on_cancel_task",
        partial(_as_item, "0.3"),
    ),
    "tasks/resubscribe": _v03(
        "tasks/resubscribe",
        types_v03.TaskResubscriptionRequest,
        conversions.to_core_subscribe_to_task_request,
        "stream_task",
        None,
    ),
    "tasks/pushNotificationConfig/set": _v03(
        "tasks/pushNotificationConfig/set",
        types_v03.SetTaskPushNotificationConfigRequest,
        conversions.to_core_create_task_push_notification_config_request,
        "on_create_task_push_notification_config",
        _as_config,
    ),
    "tasks/pushNotificationConfig/get": _v03(
        "tasks/pushNotificationConfig/get",
        types_v03.GetTaskPushNotificationConfigRequest,
        conversions.to_core_get_task_push_notification_config_request,
        "on_get_task_push_notification_config",
        _as_config,
    ),
    "tasks/pushNotificationConfig/list": _v03(
        "tasks/pushNotificationConfig/list",
        types_v03.ListTaskPushNotificationConfigRequest,
        conversions.to_core_list_task_push_notification_config_request,
        "on_list_task_push_notification_configs",
        _as_configs,
    ),
    "tasks/pushNotificationConfig/delete": _v03(
        "tasks/pushNotificationConfig/delete",
        types_v03.DeleteTaskPushNotificationConfigRequest,
        conversions.to_core_delete_task_push_notification_config_request,
        "on_delete_task_push_notification_config",
        _as_nothing,
    ),
    "agent/getAuthenticatedExtendedCard": _v03(
        "agent/getAuthenticatedExtendedCard",
        types_v03.GetAuthenticatedExtendedCardRequest,
        conversions.to_core_get_extended_agent_card_request,
        "on_get_extended_agent_card",
        partial(_as_model, conversions.to_compat_agent_card),
    ),
}
"""The methods of both versions, whose names differ."""
