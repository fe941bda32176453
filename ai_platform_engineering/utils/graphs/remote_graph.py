"""The graph that stands for a remote agent: one node that passes the question on and the agent's events through."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime

from ai_platform_engineering.events import Canceled, Failed, FinalResult, InputRequired
from ai_platform_engineering.utils.a2a_common.a2a_remote_agent_connect import (
    A2ARemoteAgentConnectTool,
    RemoteAgentError,
)
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.graphs.agent_graph import Graph
from ai_platform_engineering.utils.runs.translation import LimitReached, RemoteEvent, delegation_of


class _State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def remote_graph(connection: A2ARemoteAgentConnectTool) -> Graph:
    async def call(state: _State, runtime: Runtime[RequestContext]) -> dict[str, Any]:
        namespace = get_config()["configurable"]["checkpoint_ns"]
        delegation = delegation_of(namespace.split("|")) or runtime.context.task_id
        question = str(state["messages"][-1].text)
        answer = ""
        async for event in connection.stream(question, runtime.context, delegation=delegation):
            match event:
                case FinalResult(text=text, limit=limit):
                    answer = text
                    if limit:
                        runtime.stream_writer(LimitReached(limit))
                case InputRequired(forms=forms):
                    answer = "\n".join(form.description or form.response or form.title for form in forms)
                case Failed(message=message):
                    raise RemoteAgentError(message, "agent")
                case Canceled():
                    raise RemoteAgentError(f"The {connection.name} agent was stopped before it had an answer.", "agent")
                case _:
                    runtime.stream_writer(RemoteEvent(event))
        return {"messages": [AIMessage(answer)]}

    graph = StateGraph(_State, context_schema=RequestContext)
    graph.add_node("call", call)
    graph.add_edge(START, "call")
    graph.add_edge("call", END)
    return graph.compile(name=connection.name)
