"""A LangGraph graph that can be asked over A2A: every question is a `Run`, and a run is a sequence of events."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Durability, StreamMode

from ai_platform_engineering.approvals.remembered import GRANTS, granted_by
from ai_platform_engineering.events import Canceled, Event, Failed, Form, InputRequired, TextDelta
from ai_platform_engineering.forms.answers import Answer, answer_data
from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.graphs.interrupted_run import complete_conversation
from ai_platform_engineering.graphs.undone_work import NotDoneError
from ai_platform_engineering.graphs.unfinished_work import UnfinishedWorkError
from ai_platform_engineering.graphs.workflow_step import STEP
from ai_platform_engineering.runs.failures import failure_of, log_failure
from ai_platform_engineering.runs.outcomes import NOTHING_RECORDED, START_OVER, InterruptedRun, explained
from ai_platform_engineering.runs.questions import interrupt_of
from ai_platform_engineering.runs.translation import STREAM_MODES, WITHOUT_TOKENS, Translation
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.checkpointer import release, settle
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)


class ForgottenError(ReadableError):
    """A form was answered whose conversation is gone."""

    def __init__(self) -> None:
        super().__init__("What waited for this answer was not kept, so it cannot go on.")


@dataclass(frozen=True, slots=True)
class Resumption:
    """How a run that waits goes on: the form and what a person said to it, and all that was told before."""

    form: Form
    answer: Answer
    told: Sequence[Event]


class Run:
    """One question on its way through a graph, or one answer that lets it go on."""

    def __init__(self, graph: Graph, agent: str, work: str | Resumption, context: RequestContext) -> None:
        self._graph = graph
        self._work = work
        resumed = work if isinstance(work, Resumption) else None
        self._granted = granted_by(resumed.form, resumed.answer) if resumed else ()
        self._context = context
        if resumed:
            self._context = replace(context, approvals=(*context.approvals, *self._granted), resumed=True)
        self._events: list[Event] = [*resumed.told] if resumed else []
        self._translation = Translation(
            agent,
            own_text=context.stream_text,
            agent_text=context.stream_sub_agent_text,
            told=resumed.told if resumed else (),
            answered=resumed.form if resumed else None,
        )

    async def events(self) -> AsyncIterator[Event]:
        """The events as they happen, the ending last. When cancelled, it only stops; `canceled` has the rest."""
        try:
            async for part in self._graph.astream(
                await self._input(),
                self._config,
                context=self._context,
                stream_mode=self._stream_modes,
                subgraphs=True,
                version="v2",
                durability=self._durability,
            ):
                for event in self._translation.feed(part):
                    if not isinstance(event, TextDelta):
                        self._events.append(event)
                    yield event
        except Exception as error:  # every failure of a graph becomes an event
            failure = failure_of(error)
            log_failure(logger, self._context.trace_id, failure)
            ending = [*self._translation.fail(error)]
            if not isinstance(error, UnfinishedWorkError | NotDoneError):  # these say themselves what was done
                ending = [*self._explained(ending, START_OVER if isinstance(error, ForgottenError) else "")]
        else:
            ending = [*self._explained(self._translation.conclude(), "Ask again.")]
        if waits := isinstance(ending[-1], InputRequired):
            # Once it is shown, it can be answered, whatever happens to this process.
            await self._settle(ending[-1])
        for event in ending:
            yield event
        if not waits:
            await self._settle(ending[-1])

    async def _input(self) -> dict[str, Any] | Command[Any]:
        if not isinstance(self._work, Resumption):
            asked: dict[str, Any] = {"messages": [HumanMessage(self._work, id=self._context.task_id or None)]}
            return asked | {STEP: self._context.step} if self._context.step else asked
        waiting = interrupt_of(self._work.form)
        state = await self._graph.aget_state(self._config)
        if waiting not in {interrupt.id for interrupt in state.interrupts}:
            # LangGraph would pass over an answer that nobody waits for, and ask again.
            raise ForgottenError
        # What was asked is answered now; from here on calls that are open are under way.
        self._events = [event for event in self._events if not isinstance(event, InputRequired)]
        resume = {waiting: answer_data(self._work.answer)}
        return Command(resume=resume, update={GRANTS: [*self._granted]} if self._granted else None)

    @property
    def _config(self) -> RunnableConfig:
        return {"configurable": {"thread_id": self._context.context_id}}

    @property
    def _stream_modes(self) -> list[StreamMode]:
        # Tokens that nobody will see cost a third of a short run.
        tells_text = self._context.stream_text or self._context.stream_sub_agent_text
        return STREAM_MODES if tells_text else WITHOUT_TOKENS

    @property
    def _durability(self) -> Durability | None:
        # The run's state is needed when it ends or waits, not at every step: a run that dies is not continued.
        return "exit" if self._graph.checkpointer else None

    async def _settle(self, ending: Event) -> None:
        for_good = self._context.delegated
        try:
            if isinstance(ending, Failed):
                await abandon(self._graph, self.interrupted, for_good=for_good)
            else:
                await settle(self._graph, self._context.context_id, for_good=for_good)
        except Exception:  # the answer is out; what is too much is dropped after the next one
            logger.exception("%s: the conversation could not be trimmed", self._context.trace_id)

    def canceled(self, by: str = "user") -> Iterator[Event]:
        """What is left to say about a run that a person stopped: the ends of what was open, then the cancel itself."""
        return self._explained(self._translation.cancel(by))

    def failed(self, error: Exception) -> Iterator[Event]:
        """What is left to say about a run that was broken off from outside."""
        return self._explained(self._translation.fail(error), NOTHING_RECORDED)

    @property
    def interrupted(self) -> InterruptedRun:
        """The run as far as it came, for one that is stopped."""
        return InterruptedRun(self._context.context_id, self._context.task_id, tuple(self._events))

    def _explained(self, events: Iterable[Event], otherwise: str = "") -> Iterator[Event]:
        """The last events of a run, whose end says what the run had done if it is no answer."""
        for event in events:
            yield explained(event, self._events, otherwise) if isinstance(event, Failed | Canceled) else event


class BaseLangGraphAgent:
    """An agent by name. The graph is asked for at every run, so that a rebuilt one serves the next question."""

    def __init__(self, name: str, graph: Callable[[], Graph]) -> None:
        self.name = name
        self._graph = graph

    def run(self, work: str | Resumption, context: RequestContext) -> Run:
        return Run(self._graph(), self.name, work, context)

    async def abandon(self, run: InterruptedRun, context: RequestContext) -> None:
        """A run has been stopped: its conversation goes on without it, and nothing waits in it any more."""
        await self.release(run, for_good=context.delegated)

    async def release(self, run: InterruptedRun, *, for_good: bool) -> None:
        """Like `abandon`, for a run that no request belongs to; the conversation ends with it if it is `for_good`."""
        await abandon(self._graph(), run, for_good=for_good)


async def abandon(graph: Graph, run: InterruptedRun, *, for_good: bool) -> None:
    """A run has ended without an answer: its conversation keeps what it did, and drops what it asked."""
    if not for_good:
        await complete_conversation(graph, run)
    await release(graph, run.context_id, for_good=for_good)
