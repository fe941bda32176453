from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ai_platform_engineering.settings import SettingsError, load_settings
from ai_platform_engineering.utils.a2a_common.server import push
from ai_platform_engineering.utils.a2a_common.server.push_sender import DELIVERY_SECONDS, push_policy
from ai_platform_engineering.utils.outbound.addresses import Address
from tests.utils.a2a_common.scripted_executor import FORM, Gate
from tests.utils.a2a_common.serving import Served, listening, message_0_3, message_1_0, serving, until


class Receiver:
    """Where notifications go. It answers only while `answers` is open."""

    def __init__(self) -> None:
        self.url = ""
        self.got: list[tuple[dict[str, Any], str | None]] = []
        self.arrived = 0
        self.answers = asyncio.Event()
        self.answers.set()
        self.requests: list[Request] = []
        self.answers_with: list[Response] = []
        self.codes: list[int] = []
        """The next notifications are refused with these codes."""

    async def take(self, request: Request) -> Response:
        self.arrived += 1
        self.requests.append(request)
        await self.answers.wait()
        if self.answers_with:
            return self.answers_with.pop(0)
        if self.codes:
            return Response(status_code=self.codes.pop(0))
        self.got.append((await request.json(), request.headers.get("x-a2a-notification-token")))
        return Response()

    def states(self) -> list[str]:
        return [body["statusUpdate"]["status"]["state"] for body, _ in self.got if "statusUpdate" in body]


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = Starlette(routes=[Route("/hook", receiver.take, methods=["POST"])])
    async with listening(app) as url:
        receiver.url = f"{url}/hook"
        yield receiver
        receiver.answers.set()


async def test_notifications_arrive_in_order_with_their_token() -> None:
    async with receiving() as receiver, serving(PUSH_ALLOW_PRIVATE="true") as served:
        config = {"url": receiver.url, "token": "t0ken"}
        body = message_0_3("hello") | {"configuration": {"pushNotificationConfig": config}}
        await served.rpc("message/send", body)
        await until(lambda: "TASK_STATE_COMPLETED" in receiver.states())
        assert receiver.states() == ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]
        assert {token for _, token in receiver.got} == {"t0ken"}
        assert "final_result" in str(receiver.got[1][0])


async def test_a_receiver_that_does_not_answer_holds_up_nothing() -> None:
    async with receiving() as receiver, serving(lambda text, turn: [FORM], PUSH_ALLOW_PRIVATE="true") as served:
        receiver.answers.clear()
        body = message_0_3("hello") | {"configuration": {"pushNotificationConfig": {"url": receiver.url}}}
        async with asyncio.timeout(15):
            task_id = (await served.rpc("message/send", body))["result"]["id"]
            await served.rpc("message/send", message_0_3("guestbook", taskId=task_id))
            canceled = await served.rpc("tasks/cancel", {"id": task_id})
        assert canceled["result"]["status"]["state"] == "canceled"
        await until(lambda: receiver.arrived)
        assert (receiver.arrived, receiver.got) == (1, [])
        receiver.answers.set()
        await until(lambda: "TASK_STATE_CANCELED" in receiver.states())
        turn = ["TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED"]
        assert receiver.states() == [*turn, *turn, "TASK_STATE_CANCELED"]


@pytest.mark.long
async def test_a_notification_is_sent_again_in_order_but_not_after_a_rejection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with receiving() as receiver, serving(PUSH_ALLOW_PRIVATE="true") as served:
        receiver.codes = [503, 429, 400]
        config = {
            "url": f"{receiver.url}?key=in-the-url",
            "token": "t0ken",
            "authentication": {"schemes": ["Bearer"], "credentials": "cr3dentials"},
        }
        await served.rpc("message/send", message_0_3("hello") | {"configuration": {"pushNotificationConfig": config}})
        await until(lambda: "TASK_STATE_COMPLETED" in receiver.states())
        assert receiver.states() == ["TASK_STATE_COMPLETED"], "the first was rejected at the third attempt"
        assert receiver.arrived == 5
    ours = "\n".join(row.getMessage() for row in caplog.records if row.name.startswith("ai_platform_engineering"))
    assert "HTTP 503" in ours
    assert not any(secret in ours for secret in ("t0ken", "cr3dentials", "in-the-url"))


@pytest.mark.long
async def test_a_receiver_that_is_gone_is_given_up(
    unused_port: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(push, "MAX_ATTEMPTS", 2)
    async with serving(PUSH_ALLOW_PRIVATE="true") as served:
        config = {"pushNotificationConfig": {"url": f"http://127.0.0.1:{unused_port}/hook"}}
        await served.rpc("message/send", message_0_3("hello") | {"configuration": config})
        await until(lambda: caplog.text.count("is given up after 2 attempts") == 3)
        await until(lambda: not served.handler.pushes._delivering)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1:1/hook",
        "http://localhost/hook",
        "https://10.0.0.1/",
        "https://192.0.0.192/",
        "https://168.63.129.16/",
        "https://169.254.169.254/",
        "https://[2002:a9fe:a9fe::1]/",
        "https://[::1]/",
        "http://8.8.8.8/hook",
        "file:///etc/passwd",
        "not a url",
    ],
)
async def test_private_addresses_and_plain_http_are_refused(url: str) -> None:
    async with serving() as served:
        for method, params in (
            ("message/send", message_0_3("hello") | {"configuration": {"pushNotificationConfig": {"url": url}}}),
            ("SendMessage", message_1_0("hello") | {"configuration": {"taskPushNotificationConfig": {"url": url}}}),
        ):
            answer = await served.rpc(method, params)
            assert answer["error"]["code"] == -32602
            assert url not in str(answer)
        assert (await served.rpc("ListTasks", {}))["result"]["totalSize"] == 0


class Names:
    """A DNS whose answers change: each question gets the next answer, and the last one from then on."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, name: str) -> list[Address]:
        self.asked += 1
        return [ipaddress.ip_address(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])]


async def test_a_receiver_whose_name_changes_its_address_gets_nothing_at_a_private_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    # Public when the receiver is set; for deliveries, loopback or a metadata service.
    for address, reason in (("127.0.0.1", "a loopback address"), ("169.254.169.254", "the metadata service")):
        names = Names("93.184.215.14", address)
        async with receiving() as receiver, serving(resolve=names, PUSH_ALLOW_HTTP="true") as served:
            url = receiver.url.replace("127.0.0.1", "hooks.test")
            config = {"pushNotificationConfig": {"url": url, "token": "t0ken"}}
            answer = await served.rpc("message/send", message_0_3("hello") | {"configuration": config})
            assert answer["result"]["status"]["state"] == "completed"
            await until(lambda reason=reason: f"did not reach hooks.test: {reason}" in caplog.text)
            assert names.asked == 2, "once for the receiver, once for the delivery"
            assert receiver.arrived == 0


async def test_a_delivery_connects_to_the_address_that_was_checked() -> None:
    names = Names("127.0.0.1", "127.0.0.1", "169.254.169.254")
    async with receiving() as receiver, serving(resolve=names, PUSH_ALLOW_PRIVATE="true") as served:
        url = receiver.url.replace("127.0.0.1", "hooks.test")
        config = {"pushNotificationConfig": {"url": url}}
        await served.rpc("message/send", message_0_3("hello") | {"configuration": config})
        await until(lambda: "TASK_STATE_COMPLETED" in receiver.states())
        assert names.asked == 2, "the notifications share a connection"
        assert {request.headers["host"] for request in receiver.requests} == {url.split("/")[2]}


@pytest.mark.parametrize(
    "url", ["https://169.254.169.254/", "https://0xa9fea9fe/", "https://[fd00:ec2::254]/", "https://0.0.0.0/"]
)
async def test_metadata_services_are_refused_where_private_addresses_are_allowed(url: str) -> None:
    async with serving(PUSH_ALLOW_PRIVATE="true", PUSH_ALLOW_HTTP="true") as served:
        config = {"pushNotificationConfig": {"url": url}}
        error = (await served.rpc("message/send", message_0_3("hello") | {"configuration": config}))["error"]
        assert "was not contacted: it is" in error["message"]


async def test_receivers_can_be_limited_to_hosts_and_ports() -> None:
    names = Names("93.184.215.14", "10.0.0.1")  # for deliveries, which are refused
    limits = {"PUSH_ALLOWED_HOSTS": "*.example.com", "PUSH_ALLOWED_PORTS": "443"}
    async with serving(resolve=names, **limits) as served:
        for url, setting in (
            ("https://a.example.com/hook", None),
            ("https://a.example.org/hook", "PUSH_ALLOWED_HOSTS"),
            ("https://a.example.com:22/hook", "PUSH_ALLOWED_PORTS"),
        ):
            config = {"pushNotificationConfig": {"url": url}}
            answer = await served.rpc("message/send", message_0_3("hello") | {"configuration": config})
            assert ("error" in answer) == (setting is not None)
            assert setting is None or setting in answer["error"]["message"]


async def test_a_wrong_port_is_named() -> None:
    with pytest.raises(SettingsError, match=r"PUSH_ALLOWED_PORTS=.*65536.* cannot be used: it must be port numbers"):
        push_policy(load_settings({"PUSH_ALLOWED_PORTS": "443, 65536"}, None))


async def test_a_redirect_is_not_followed_and_a_long_response_is_not_read() -> None:
    async def long_and_unfinished() -> AsyncIterator[bytes]:
        yield bytes(128 * 1024)
        await asyncio.Event().wait()

    async with receiving() as receiver, serving(PUSH_ALLOW_PRIVATE="true") as served:
        receiver.answers_with = [
            Response(status_code=307, headers={"location": receiver.url}),
            StreamingResponse(long_and_unfinished()),
        ]
        config = {"pushNotificationConfig": {"url": receiver.url, "token": "t0ken"}}
        await served.rpc("message/send", message_0_3("hello") | {"configuration": config})
        async with asyncio.timeout(DELIVERY_SECONDS - 1):
            await until(lambda: "TASK_STATE_COMPLETED" in receiver.states())
        assert receiver.arrived == 3, "none was sent again"


async def _configured(served: Served, task_id: str, url: str) -> None:
    set_0_3 = await served.rpc(
        "tasks/pushNotificationConfig/set", {"taskId": task_id, "pushNotificationConfig": {"id": "a", "url": url}}
    )
    assert set_0_3["result"]["pushNotificationConfig"]["url"] == url
    set_1_0 = await served.rpc("CreateTaskPushNotificationConfig", {"taskId": task_id, "id": "b", "url": url})
    assert set_1_0["result"]["id"] == "b"


async def test_configurations_are_stored_listed_and_deleted_in_both_protocols() -> None:
    gate = Gate()
    async with receiving() as receiver, serving(lambda text, turn: [gate, FORM], PUSH_ALLOW_PRIVATE="true") as served:
        begun = await served.rpc("message/send", message_0_3("hello") | {"configuration": {"blocking": False}})
        task_id = begun["result"]["id"]
        await _configured(served, task_id, receiver.url)

        listed = await served.rpc("tasks/pushNotificationConfig/list", {"id": task_id})
        assert [entry["pushNotificationConfig"]["id"] for entry in listed["result"]] == ["a", "b"]
        listed = await served.rpc("ListTaskPushNotificationConfigs", {"taskId": task_id})
        assert [entry["id"] for entry in listed["result"]["configs"]] == ["a", "b"]
        got = await served.rpc("tasks/pushNotificationConfig/get", {"id": task_id, "pushNotificationConfigId": "b"})
        assert got["result"]["pushNotificationConfig"]["id"] == "b"
        got = await served.rpc("GetTaskPushNotificationConfig", {"taskId": task_id, "id": "a"})
        assert got["result"]["url"] == receiver.url

        rest = f"{served.url}/tasks/{task_id}/pushNotificationConfigs"
        added = await served.http.post(rest, json={"id": "c", "url": receiver.url})
        assert added.json()["taskId"] == task_id
        old_rest = f"{served.url}/v1/tasks/{task_id}/pushNotificationConfigs"
        config = {"config": {"pushNotificationConfig": {"id": "d", "url": receiver.url}}}
        assert (await served.http.post(old_rest, json=config)).status_code == 200
        assert len((await served.http.get(old_rest)).json()["configs"]) == 4

        await served.rpc("tasks/pushNotificationConfig/delete", {"id": task_id, "pushNotificationConfigId": "a"})
        await served.rpc("DeleteTaskPushNotificationConfig", {"taskId": task_id, "id": "b"})
        assert (await served.http.delete(f"{rest}/c")).status_code == 200
        assert [entry["id"] for entry in (await served.http.get(rest)).json()["configs"]] == ["d"]
        gate.set()
        await until(lambda: receiver.states() == ["TASK_STATE_INPUT_REQUIRED"])
