"""The resources of REST: how each parses its request, which method it calls and how it encodes the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from a2a.types import a2a_pb2
from a2a.utils.proto_utils import parse_params, to_stream_response
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message as ProtoMessage
from starlette.datastructures import QueryParams

from ai_platform_engineering.compat.a2a_v03 import FromProto, ToProto, conversions, pb2_v03, types_v03
from ai_platform_engineering.storage.event_log.event_log import Entry, Snapshot
from ai_platform_engineering.utils.a2a_common.codec.event_json import (
    Json,
    ProtocolVersion,
    stream_json,
    task_1_0,
    task_page_1_0,
)
from ai_platform_engineering.utils.a2a_common.server.request_json import read_send_request

Reader = Callable[[Json, Mapping[str, str], QueryParams], ProtoMessage]
Writer = Callable[[Any, Any], Json]


@dataclass(frozen=True, slots=True)
class Resource:
    version: ProtocolVersion
    verb: str
    path: str
    call: str
    """The name of the handler's method."""
    read: Reader
    """Parses the body, the path and the query."""
    write: Writer | None
    """Encodes the result, given the parameters; None for a resource whose response is a stream."""
    has_body: bool = False


def stream_item(item: Snapshot | Entry, version: ProtocolVersion) -> Json:
    content = item.task if isinstance(item, Snapshot) else item.event
    if version == "1.0":
        return stream_json(content, "1.0")
    compat = conversions.to_compat_stream_response(to_stream_response(content)).result
    return MessageToDict(ToProto.stream_response(compat))


def _message_1_0(body: Json, path: Mapping[str, str], query: QueryParams) -> ProtoMessage:
    return read_send_request(body)


def _message_0_3(body: Json, path: Mapping[str, str], query: QueryParams) -> ProtoMessage:
    sent = ParseDict(body, pb2_v03.SendMessageRequest(), ignore_unknown_fields=True)
    return conversions.to_core_send_message_request(
        types_v03.SendMessageRequest(id="", params=FromProto.message_send_params(sent))
    )


def _task_query_1_0(body: Json, path: Mapping[str, str], query: QueryParams) -> ProtoMessage:
    params = a2a_pb2.GetTaskRequest()
    parse_params(query, params)
    params.id = path["id"]
    return params


def _task_query_0_3(body: Json, path: Mapping[str, str], query: QueryParams) -> ProtoMessage:
    params = a2a_pb2.GetTaskRequest(id=path["id"])
    # In 0.3 a length of 0 means the whole history.
    if length := int(query.get("historyLength") or 0):
        params.history_length = length
    return params


def _tasks_query(body: Json, path: Mapping[str, str], query: QueryParams) -> ProtoMessage:
    params = a2a_pb2.ListTasksRequest()
    parse_params(query, params)
    return params


def _task_to_cancel(body: Json, path: Mapping[str, str], query: QueryParams) -> ProtoMessage:
    return a2a_pb2.CancelTaskRequest(id=path["id"])


def _task_to_follow(body: Json, path: Mapping[str, str], query: QueryParams) -> ProtoMessage:
    return a2a_pb2.SubscribeToTaskRequest(id=path["id"])


def _config_1_0(body: Json, path: Mapping[str, str], query: QueryParams) -> ProtoMessage:
    params = ParseDict(body, a2a_pb2.TaskPushNotificationConfig(), ignore_unknown_fields=True)
    params.task_id = path["id"]
    return params


def _config_0_3(body: Json, path: Mapping[str, str], query: QueryParams) -> ProtoMessage:
    sent = ParseDict(body, pb2_v03.CreateTaskPushNotificationConfigRequest(), ignore_unknown_fields=True)
    config = FromProto.push_notification_config(sent.config.push_notification_config)
    return conversions.to_core_task_push_notification_config(
        types_v03.TaskPushNotificationConfig(task_id=path["id"], push_notification_config=config)
    )


def _named_config(body: Json, path: Mapping[str, str], query: QueryParams) -> ProtoMessage:
    return a2a_pb2.GetTaskPushNotificationConfigRequest(task_id=path["id"], id=path["push_id"])


def _config_to_delete(body: Json, path: Mapping[str, str], query: QueryParams) -> ProtoMessage:
    return a2a_pb2.DeleteTaskPushNotificationConfigRequest(task_id=path["id"], id=path["push_id"])


def _configs_query_1_0(body: Json, path: Mapping[str, str], query: QueryParams) -> ProtoMessage:
    params = a2a_pb2.ListTaskPushNotificationConfigsRequest()
    parse_params(query, params)
    params.task_id = path["id"]
    return params


def _configs_query_0_3(body: Json, path: Mapping[str, str], query: QueryParams) -> ProtoMessage:
    return a2a_pb2.ListTaskPushNotificationConfigsRequest(task_id=path["id"])


def _card_query(body: Json, path: Mapping[str, str], query: QueryParams) -> ProtoMessage:
    return a2a_pb2.GetExtendedAgentCardRequest()


def _as_sent_1_0(result: a2a_pb2.Task | a2a_pb2.Message, params: ProtoMessage) -> Json:
    return stream_json(result, "1.0")


def _as_sent_0_3(result: a2a_pb2.Task | a2a_pb2.Message, params: ProtoMessage) -> Json:
    compat = (
        conversions.to_compat_task(result)
        if isinstance(result, a2a_pb2.Task)
        else conversions.to_compat_message(result)
    )
    return MessageToDict(ToProto.task_or_message(compat))


def _as_task_1_0(result: a2a_pb2.Task, params: ProtoMessage) -> Json:
    return task_1_0(result)


def _as_task_0_3(result: a2a_pb2.Task, params: ProtoMessage) -> Json:
    return MessageToDict(ToProto.task(conversions.to_compat_task(result)))


def _as_tasks(result: a2a_pb2.ListTasksResponse, params: a2a_pb2.ListTasksRequest) -> Json:
    return task_page_1_0(result, with_artifacts=params.include_artifacts)


def _as_dict(result: ProtoMessage, params: ProtoMessage) -> Json:
    return MessageToDict(result)


def _as_nothing(result: None, params: ProtoMessage) -> Json:
    return {}


def _as_config_0_3(result: a2a_pb2.TaskPushNotificationConfig, params: ProtoMessage) -> Json:
    return MessageToDict(
        ToProto.task_push_notification_config(conversions.to_compat_task_push_notification_config(result))
    )


def _as_configs_0_3(result: a2a_pb2.ListTaskPushNotificationConfigsResponse, params: ProtoMessage) -> Json:
    return {"configs": [_as_config_0_3(config, params) for config in result.configs]}


def _as_card_0_3(result: a2a_pb2.AgentCard, params: ProtoMessage) -> Json:
    return conversions.to_compat_agent_card(result).model_dump(mode="json", by_alias=True, exclude_none=True)


def _resources() -> Iterator[Resource]:
    send, create = "on_message_send", "on_create_task_push_notification_config"
    get_config, list_configs = "on_get_task_push_notification_config", "on_list_task_push_notification_configs"
    delete_config = "on_delete_task_push_notification_config"
    configs, config = "/tasks/{id}/pushNotificationConfigs", "/tasks/{id}/pushNotificationConfigs/{push_id}"
    yield Resource("0.3", "POST", "/v1/message:send", send, _message_0_3, _as_sent_0_3, has_body=True)
    yield Resource("0.3", "POST", "/v1/message:stream", "stream_message", _message_0_3, None, has_body=True)
    yield Resource("0.3", "POST", "/v1/tasks/{id}:cancel", "on_cancel_task", _task_to_cancel, _as_task_0_3)
    yield Resource("0.3", "GET", "/v1/tasks/{id}:subscribe", "stream_task", _task_to_follow, None)
    yield Resource("0.3", "POST", "/v1/tasks/{id}:subscribe", "stream_task", _task_to_follow, None)
    yield Resource("0.3", "GET", "/v1/tasks/{id}", "on_get_task", _task_query_0_3, _as_task_0_3)
    yield Resource("0.3", "GET", f"/v1{config}", get_config, _named_config, _as_config_0_3)
    yield Resource("0.3", "DELETE", f"/v1{config}", delete_config, _config_to_delete, _as_nothing)
    yield Resource("0.3", "POST", f"/v1{configs}", create, _config_0_3, _as_config_0_3, has_body=True)
    yield Resource("0.3", "GET", f"/v1{configs}", list_configs, _configs_query_0_3, _as_configs_0_3)
    yield Resource("0.3", "GET", "/v1/card", "on_get_extended_agent_card", _card_query, _as_card_0_3)
    yield Resource("1.0", "POST", "/message:send", send, _message_1_0, _as_sent_1_0, has_body=True)
    yield Resource("1.0", "POST", "/message:stream", "stream_message", _message_1_0, None, has_body=True)
    yield Resource("1.0", "POST", "/tasks/{id}:cancel", "on_cancel_task", _task_to_cancel, _as_task_1_0)
    yield Resource("1.0", "GET", "/tasks/{id}:subscribe", "stream_task", _task_to_follow, None)
    yield Resource("1.0", "POST", "/tasks/{id}:subscribe", "stream_task", _task_to_follow, None)
    yield Resource("1.0", "GET", "/tasks/{id}", "on_get_task", _task_query_1_0, _as_task_1_0)
    yield Resource("1.0", "GET", config, get_config, _named_config, _as_dict)
    yield Resource("1.0", "DELETE", config, delete_config, _config_to_delete, _as_nothing)
    yield Resource("1.0", "POST", configs, create, _config_1_0, _as_dict, has_body=True)
    yield Resource("1.0", "GET", configs, list_configs, _configs_query_1_0, _as_dict)
    yield Resource("1.0", "GET", "/tasks", "on_list_tasks", _tasks_query, _as_tasks)
    yield Resource("1.0", "GET", "/extendedAgentCard", "on_get_extended_agent_card", _card_query, _as_dict)


RESOURCES: Final = tuple(_resources())
