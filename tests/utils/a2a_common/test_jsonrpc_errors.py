from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.testclient import TestClient

from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.utils.a2a_common.server.a2a_server import a2a_routes, agent_card, request_handler
from ai_platform_engineering.utils.a2a_common.server.jsonrpc_methods import METHODS
from tests.utils.a2a_common.scripted_executor import ScriptedExecutor
from tests.utils.a2a_common.serving import Served, message_0_3, message_1_0, serving

MARKER = "zX9-marker"


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving(MAX_REQUEST_BYTES="20000") as served:
        yield served


async def post(served: Served, body: bytes | str, content_type: str = "application/json") -> dict[str, Any]:
    response = await served.http.post(served.url, content=body, headers={"Content-Type": content_type})
    assert response.status_code == 200
    assert MARKER not in response.text
    answer = response.json()
    assert answer.keys() == {"jsonrpc", "id", "error"}
    assert answer["jsonrpc"] == "2.0"
    return answer


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        MARKER.encode(),
        b'{"id": 1,}',
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'\xff\xfe{"id": 1}',
        b'{"method": "\xff"}',
        '{"id":1}'.encode("utf-16"),
        b'{"id": 1} trailing',
        b"[" * 5000,
        b"[" * 900 + b"]" * 900,
        b'{"params":' * 100 + b"1" + b"}" * 100,
    ],
    ids=lambda body: repr(body[:20]),
)
async def test_what_is_no_json(served: Served, body: bytes) -> None:
    answer = await post(served, body)
    assert answer["error"]["code"] == -32700
    assert answer["id"] is None


@pytest.mark.parametrize(
    ("body", "request_id"),
    [
        ([], None),
        ([{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "x"}}], None),
        (MARKER, None),
        (17, None),
        (None, None),
        ({}, None),
        ({"id": 1}, 1),
        ({"id": 1, "method": None}, 1),
        ({"id": 1, "method": ""}, 1),
        ({"id": 1, "method": 5}, 1),
        ({"id": 1, "method": ["message/send"]}, 1),
        ({"id": "a", "method": "tasks/get", "jsonrpc": "1.0"}, "a"),
        ({"id": "a", "method": "tasks/get", "jsonrpc": 2.0}, "a"),
        ({"id": "a", "method": "tasks/get", "jsonrpc": None}, "a"),
        ({"id": "a", "method": "tasks/get", "jsonrpc": MARKER}, "a"),
        ({"id": {"x": MARKER}, "method": "tasks/get"}, None),
        ({"id": [1], "method": "tasks/get"}, None),
        ({"id": 1.5, "method": "tasks/get"}, None),
        ({"id": True, "method": "tasks/get"}, None),
        ({"id": "\ud800", "method": "tasks/get"}, None),
    ],
    ids=repr,
)
async def test_what_is_no_request(served: Served, body: Any, request_id: Any) -> None:
    answer = await post(served, json.dumps(body))
    assert answer["error"]["code"] == -32600
    assert answer["id"] == request_id


@pytest.mark.parametrize("method", ["message/sendd", "sendmessage", "__class__", "\ud800", MARKER, "tasks/list"])
async def test_methods_there_are_not(served: Served, method: str) -> None:
    for params in ({}, None, 5, {"x": MARKER}):
        answer = await post(served, json.dumps({"jsonrpc": "2.0", "id": 3, "method": method, "params": params}))
        assert answer["error"]["code"] == -32601
        assert answer["id"] == 3


@pytest.mark.parametrize(
    ("method", "params", "hint"),
    [
        ("message/send", None, "params.message: field required"),
        ("message/send", [], "params: must be an object"),
        ("message/send", MARKER, "params: must be an object"),
        ("message/send", {}, "params.message: field required"),
        ("message/stream", {}, "params.message: field required"),
        ("message/send", {"message": MARKER}, "params.message: must be an object"),
        ("message/send", {"message": {"role": "user", "messageId": "m"}}, "params.message.parts: field required"),
        ("message/send", message_0_3("x", role=MARKER), "params.message.role: not one of the values allowed"),
        ("message/send", message_0_3("x", messageId=5), "params.message.messageId: must be a string"),
        ("message/send", message_0_3("x", messageId=None), "params.message.messageId: must be a string"),
        ("message/send", message_0_3("x", parts=MARKER), "params.message.parts: must be an array"),
        ("message/send", message_0_3("x", parts=[MARKER]), "params.message.parts[0]: "),
        ("message/send", message_0_3("x", parts=[{"kind": MARKER}]), "params.message.parts[0]"),
        ("message/send", message_0_3("x", parts=[{"kind": "text"}]), "params.message.parts[0]"),
        ("message/send", message_0_3("x", parts=[{"kind": "text", "text": "\ud800"}]), "params"),
        ("message/send", message_0_3("x", metadata={"\ud800": 1}), "params"),
        ("message/send", message_0_3("x", metadata={MARKER: {"a": "\ud800"}}), "params"),
        ("message/send", message_0_3("x", parts=[]), "message.parts: "),
        ("message/send", message_0_3("x", messageId=""), "message.messageId: "),
        (
            "message/send",
            message_0_3("x", parts=[{"kind": "file", "file": {"bytes": "%%" + MARKER}}]),
            "params",
        ),
        ("message/send", message_0_3("x") | {"configuration": MARKER}, "params.configuration: must be an object"),
        ("tasks/get", {}, "params.id: field required"),
        ("tasks/get", {"id": 7}, "params.id: must be a string"),
        ("tasks/get", {"id": "x", "historyLength": -1}, "history length must be non-negative"),
        ("tasks/get", {"id": "x", "historyLength": MARKER}, "params.historyLength: "),
        ("tasks/get", {"id": "x", "historyLength": 10**30}, "params"),
        ("tasks/cancel", {}, "params.id: field required"),
        ("tasks/resubscribe", {"id": None}, "params.id: must be a string"),
        ("tasks/pushNotificationConfig/set", {"taskId": "x"}, "params.pushNotificationConfig: field required"),
        ("SendMessage", {}, "message: "),
        ("SendMessage", [], "params: must be an object"),
        ("SendMessage", {"message": MARKER}, "message.messageId: "),
        ("SendMessage", message_1_0("x", parts=[{"text": 5}]), "params.message.parts.text: not valid"),
        ("SendMessage", message_1_0("x", parts=[{"text": "\ud800"}]), "params"),
        ("SendMessage", message_1_0("x", parts=[{"foo": MARKER}]), "message.parts[0]: "),
        ("SendMessage", message_1_0("x", parts=[{"text": "a", "url": MARKER}]), "params.message.parts"),
        ("SendMessage", message_1_0("x", parts=[{"raw": MARKER + "%"}]), "params.message.parts"),
        ("SendMessage", message_1_0("x", role=MARKER), "message.role: "),
        ("SendMessage", message_1_0("x", role="user"), "message.role: "),
        ("SendMessage", message_1_0("x", messageId=""), "message.messageId: "),
        ("SendMessage", message_1_0("x", metadata=MARKER), "params.message.metadata: not valid"),
        ("SendMessage", message_1_0("x", metadata={MARKER: "\ud800"}), "params"),
        ("GetTask", {"id": 7}, "params.id: not valid"),
        ("GetTask", {}, "id: "),
        ("GetTask", {"id": "x", "historyLength": 2**40}, "params.historyLength: not valid"),
        ("ListTasks", {"pageSize": 0}, "minimum page size"),
        ("ListTasks", {"pageSize": 101}, "maximum page size"),
        ("ListTasks", {"pageToken": MARKER}, "pageToken: "),
        ("ListTasks", {"statusTimestampAfter": MARKER}, "params.statusTimestampAfter: not valid"),
        ("SubscribeToTask", {}, "id: "),
        ("CreateTaskPushNotificationConfig", {"taskId": {}}, "params.taskId: not valid"),
    ],
    # Without the ids of messages, which depend on the modules that were imported before.
    ids=lambda value: re.sub(r"m-\d+", "m", repr(value))[:60],
)
async def test_parameters_that_do_not_fit(served: Served, method: str, params: Any, hint: str) -> None:
    body = {"jsonrpc": "2.0", "id": 9, "method": method, "params": params}
    answer = await post(served, json.dumps(body))
    assert answer["id"] == 9
    assert answer["error"]["code"] == -32602
    assert answer["error"]["message"].startswith(hint)
    assert (await served.rpc("ListTasks", {}))["result"]["totalSize"] == 0


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "GetTask", "CancelTask"])
async def test_tasks_there_are_not(served: Served, method: str) -> None:
    body = {"jsonrpc": "2.0", "id": 9, "method": method, "params": {"id": MARKER}}
    answer = await post(served, json.dumps(body))
    assert answer["error"]["code"] == -32001


async def test_a_task_there_is_not_cannot_be_followed(served: Served) -> None:
    body = {"jsonrpc": "2.0", "id": 9, "method": "tasks/resubscribe", "params": {"id": MARKER}}
    assert (await post(served, json.dumps(body)))["error"]["code"] == -32001
    # A 0.3 client that waits for events gets the error as one.
    response = await served.http.post(served.url, json=body, headers={"Accept": "text/event-stream"})
    assert response.headers["content-type"].startswith("text/event-stream")
    assert json.loads(response.text.removeprefix("data: "))["error"]["code"] == -32001
    assert MARKER not in response.text
    body["method"] = "SubscribeToTask"
    assert (await post(served, json.dumps(body)))["error"]["code"] == -32001


@pytest.mark.parametrize("chunked", [False, True])
async def test_too_large_a_body(served: Served, chunked: bool) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": message_0_3(MARKER * 3000)})

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 4096):
            yield body[start : start + 4096].encode()

    response = await served.http.post(served.url, content=pieces() if chunked else body)
    assert response.status_code == 200
    assert response.json() == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32600, "message": "Payload too large"},
    }


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "multipart/form-data", ""])
async def test_the_type_of_the_content_is_not_what_counts(served: Served, content_type: str) -> None:
    body = {"jsonrpc": "2.0", "id": 9, "method": "tasks/get", "params": {"id": "x"}}
    assert (await post(served, json.dumps(body), content_type))["error"]["code"] == -32001
    assert (await post(served, b"--x--", content_type))["error"]["code"] == -32700


async def test_a_missing_version_of_jsonrpc_is_filled_in(served: Served) -> None:
    body = {"id": "test", "method": "message/stream", "params": message_0_3("show argocd version")}
    response = await served.http.post(served.url, json=body, headers={"Accept": "text/event-stream"})
    assert response.text.count("data: ") == 9
    body["method"] = "message/send"
    answer = (await served.http.post(served.url, json=body)).json()
    assert (answer["jsonrpc"], answer["id"], answer["result"]["kind"]) == ("2.0", "test", "task")


@pytest.mark.parametrize("request_id", [0, -5, "", "ü", 2**70, None])
async def test_ids_come_back_as_they_were_sent(served: Served, request_id: Any) -> None:
    for method in ("tasks/get", "GetTask"):
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {"id": "x"}}
        assert (await served.http.post(served.url, json=body)).json()["id"] == request_id


async def test_a_notification_is_answered_without_an_id(served: Served) -> None:
    body = {"jsonrpc": "2.0", "method": "message/send", "params": message_0_3("hello")}
    answer = (await served.http.post(served.url, json=body)).json()
    assert answer["id"] is None
    assert answer["result"]["status"]["state"] == "completed"


@pytest.mark.parametrize(
    ("method", "params", "header", "code"),
    [
        ("message/send", message_0_3("x"), None, None),
        ("message/send", message_0_3("x"), "0.3", None),
        ("message/send", message_0_3("x"), "0.3.0", None),
        ("message/send", message_0_3("x"), "1.0", -32009),
        ("SendMessage", message_1_0("x"), None, None),
        ("SendMessage", message_1_0("x"), "1.0", None),
        ("SendMessage", message_1_0("x"), "1.2", None),
        ("SendMessage", message_1_0("x"), "0.3", -32009),
        ("SendMessage", message_1_0("x"), MARKER, -32009),
    ],
)
async def test_the_method_says_which_protocol_is_spoken(
    served: Served, method: str, params: Any, header: str | None, code: int | None
) -> None:
    body = {"jsonrpc": "2.0", "id": 9, "method": method, "params": params}
    response = await served.http.post(served.url, json=body, headers={"A2A-Version": header} if header else {})
    assert MARKER not in response.text
    assert response.json().get("error", {}).get("code") == code


async def test_in_1_0_errors_carry_their_reason(served: Served) -> None:
    answer = await served.rpc("GetTask", {"id": "x"})
    assert answer["error"]["data"][0]["reason"] == "TASK_NOT_FOUND"
    assert "data" not in (await served.rpc("tasks/get", {"id": "x"}))["error"]


async def test_what_goes_wrong_in_here_stays_in_here(
    served: Served, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("connection to db://user:hunter2@host failed")

    monkeypatch.setattr(served.log, "snapshot", broken)
    monkeypatch.setattr(served.log, "task", broken)
    monkeypatch.setattr(served.log, "create", broken)
    for method, params in (
        ("tasks/get", {"id": "x"}),
        ("GetTask", {"id": "x"}),
        ("message/send", message_0_3("hello")),
        ("message/stream", message_0_3("hello")),
        ("SubscribeToTask", {"id": "x"}),
    ):
        answer = await served.rpc(method, params)
        assert answer["error"]["code"] == -32603
        assert "hunter2" not in str(answer)
        reference = answer["error"]["message"].split()[-1].rstrip(".")
        assert any(reference in record.getMessage() and record.exc_info for record in caplog.records)


async def test_a_stream_that_breaks_says_so_in_its_last_frame(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(*_: Any) -> AsyncIterator[Any]:
        raise RuntimeError("hunter2")
        yield

    monkeypatch.setattr(served.log, "follow", breaks)
    for method, params, event in (
        ("message/stream", message_0_3("hello"), None),
        ("SendStreamingMessage", message_1_0("hello"), "error"),
    ):
        body = {"jsonrpc": "2.0", "id": "r1", "method": method, "params": params}
        response = await served.http.post(served.url, json=body)
        first, last = response.text.strip().split("\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in last.split("\r\n"))
        assert "submitted" in first.lower()
        assert fields.get("event") == event
        assert json.loads(fields["data"])["error"]["code"] == -32603
        assert "hunter2" not in response.text


@pytest.fixture(scope="module")
def plain_client() -> Any:
    """The same routes without a socket, for many requests; errors are not swallowed into a 500."""
    config = load_settings({}, None)
    log = MemoryEventLog(10)
    card = agent_card(name="x", description="x", url="http://x", version="1")
    handler = request_handler(ScriptedExecutor(log), log, card, config)
    with TestClient(Starlette(routes=a2a_routes(handler, card, config))) as client:
        yield client
        client.portal.call(handler.aclose)


marked = st.sampled_from([MARKER, "", "x", "\ud800", "a\x00b"]) | st.text(max_size=5).map(lambda text: MARKER + text)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | marked,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["message", "parts", "text", "kind", "metadata", "id", "role", "data", MARKER]), inner
        )
    ),
    max_leaves=8,
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "agent", "ROLE_USER", 1]) | values,
        "messageId": marked | values,
        "taskId": marked | values,
        "contextId": values,
        "parts": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "kind": st.sampled_from(["text", "data", "file", MARKER]),
                    "text": values,
                    "data": values,
                    "file": values,
                    "raw": values,
                    "url": values,
                    "metadata": values,
                },
            )
            | values,
            max_size=3,
        )
        | values,
        "metadata": values,
    },
)
parameters = values | st.fixed_dictionaries(
    {}, optional={"message": messages | values, "id": values, "configuration": values, "metadata": values}
)
bodies = (
    st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.sampled_from(["2.0", "1.0", 2]),
            "id": st.integers() | st.floats() | st.booleans() | st.none(),
            "method": st.sampled_from([*METHODS, MARKER]) | values,
            "params": parameters,
        },
    ).map(json.dumps)
    | values.map(json.dumps)
    | st.binary(max_size=30)
)


@given(body=bodies)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_body_breaks_it_or_comes_back(plain_client: TestClient, body: bytes | str) -> None:
    response = plain_client.post("/", content=body)
    assert response.status_code == 200
    if "text/event-stream" not in response.headers["content-type"]:
        answer = response.json()
        if "error" in answer:
            assert MARKER not in str(answer["error"])
            assert answer["error"]["code"] != -32603
