"""A remote agent as a sub-agent of the supervisor: sends the request, forwards the agent's events and forms.

The request is sent without a graph, because a graph costs more than the request itself. If the agent returns a form, a
graph with two nodes takes over: `ask` interrupts until a person answers, `call` sends the answer to the agent's task.
LangGraph runs an interrupted node from its start again, so `ask` must not send anything.
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

from ai_platform_engineering.approvals.record import form_digest
from ai_platform_engineering.budgets.usage import UNREPORTED
from ai_platform_engineering.compat.langgraph import current_namespace, outer_task_id, task_namespace
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
from ai_platform_engineering.final_results import cut_reason_of
from ai_platform_engineering.forms.answers import (
    Approved,
    Rejected,
    answer_data,
    answer_text,
    read_answer,
    take_decision_id,
)
from ai_platform_engineering.forms.questions import question_data
from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.graphs.skills_offer import SkillOffers
from ai_platform_engineering.graphs.untrusted import TAINT
from ai_platform_engineering.runs.answers import with_cut_note
from ai_platform_engineering.runs.outcomes import outcomes_of, report
from ai_platform_engineering.runs.translation import LimitReached, RemoteEvent
from ai_platform_engineering.utils.a2a_common.a2a_remote_agent_connect import (
    A2ARemoteAgentConnectTool,
    RemoteAgentError,
    RemoteThread,
)
from ai_platform_engineering.utils.a2a_common.codec.foreign import PLAIN_REPLY
from ai_platform_engineering.utils.a2a_common.codec.forms import read_form
from ai_platform_engineering.utils.a2a_common.codec.values import set_value
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext


class _Waiting(TypedDict):
    """The agent's form without its id, the id, and whether the agent only reads answers in words."""

    question: Mapping[str, Any]
    form_id: str
    in_words: bool


class _State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    approvals: NotRequired[list[Mapping[str, Any]]]
    step: NotRequired[Mapping[str, Any] | None]
    taint: NotRequired[Mapping[str, Any] | None]
    agent: NotRequired[str]
    remote_task: NotRequired[str]
    turn: NotRequired[int]
    waiting: NotRequired[_Waiting | None]
    answer: NotRequired[Mapping[str, Any] | None]


class _Result(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class RemoteAgent(Runnable[_State, Any]):
    """Implements only what the delegation tool calls: LangChain's wrapper of a function would cost more than the
    request."""

    def __init__(self, connection: A2ARemoteAgentConnectTool, skills: SkillOffers | None = None) -> None:
        """`skills` are sent with every message to the agent."""
        self.name = connection.name
        self._connection = connection
        self._skills = skills
        self._graph = _form_graph(connection, skills)

    async def ainvoke(self, input: _State, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        runtime = get_runtime(RequestContext)
        if runtime.context.resumed:
            # This agent may have an open form, or may have got an answer to one: its graph has the state. A message
            # that the agent got before is sent again, and starts nothing there.
            return await self._graph.ainvoke(input, config)
        outcome = await _call(self._connection, input, runtime, self._skills)
        return await self._graph.ainvoke({**input, **outcome}, config) if outcome["waiting"] else outcome

    def invoke(self, input: _State, config: RunnableConfig | None = None, **kwargs: Any) -> NoReturn:  # noqa: A002
        raise NotImplementedError(f"The {self.name} agent is remote and can only be awaited: call ainvoke.")


def _form_graph(connection: A2ARemoteAgentConnectTool, skills: SkillOffers | None) -> Graph:
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
    """Send the message and forward the events. Returns the state update: the answer, or the form that the agent
    returned."""
    delegation = outer_task_id(current_namespace(get_config())) or runtime.context.task_id
    thread = RemoteThread(
        delegation,
        task_id=state.get("remote_task", ""),
        turn=state.get("turn", 0) + 1,
        may_have_arrived=delegation in runtime.context.started_calls,
    )
    context = replace(
        runtime.context,
        approvals=(*state.get("approvals", ()), *runtime.context.approvals),
        step=state.get("step"),
        taint=state.get(TAINT),
        skills=None if skills is None else await skills.for_delegation(runtime.context),
    )
    parts, decision = await _message(state, runtime.context, thread)
    answer = ""
    sent = _metered(connection, connection.stream(parts, replace(context, approval=decision), thread), context, thread)
    async with aclosing(_with_outcomes(sent, AgentStarted(connection.name, delegation), thread)) as events:
        async for event in events:
            match event:
                case FinalResult(text=text, limit=limit):
                    answer = with_cut_note(text, cut_reason_of(limit))
                    if limit and cut_reason_of(limit) is None:
                        runtime.stream_writer(LimitReached(limit))
                case InputRequired(forms=forms):
                    # Only the first form is shown; the agent returns the others after the answer.
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


async def _metered(
    connection: A2ARemoteAgentConnectTool, events: AsyncGenerator[Event], context: RequestContext, thread: RemoteThread
) -> AsyncGenerator[Event]:
    """The events of an agent's run. At their end, the usage that the agent has reported is counted."""
    async with aclosing(events):
        try:
            async for event in events:
                yield event
        finally:
            message = f"{thread.delegation}-{thread.turn}"
            if context.usage is None or context.is_handed_over():
                pass
            elif thread.usage is not None:
                context.usage.add_report(message, thread.usage)
            elif thread.may_have_arrived:
                context.usage.add_report(f"{message}-unreported", {f"agent {connection.name}": UNREPORTED})


async def _with_outcomes(
    events: AsyncGenerator[Event], agent: AgentStarted, thread: RemoteThread
) -> AsyncGenerator[Event]:
    """The events of an agent's run. If the connection is lost, the error lists the outcomes received so far."""
    seen: list[Event] = [agent]
    async with aclosing(events):
        try:
            async for event in events:
                if isinstance(event, AgentStarted | AgentFinished | ToolStarted | ToolFinished):
                    seen.append(replace(event, parent_call_id=event.parent_call_id or agent.call_id))
                yield event
        except RemoteAgentError as error:
            if not (thread.task_id or thread.may_have_arrived):
                raise  # the agent did not receive the message
            raise RemoteAgentError(f"{error} {report(outcomes_of(seen))}", error.code) from error


async def waiting_remotely(graph: Graph, thread_id: str) -> list[tuple[str, str]]:
    """The remote tasks with an open form in a conversation: the name of each agent, and the id of its task."""
    saver = graph.checkpointer
    if not isinstance(saver, BaseCheckpointSaver):
        return []
    state = await graph.aget_state({"configurable": {"thread_id": thread_id}})
    found = []
    for task in state.tasks:
        # LangGraph does not list graphs that a tool calls. Their state is stored in the namespace of the call.
        place = {"thread_id": thread_id, "checkpoint_ns": task_namespace(task)}
        if task.interrupts and (stored := await saver.aget_tuple({"configurable": place})) is not None:
            values = stored.checkpoint["channel_values"]
            if values.get("waiting") and values.get("remote_task"):
                found.append((str(values["agent"]), str(values["remote_task"])))
    return found


def _waiting(form: Form, agent: str) -> _Waiting:
    # A foreign regular expression may not terminate. The agent validates the value itself and asks again.
    fields = tuple(
        replace(field, rules=replace(field.rules, pattern=None)) if field.rules else field for field in form.fields
    )
    # A grant is for the agent that sent the form, whatever agent name the form contains.
    requests = tuple({**request, "agent": agent} for request in form.action_requests)
    form = replace(form, fields=fields, agent=agent, action_requests=requests)
    return {"question": question_data(form), "form_id": form.form_id, "in_words": form.fields == (PLAIN_REPLY,)}


async def _message(
    state: _State, context: RequestContext, thread: RemoteThread
) -> tuple[list[Part], Mapping[str, Any] | None]:
    """The question, or the answer to the agent's form: as data and, for agents that read text only, in words. If the
    form is an approval, also the decision for the supervisor's signature."""
    waiting, answered = state.get("waiting"), state.get("answer")
    if not waiting or answered is None:
        return [Part(text=str(state["messages"][-1].text))], None
    answered, decision_id = take_decision_id(answered)
    answer, decision = read_answer(answered), None
    if decision_id and context.approval_ledger is not None:
        decision = await context.approval_ledger.signed_facts(decision_id)
        if isinstance(answer, Approved):
            digest = form_digest(read_form(waiting["question"]))
            used = await context.approval_ledger.use(decision_id, digest, digest, thread.message_id)
            if used.refusal is not None:
                answer = Rejected(f"the call was not made: {used.refusal}")
                answered, decision = answer_data(answer), decision and {**decision, "verb": "reject"}
    words = [Part(text=text)] if answer is not None and (text := answer_text(answer)) else []
    if waiting["in_words"] and words:
        return words, decision
    data = Part()
    set_value(data.data, {"resume": {"form_id": waiting["form_id"], **answered}})
    return [data, *words], decision
