"""A LangGraph graph that can be asked over A2A: every question is a `Run`, and a run is a sequence of events."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Durability

from ai_platform_engineering.events import Event
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.checkpointer import settle
from ai_platform_engineering.utils.graphs.agent_graph import Graph
from ai_platform_engineering.utils.runs.failures import failure_of
from ai_platform_engineering.utils.runs.translation import STREAM_MODES, Translation

logger = logging.getLogger(__name__)


class Run:
    """One question on its way through a graph."""

    def __init__(self, graph: Graph, agent: str, question: str, context: RequestContext) -> None:
        self._graph = graph
        self._question = question
        self._context = context
        self._translation = Translation(agent, own_text=context.stream_text, agent_text=context.stream_sub_agent_text)

    async def events(self) -> AsyncIterator[Event]:
        """The events as they happen, the ending last. When cancelled, it only stops; `canceled` has the rest."""
        config: RunnableConfig = {"configurable": {"thread_id": self._context.context_id}}
        try:
            async for part in self._graph.astream(
                {"messages": [HumanMessage(self._question)]},
                config,
                context=self._context,
                stream_mode=STREAM_MODES,
                subgraphs=True,
                version="v2",
                durability=self._durability,
            ):
                for event in self._translation.feed(part):
                    yield event
        except Exception as error:  # every failure of a graph becomes an event
            failure = failure_of(error)
            logger.warning("%s: %s", self._context.trace_id, failure.sentence, exc_info=failure.code == "internal")
            for event in self._translation.fail(error):
                yield event
        else:
            for event in self._translation.conclude():
                yield event
        await self._settle()

    @property
    def _durability(self) -> Durability | None:
        # The run's state is needed when it ends or waits, not at every step: a run that dies is not continued.
        return "exit" if self._graph.checkpointer else None

    async def _settle(self) -> None:
        try:
            await settle(self._graph, self._context.context_id, for_good=self._context.delegated)
        except Exception:  # the answer is out; what is too much is dropped after the next one
            logger.exception("%s: the conversation could not be trimmed", self._context.trace_id)

    def canceled(self, by: str = "user") -> Iterator[Event]:
        """What is left to say about a run that a person stopped: the ends of what was open, then the cancel itself."""
        return self._translation.cancel(by)

    def failed(self, error: Exception) -> Iterator[Event]:
        """What is left to say about a run that was broken off from outside."""
        return self._translation.fail(error)


class BaseLangGraphAgent:
    """An agent by name. The graph is asked for at every run, so that a rebuilt one serves the next question."""

    def __init__(self, name: str, graph: Callable[[], Graph]) -> None:
        self.name = name
        self._graph = graph

    def run(self, question: str, context: RequestContext) -> Run:
        return Run(self._graph(), self.name, question, context)
