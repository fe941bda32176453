"""Agents that are not ours ask too: their questions become forms, and the answers go to the task that asked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, Part, Task, TaskState, TaskStatus
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ai_platform_engineering.events import FinalResult
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.codec.values import get_value, set_value
from tests.invariants import check_task
from tests.people.dialogues import Dialogue, environ_of, supervisor_app
from tests.servers import Caller, calling, serving

FORM = {
    "user_input": True,
    "input_title": "New cluster",
    "input_fields": [{"field_name": "nodes", "field_type": "number", "required": True}],
}


def speaking_0_3(heard: list[Any]) -> Callable[[Settings], Starlette]:
    """An agent of protocol 0.3 that asks in words and puts its answer into an artifact."""

    def app(settings: Settings) -> Starlette:
        url = settings.public_url

        async def card(_request: Request) -> Response:
            return JSONResponse(
                {
                    "name": "Clusters",
                    "description": "Creates clusters.",
                    "url": url,
                    "version": "1",
                    "protocolVersion": "0.3.0",
                    "preferredTransport": "JSONRPC",
                    "capabilities": {"streaming": True},
                    "defaultInputModes": ["text"],
                    "defaultOutputModes": ["text"],
                    "skills": [],
                }
            )

        async def rpc(request: Request) -> Response:
            body = await request.json()
            message = body["params"]["message"]
            heard.append(message)
            ids = {"taskId": "t-1", "contextId": message.get("contextId", "c")}
            if message.get("taskId"):
                artifact = {"artifactId": "a", "name": "final_result", "parts": [{"kind": "text", "text": "Created."}]}
                results = [
                    {"kind": "artifact-update", **ids, "artifact": artifact, "append": False, "lastChunk": True},
                    {"kind": "status-update", **ids, "status": {"state": "completed"}, "final": True},
                ]
            else:
                asked = {"messageId": "m", "role": "agent", "kind": "message"}
                asked["parts"] = [{"kind": "text", "text": "In which region?"}]  # type: ignore[assignment]
                status = {"state": "input-required", "message": asked}
                results = [
                    {"kind": "task", "id": "t-1", "contextId": ids["contextId"], "status": {"state": "submitted"}},
                    {"kind": "status-update", **ids, "status": status, "final": True},
                ]

            async def frames() -> AsyncIterator[str]:
                for result in results:
                    yield f"data: {json.dumps({'jsonrpc': '2.0', 'id': body['id'], 'result': result})}\n\n"

            return StreamingResponse(frames(), media_type="text/event-stream")

        return Starlette(routes=[Route("/.well-known/agent-card.json", card), Route("/", rpc, methods=["POST"])])

    return app


class AskingExecutor(AgentExecutor):
    """Asks with a form, then says what it was events."""

    def __init__(self, heard: list[Any]) -> None:
        self._heard = heard

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
        data = [get_value(part.data) for part in context.message.parts if part.HasField("data")]
        self._heard.append(data)
        if context.current_task is None:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(Task(id=context.task_id, context_id=context.context_id, status=status))
            part = Part()
            set_value(part.data, FORM)
            await updater.requires_input(updater.new_agent_message([part]))
        else:
            await updater.add_artifact([Part(text="Created.")], name="final_result")
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


def speaking_1_0(heard: list[Any]) -> Callable[[Settings], Starlette]:
    def app(settings: Settings) -> Starlette:
        interface = AgentInterface(url=settings.public_url, protocol_binding="JSONRPC", protocol_version="1.0")
        card = AgentCard(
            name="Clusters",
            description="Creates clusters.",
            version="1",
            capabilities=AgentCapabilities(streaming=True),
            supported_interfaces=[interface],
        )
        handler = DefaultRequestHandler(AskingExecutor(heard), InMemoryTaskStore(), card)
        return Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])

    return app


@asynccontextmanager
async def with_clusters(folder: Path, agent: Callable[[Settings], Starlette]) -> AsyncIterator[Caller]:
    environ = environ_of(folder, ()) | {"DATA_DIR": str(folder)}
    async with serving(agent, environ) as url:
        # The scripted supervisor knows argocd; who stands behind the name is what is tested.
        environ |= {"ARGOCD_AGENT_URL": url, "DISTRIBUTED_AGENTS": "argocd"}
        async with serving(supervisor_app, environ) as supervisor, calling(supervisor) as caller:
            yield caller


async def test_a_question_in_words_becomes_a_form_and_the_answer_goes_to_the_same_task(tmp_path: Path) -> None:
    heard: list[Any] = []
    async with with_clusters(tmp_path, speaking_0_3(heard)) as caller:
        talk = Dialogue(caller, "c")
        (form,) = await talk.ask("argocd: a new cluster")
        assert form.description == "In which region?"
        assert not await talk.answer("eu-central-1")
        check_task(talk.events)
        assert isinstance(talk.events[-1], FinalResult)
        assert "Created." in talk.events[-1].text
    first, second = heard
    assert "taskId" not in first
    assert second["taskId"] == "t-1"
    assert second["parts"] == [{"kind": "text", "text": "eu-central-1"}]


@pytest.mark.parametrize("nodes", [3, 2**40])
async def test_a_form_of_another_agent_is_checked_here_and_integers_stay_integers(tmp_path: Path, nodes: int) -> None:
    heard: list[Any] = []
    async with with_clusters(tmp_path, speaking_1_0(heard)) as caller:
        talk = Dialogue(caller, "c")
        (form,) = await talk.ask("argocd: a new cluster")
        assert form.title == "New cluster"
        (again,) = await talk.answer({"values": {"nodes": "three"}})
        assert again.fields[0].error
        assert len(heard) == 1
        assert not await talk.answer({"values": {"nodes": nodes}})
        check_task(talk.events)
    ((resume,),) = heard[1:]
    assert resume["resume"]["values"] == {"nodes": nodes}
    assert isinstance(resume["resume"]["values"]["nodes"], int)


async def test_a_canceled_question_is_canceled_at_the_agent(tmp_path: Path) -> None:
    heard: list[Any] = []
    async with with_clusters(tmp_path, speaking_0_3(heard)) as caller:
        talk = Dialogue(caller, "c")
        await talk.ask("argocd: a new cluster")
        assert not await talk.answer({"cancel": True})
        check_task(talk.events)
    assert heard[1]["parts"] == [{"kind": "text", "text": "cancel"}]
