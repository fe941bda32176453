"""A remote agent among the sub-agents: what is asked goes out, its events come through, its questions come up.

Most agents answer without a question, and a graph would cost them more than the sending does. One that asks something
is handed to a graph that can wait: `ask` waits for a person, `call` sends the answer to the same task of the agent. A
node that waits runs again from its start when it goes on, so nothing is sent in the one that waits.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, NoReturn, NotRequired, TypedDict

from a2a.types.a2a_pb2 import Part
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import interrupt

from ai_platform_engineering.events import (
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    Failed,
    FinalResult,
    Form,
    InputRequired,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.forms.answers import answer_text, read_answer
from ai_platform_engineering.forms.questions import question_data
from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.graphs.handed_back import handed_back
from ai_platform_engineering.graphs.skills_offer import SkillOffers
from ai_platform_engineering.limits import cut_reason_of
from ai_platform_engineering.runs.outcomes import outcomes_of, report
from ai_platform_engineering.runs.translation import LimitReached, RemoteEvent, delegation_of
from ai_platform_engineering.utils.a2a_common.a2a_remote_agent_connect import (
    A2ARemoteAgentConnectTool,
    RemoteAgentError,
    RemoteThread,
)
from ai_platform_engineering.utils.a2a_common.codec.foreign import PLAIN_REPLY
from ai_platform_engineering.utils.a2a_common.codec.values import set_value
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext


class _Waiting(TypedDict):
    """What the agent asked: its form without its id, the id, and whether the answer is to be in words."""

    question: Mapping[str, Any]
    form_id: str
    in_words: bool


class _State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    approvals: NotRequired[list[Mapping[str, Any]]]
    step: NotRequired[Mapping[str, Any] | None]
    agent: NotRequired[str]
    remote_task: NotRequired[str]
    turn: NotRequired[int]
    waiting: NotRequired[_Waiting | None]
    answer: NotRequired[Mapping[str, Any] | None]


class _Result(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class RemoteAgent(Runnable[_State, Any]):
    """Only what the delegating tool needs of a runnable: one that wraps a function does more for a call than sending it
    does."""

    def __init__(self, connection: A2ARemoteAgentConnectTool, skills: SkillOffers | None = None) -> None:
        """`skills` are handed over with everything that is sent to the agent."""
        self.name = connection.name
        self._connection = connection
        self._skills = skills
        self._graph = _graph_that_waits(connection, skills)

    async def ainvoke(self, input: _State, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        runtime = get_runtime(RequestContext)
        if runtime.context.resumed:
            # Perhaps it is this agent that waits: its graph knows, and sends what was not sent yet.
            return await self._graph.ainvoke(input, config)
        outcome = await _call(self._connection, input, runtime, self._skills)
        return await self._graph.ainvoke({**input, **outcome}, config) if outcome["waiting"] else outcome

    def invoke(self, input: _State, config: RunnableConfig | None = None, **kwargs: Any) -> NoReturn:  # noqa: A002
        raise NotImplementedError(f"The {self.name} agent is remote and can only be awaited: call ainvoke.")


def _graph_that_waits(connection: A2ARemoteAgentConnectTool, skills: SkillOffers | None) -> Graph:
    async def call(state: _State, runtime: Runtime[RequestContext]) -> dict[str, Any]:
        return await _call(connection, state, runtime, skills)

    def ask(state: _State) -> dict[str, Any]:
        waiting = state.get("waiting")
        return {"answer": interrupt(waiting["question"] if waiting else {})}

    graph = StateGraph(_State, context_schema=RequestContext, output_schema=_Result)
    graph.add_node("call", call)
    graph.add_node("ask", ask)
    graph.add_conditional_edges(START, lambda state: "ask" if state.get("waiting") else "call", ["ask", "call"])
    graph.add_conditional_edges("call", lambda state: "ask" if state.get("waiting") else END, ["ask", END])
    graph.add_edge("ask", "call")
    return graph.compile(name=connection.name)


async def _call(
    connection: A2ARemoteAgentConnectTool,
    state: _State,
    runtime: Runtime[RequestContext],
    skills: SkillOffers | None,
) -> dict[str, Any]:
    """Send what there is to say and tell what happens: the answer, or what the agent waits for."""
    delegation = delegation_of(get_config()["configurable"]["checkpoint_ns"].split("|")) or runtime.context.task_id
    thread = RemoteThread(delegation, task_id=state.get("remote_task", ""), turn=state.get("turn", 0) + 1)
    context = replace(
        runtime.context,
        approvals=(*state.get("approvals", ()), *runtime.context.approvals),
        step=state.get("step"),
        skills=None if skills is None else await skills.handed_over(runtime.context),
    )
    answer = ""
    sent = connection.stream(_message(state), context, thread)
    async with aclosing(_with_outcomes(sent, AgentStarted(connection.name, delegation), thread)) as events:
        async for event in events:
            match event:
                case FinalResult(text=text, limit=limit):
                    answer = handed_back(text, cut_reason_of(limit))
                    if limit and cut_reason_of(limit) is None:
                        runtime.stream_writer(LimitReached(limit))
                case InputRequired(forms=forms):
                    # It asks for one thing at a time; what else it needs it asks for afterwards.
                    return {
                        "agent": connection.name,
                        "remote_task": thread.task_id,
                        "turn": thread.turn,
                        "waiting": _waiting(forms[0], connection.name),
                    }
                case Failed(message=message):
                    raise RemoteAgentError(message, "agent")
                case Canceled(message=message):
                    stopped = f"The {connection.name} agent was stopped before it had an answer. {message}".rstrip()
                    raise RemoteAgentError(stopped, "agent")
                case _:
                    runtime.stream_writer(RemoteEvent(event, delegation))
    return {"messages": [AIMessage(answer)], "waiting": None}


async def _with_outcomes(
    events: AsyncGenerator[Event], agent: AgentStarted, thread: RemoteThread
) -> AsyncGenerator[Event]:
    """The events of an agent's run. If the connection is lost, the error says what was seen of the run's outcomes."""
    seen: list[Event] = [agent]
    async with aclosing(events):
        try:
            async for event in events:
                if isinstance(event, AgentStarted | AgentFinished | ToolStarted | ToolFinished):
                    seen.append(replace(event, parent_call_id=event.parent_call_id or agent.call_id))
                yield event
        except RemoteAgentError as error:
            if not thread.task_id:
                raise  # the agent never got the message
            raise RemoteAgentError(f"{error} {report(outcomes_of(seen))}", error.code) from error


async def waiting_remotely(graph: Graph, thread_id: str) -> list[tuple[str, str]]:
    """The remote tasks that a conversation's run waits with: the names of their agents, and their ids."""
    saver = graph.checkpointer
    if not isinstance(saver, BaseCheckpointSaver):
        return []
    state = await graph.aget_state({"configurable": {"thread_id": thread_id}})
    found = []
    for task in state.tasks:
        # A graph that a tool calls is not among those that LangGraph can list; its state is kept under the call.
        place = {"thread_id": thread_id, "checkpoint_ns": f"{task.name}:{task.id}"}
        if task.interrupts and (kept := await saver.aget_tuple({"configurable": place})) is not None:
            values = kept.checkpoint["channel_values"]
            if values.get("waiting") and values.get("remote_task"):
                found.append((str(values["agent"]), str(values["remote_task"])))
    return found


def _waiting(form: Form, agent: str) -> _Waiting:
    # Another's regular expression may take for ever; the agent checks the value itself and asks again.
    fields = tuple(
        replace(field, rules=replace(field.rules, pattern=None)) if field.rules else field for field in form.fields
    )
    # What is approved for good is approved for the agent that asks, whatever name it writes into its form.
    requests = tuple({**request, "agent": agent} for request in form.action_requests)
    form = replace(form, fields=fields, agent=agent, action_requests=requests)
    return {"question": question_data(form), "form_id": form.form_id, "in_words": form.fields == (PLAIN_REPLY,)}


def _message(state: _State) -> list[Part]:
    """The question, or the answer to what the agent asked: as data and, for agents that read only words, in words."""
    waiting, said = state.get("waiting"), state.get("answer")
    if not waiting or said is None:
        return [Part(text=str(state["messages"][-1].text))]
    answer = read_answer(said)
    words = [Part(text=text)] if answer is not None and (text := answer_text(answer)) else []
    if waiting["in_words"] and words:
        return words
    data = Part()
    set_value(data.data, {"resume": {"form_id": waiting["form_id"], **said}})
    return [data, *words]
