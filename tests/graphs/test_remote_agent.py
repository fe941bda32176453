"""A remote agent among the sub-agents, over a real connection: what is sent to it, and what becomes of its events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from a2a.types.a2a_pb2 import Message
from google.protobuf.json_format import MessageToDict
from httpcore._async import http11
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from starlette.applications import Starlette
from starlette.datastructures import Address
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from ai_platform_engineering.events import (
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    Failed,
    FieldRules,
    FinalResult,
    Form,
    FormField,
    InputRequired,
    MessageEnded,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.forms.answers import Answer, Dismissed, Submitted
from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.graphs.remote_agent import RemoteAgent, waiting_remotely
from ai_platform_engineering.graphs.skills_offer import SkillOffers
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.utils.a2a_common.a2a_remote_agent_connect import (
    A2ARemoteAgentConnectTool,
    RemoteAgentError,
)
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import GraphRun, Resumption
from ai_platform_engineering.utils.a2a_common.codec.foreign import PLAIN_REPLY
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.a2a_common.server.work import Assignment
from tests.integrations.slack_bot.virtual_clock import VirtualClock
from tests.invariants import check, check_task
from tests.multi_agents.loopback import card
from tests.runs.graphs import agent, context, settings_of, supervisor
from tests.skills_middleware.store_contract import new_skill
from tests.utils.a2a_common.scripted_executor import Gate
from tests.utils.a2a_common.serving import listening, serving
from tests.utils.a2a_common.test_a2a_remote_agent_connect import Effects


@dataclass
class Remote:
    """An agent on a server, a supervisor that asks it to `do it` for each question, and what each was sent."""

    connection: A2ARemoteAgentConnectTool
    received: list[Message] = field(default_factory=list)
    results: list[AnyMessage] = field(default_factory=list)
    stop: Callable[[], Any] = lambda: None

    def graph(self, skills: SkillOffers | None = None, *, times: int = 1) -> Graph:
        def part(cue: ModelInput) -> Turn:
            if cue.turn < times:
                return Turn("", [("task", {"description": "do it", "subagent_type": "argocd"})])
            self.results[:] = [message for message in cue.messages if message.type == "tool"]  # type: ignore[misc]
            return Turn("Asked.")

        return supervisor(ScriptedChatModel(script=part), {"argocd": RemoteAgent(self.connection, skills)})

    def metadata(self, number: int = 0) -> dict[str, Any]:
        return MessageToDict(self.received[number].metadata)

    def parts(self, number: int) -> list[Any]:
        return [part.text or MessageToDict(part.data) for part in self.received[number].parts]


@asynccontextmanager
async def remote(*turns: Sequence[Any], keeps_tasks: bool = True, **environ: str) -> AsyncIterator[Remote]:
    """An agent that gives these events, one row for each message of a task."""
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(
            serving(lambda _text, turn: turns[turn], agent="argocd", keeps_tasks=keeps_tasks)
        )
        connection = A2ARemoteAgentConnectTool(
            "argocd", served.url, settings_of(AGENT_RECONNECT_SECONDS="0", **environ)
        )
        it = Remote(connection, stop=stack.aclose)
        execute = served.executor.execute

        async def recording(assignment: Assignment) -> bool:
            if assignment.request.message is not None:
                it.received.append(assignment.request.message)
            return await execute(assignment)

        served.executor.execute = recording  # type: ignore[method-assign]
        try:
            yield it
        finally:
            await connection.aclose()


async def run(graph: Graph, work: str | Resumption = "q", **options: Any) -> list[Event]:
    return [event async for event in GraphRun(graph, "supervisor", work, context(**options)).events()]


async def answered(graph: Graph, history: list[Event], said: Answer) -> list[Event]:
    ending = history[-1]
    assert isinstance(ending, InputRequired)
    return [*history, *await run(graph, Resumption(ending.forms[0], said, history))]


def delegation(history: Sequence[Event]) -> str:
    (started,) = [event for event in history if isinstance(event, AgentStarted)]
    return started.call_id


STARTED = ToolStarted("argocd", "sync", "c1")
FINISHED = ToolFinished("argocd", "sync", "c1", ok=True)
ANSWER = FinalResult("Synced.", "m1")
STOPPED = "The argocd agent was stopped before it had an answer."


async def test_the_question_goes_out_and_the_events_and_the_answer_come_back() -> None:
    async with remote([STARTED, FINISHED, ANSWER]) as it:
        history = await run(it.graph(), user="alex")
    ending = check(history)
    assert isinstance(ending, FinalResult)
    assert (ending.text, ending.limit) == ("Asked.", None)
    assert [str(result.text) for result in it.results] == ["Synced."]
    called = delegation(history)
    events = [event for event in history if isinstance(event, ToolStarted | ToolFinished)]
    assert [(event.agent, event.tool, event.parent_call_id) for event in events] == [("argocd", "sync", called)] * 2
    [message] = it.received
    assert (it.parts(0), message.message_id, message.context_id) == (["do it"], f"{called}-1", called)
    assert it.metadata() == {"trace_id": "trace-1", "user": "alex", "delegated": True, "stream_text": False}


async def test_a_secret_of_the_supervisor_in_the_events_of_an_agent_is_masked() -> None:
    secret = "key-of-the-provider-0123"
    said = [TextDelta("argocd", "m1", text) for text in ("It is key-of-the", "-provider", "-0123, or key-", "of-mine.")]
    failed = ToolFinished("argocd", "sync", "c1", ok=False, reason=f"{secret} was refused")
    ended = MessageEnded("argocd", "m1")
    final = FinalResult(f"It is {secret}, or key-of-mine.", "m1")
    async with remote([STARTED, failed, *said, ended, final], OPENAI_API_KEY=secret) as it:
        history = await run(it.graph(), stream_sub_agent_text=True)
    check(history)
    text = "".join(event.text for event in history if isinstance(event, TextDelta) and event.agent == "argocd")
    assert text == "It is ***, or key-of-mine."
    assert [event.reason for event in history if isinstance(event, ToolFinished)] == ["*** was refused"]
    assert [str(result.text) for result in it.results] == [text]


@pytest.mark.parametrize(
    ("limit", "result", "told_limit"),
    [
        ("recursion_limit", "Synced.", "recursion_limit"),
        (
            "output_length",
            "Synced.\n\n[This answer is incomplete. The model reached its output limit before the answer was "
            "complete.]",
            None,
        ),
    ],
)
async def test_a_limit_is_passed_on_and_a_cut_answer_says_so(limit: str, result: str, told_limit: str | None) -> None:
    async with remote([FinalResult("Synced.", "m1", limit)]) as it:
        ending = check(await run(it.graph()))
    assert isinstance(ending, FinalResult)
    assert (str(it.results[0].text), ending.limit) == (result, told_limit)


@pytest.mark.parametrize(
    ("ending", "result"),
    [
        (Failed("model", "There is no such application."), "There is no such application."),
        (
            Canceled(message="Completed: sync."),
            "The argocd agent was stopped before it had an answer. Completed: sync.",
        ),
        (Canceled(), "The argocd agent was stopped before it had an answer."),
    ],
)
async def test_an_agent_without_an_answer_is_a_failed_delegation(ending: Event, result: str) -> None:
    async with remote([STARTED, FINISHED, ending]) as it:
        history = await run(it.graph())
    check(history)
    (finished,) = [event for event in history if isinstance(event, AgentFinished)]
    assert not finished.ok
    assert str(it.results[0].text) == result


async def test_a_lost_connection_says_what_was_seen_of_the_work() -> None:
    script = [STARTED, FINISHED, ToolStarted("argocd", "prune", "c2"), Gate()]
    async with remote(script) as it:
        history: list[Event] = []
        async for event in GraphRun(it.graph(), "supervisor", "q", context()).events():
            history.append(event)
            if isinstance(event, ToolStarted) and event.tool == "prune":
                await it.stop()
    check(history)
    assert str(it.results[0].text) == (
        "The connection to the argocd agent was lost while it worked. Completed: Argocd sync. Outcome unknown: Argocd "
        "prune. Check before asking again."
    )


async def test_an_agent_that_never_got_the_message_has_done_nothing(unused_port: int) -> None:
    connection = A2ARemoteAgentConnectTool("argocd", f"http://127.0.0.1:{unused_port}", settings_of())
    it = Remote(connection)
    check(await run(it.graph()))
    await connection.aclose()
    said = str(it.results[0].text)
    assert said.startswith("The argocd agent cannot be reached (")
    assert said.endswith("). Other agents are not affected.")


async def stopped(run: GraphRun, at: type[Event]) -> list[Event]:
    """The events of a run whose process ends at the first event of this kind. Remote tasks go on."""
    history: list[Event] = []
    reached = asyncio.Event()

    async def read() -> None:
        async for event in run.events():
            history.append(event)
            if isinstance(event, at):
                reached.set()
                await asyncio.Event().wait()

    reading = asyncio.create_task(read())
    await asyncio.wait_for(reached.wait(), 90)
    reading.cancel()
    with suppress(asyncio.CancelledError):
        await reading
    return history


def resumable(**options: Any) -> RequestContext:
    return context(effects=Effects(), is_handed_over=lambda: True, **options)


async def test_a_supervisor_that_was_restarted_gets_the_events_and_the_answer_once() -> None:
    async with remote([STARTED, FINISHED, ANSWER]) as it:
        graph = it.graph()
        begun = await stopped(GraphRun(graph, "supervisor", "q", resumable()), ToolStarted)
        rest = GraphRun(graph, "supervisor", "q", resumable(), begun)
        history = begun + [event async for event in rest.events()]
    check(history)
    assert [str(result.text) for result in it.results] == ["Synced."]
    assert len(it.received) == 1
    assert delegation(history)


async def test_an_answer_that_was_sent_before_a_restart_is_not_lost_and_not_repeated() -> None:
    async with remote([InputRequired((NEXT,))], [STARTED, FINISHED, ANSWER]) as it:
        graph = it.graph()
        history = [event async for event in GraphRun(graph, "supervisor", "q", resumable()).events()]
        ending = history[-1]
        assert isinstance(ending, InputRequired)
        answer = Resumption(ending.forms[0], Submitted({"why": "because"}), [*history])
        begun = await stopped(GraphRun(graph, "supervisor", answer, resumable()), ToolStarted)
        rest = GraphRun(graph, "supervisor", answer, resumable(), begun)
        history += begun + [event async for event in rest.events()]
    check_task(history)
    assert [str(result.text) for result in it.results] == ["Synced."]
    assert [it.parts(number)[-1] for number in range(len(it.received))] == ["do it", "because"]


async def test_an_agent_that_would_not_recognize_the_message_is_not_asked_again() -> None:
    effects = Effects()
    async with remote([STARTED, FINISHED, ANSWER], keeps_tasks=False) as it:
        graph = it.graph()
        with_ledger = context(effects=effects, is_handed_over=lambda: True)
        begun = await stopped(GraphRun(graph, "supervisor", "q", with_ledger), ToolStarted)
        rest = GraphRun(graph, "supervisor", "q", with_ledger, begun)
        history = begun + [event async for event in rest.events()]
    check(history)
    assert len(it.received) == 1
    assert str(it.results[0].text) == (
        "The connection to the argocd agent was lost. The agent may have received the request, so it was not sent "
        "again. Outcome unknown: Argocd. Check before asking again."
    )


RULES = FieldRules(max_length=9, pattern="(a+)+$")
WHICH = Form("f1", "Which?", (FormField("name", rules=RULES), FormField("zone")), agent="another")
NEXT = Form("f2", "And why?", (FormField("why"),))


async def test_an_idle_connection_is_closed_before_a_foreign_agent_would_close_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = VirtualClock()
    monkeypatch.setattr(http11, "time", SimpleNamespace(monotonic=clock.now))
    peers: list[Address | None] = []

    async def answer(request: Request) -> JSONResponse:
        if request.method == "GET":
            return JSONResponse(card() | {"url": str(request.base_url)})
        peers.append(request.client)
        unknown = {"code": -32001, "message": "Task not found"}
        return JSONResponse({"jsonrpc": "2.0", "id": (await request.json())["id"], "error": unknown})

    async with (
        listening(Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])) as url,
        aclosing(A2ARemoteAgentConnectTool("weather", url, settings_of())) as connection,
    ):
        for idle in (0, 2, 4):  # uvicorn and Node close an idle connection after 5 s
            clock.advance(idle)
            await connection.cancel("task-1", context())
    first, second, third = peers
    assert first == second
    assert second != third


async def test_a_question_is_asked_and_its_answer_goes_to_the_same_task() -> None:
    async with remote([STARTED, FINISHED, InputRequired((WHICH, NEXT))], [InputRequired((NEXT,))], [ANSWER]) as it:
        graph = it.graph()
        history = await run(graph)
        check(history)
        assert isinstance(history[-1], InputRequired)
        [form] = history[-1].forms
        assert (form.title, form.agent) == ("Which?", "argocd")
        assert [(each.field_name, each.rules) for each in form.fields] == [
            ("name", FieldRules(max_length=9)),
            ("zone", None),
        ]
        task_id = (await waiting_remotely(graph, "context-1"))[0][1]
        assert await waiting_remotely(graph, "context-1") == [("argocd", task_id)]
        assert await waiting_remotely(graph, "context-2") == []

        history = await answered(graph, history, Submitted({"name": "shop", "zone": "eu"}))
        assert isinstance(history[-1], InputRequired)
        assert history[-1].forms[0].title == "And why?"
        history = await answered(graph, history, Dismissed("not now"))
        assert await waiting_remotely(graph, "context-1") == []
    check_task(history)
    assert isinstance(history[-1], FinalResult)
    assert [str(result.text) for result in it.results] == ["Synced."]
    called = delegation(history)
    assert [(m.message_id, m.context_id) for m in it.received] == [(f"{called}-{n}", called) for n in (1, 2, 3)]
    assert {message.task_id for message in it.received} == {task_id}
    values = {"name": "shop", "zone": "eu"}
    assert it.parts(1) == [{"resume": {"form_id": "f1", "values": values}}, "name: shop\nzone: eu"]
    assert it.parts(2) == [{"resume": {"form_id": "f2", "cancel": True, "message": "not now"}}, "cancel"]


async def test_a_run_that_goes_on_can_ask_the_agent_anew() -> None:
    async with remote([InputRequired((NEXT,))], [ANSWER]) as it:
        graph = it.graph(times=2)
        history = await answered(graph, await run(graph), Submitted({"why": "because"}))
        history = await answered(graph, history, Submitted({"why": "again"}))
    assert isinstance(history[-1], FinalResult)
    assert [str(result.text) for result in it.results] == ["Synced.", "Synced."]
    assert [it.parts(number)[-1] for number in range(4)] == ["do it", "because", "do it", "again"]
    assert len({message.task_id for message in it.received}) == 2


async def test_a_question_in_words_is_answered_in_words() -> None:
    async with remote([InputRequired((Form("f1", "", (PLAIN_REPLY,), "Which one?"),))], [ANSWER]) as it:
        graph = it.graph()
        history = await answered(graph, await run(graph), Submitted({"response": "shop"}))
    assert isinstance(history[-1], FinalResult)
    assert it.parts(1) == ["shop"]


async def test_an_answer_that_cannot_be_read_is_left_to_the_agent() -> None:
    async with remote([InputRequired((Form("f1", "", (PLAIN_REPLY,), "Which one?"),))], [ANSWER]) as it:
        graph = it.graph()
        history = await run(graph)
        assert isinstance(history[-1], InputRequired)
        config: Any = {"configurable": {"thread_id": "context-1"}}
        state = await graph.aget_state(config)
        resume: Command[Any] = Command(resume={state.interrupts[0].id: {"strange": True}})
        await graph.ainvoke(resume, config, context=context(resumed=True))
    assert it.parts(1) == [{"resume": {"form_id": "f1", "strange": True}}]


async def test_the_agents_of_this_process_wait_for_no_remote_task() -> None:
    ask = Turn("", [("request_user_input", {"title": "Which?", "fields": [{"name": "name"}]})])
    calls = [("task", {"description": "do it", "subagent_type": "jira"})]
    delegates = ScriptedChatModel(script=lambda cue: Turn("", calls) if cue.turn == 0 else Turn("Done."))
    graph = supervisor(delegates, {"jira": agent("jira", ScriptedChatModel(script=[ask]))})
    assert isinstance((await run(graph))[-1], InputRequired)
    assert await waiting_remotely(graph, "context-1") == []
    assert await waiting_remotely(agent("jira", delegates), "context-1") == []


GRANT = {"agent": "argocd", "tool": "sync", "effect": "write"}


async def ask_directly(it: Remote, given: dict[str, Any], **options: Any) -> None:
    """Without a supervisor, so that errors come out and the state is the one that is given."""
    one = RemoteAgent(it.connection)

    async def delegate(state: dict[str, Any]) -> Any:
        return await one.ainvoke(state["given"])  # type: ignore[arg-type]

    builder = StateGraph(dict, context_schema=RequestContext)
    builder.add_node("tools", delegate)  # type: ignore[arg-type]
    builder.add_edge(START, "tools")
    await builder.compile().ainvoke({"given": given}, context=context(**options))


async def test_a_step_and_what_was_approved_before_go_with_the_question() -> None:
    granted = ({**GRANT, "tool": "prune"},)
    async with remote([ANSWER]) as it:
        given = {"messages": [HumanMessage("before"), HumanMessage("go")], "step": {"tool": "sync"}}
        await ask_directly(it, {**given, "approvals": [GRANT]}, approvals=granted)
    assert it.parts(0) == ["go"]
    assert it.metadata()["step"] == {"tool": "sync"}
    assert it.metadata()["approvals"] == [GRANT, *granted]


@pytest.mark.parametrize("ending", [Failed("model", "It failed."), Canceled()])
async def test_an_agent_without_an_answer_is_the_agents_failure(ending: Event) -> None:
    async with remote([ending]) as it:
        with pytest.raises(RemoteAgentError) as failed:
            await ask_directly(it, {"messages": [HumanMessage("go")]})
    assert failed.value.code == "agent"


@pytest.mark.parametrize(("names", "sent"), [(["rollback"], ["rollback"]), ([], [])])
async def test_the_skills_of_the_agent_go_with_the_question(tmp_path: Path, names: list[str], sent: list[str]) -> None:
    settings = settings_of(DATA_DIR=str(tmp_path))
    catalog = SkillCatalog(settings)
    await catalog.start()
    try:
        assert catalog.store is not None
        await catalog.store.create(new_skill("rollback"), None)
        async with remote([InputRequired((NEXT,))], [ANSWER]) as it:
            graph = it.graph(SkillOffers(catalog, settings, "argocd", names))
            await answered(graph, await run(graph), Submitted({"why": "because"}))
    finally:
        await catalog.aclose()
    assert [[skill["name"] for skill in it.metadata(number)["skills"]] for number in (0, 1)] == [sent, sent]


def test_it_can_only_be_awaited() -> None:
    one = RemoteAgent(A2ARemoteAgentConnectTool("argocd", "http://127.0.0.1:1", settings_of()))
    with pytest.raises(NotImplementedError, match=r"^The argocd agent is remote and can only be awaited"):
        one.invoke({"messages": []})
