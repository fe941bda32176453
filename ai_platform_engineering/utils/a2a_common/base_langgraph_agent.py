"""Runs a LangGraph graph as an agent: each question is a `GraphRun`, which yields the events of the run."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Durability, StreamMode

from ai_platform_engineering.approvals.grants import GRANTS, granted_by
from ai_platform_engineering.events import Canceled, Event, Failed, Form, InputRequired, TextDelta
from ai_platform_engineering.forms.answers import Answer, answer_data, with_decision_id
from ai_platform_engineering.forms.replies import ask_later
from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.graphs.interrupted_run import complete_conversation
from ai_platform_engineering.graphs.stored_run import StoredRun, stored_run
from ai_platform_engineering.graphs.untrusted import TAINT
from ai_platform_engineering.graphs.work_failures import NotDoneError, UnfinishedWorkError
from ai_platform_engineering.graphs.workflow_step import STEP
from ai_platform_engineering.runs.failures import failure_of, log_failure
from ai_platform_engineering.runs.outcomes import NOTHING_RECORDED, START_OVER, InterruptedRun, explained
from ai_platform_engineering.runs.questions import interrupt_of, number_of
from ai_platform_engineering.runs.translation import (
    STREAM_MODES,
    WITHOUT_TOKENS,
    ModelTurnObserver,
    Translation,
    ignore_model_turn,
)
from ai_platform_engineering.storage.checkpoints.fencing import FencedRun
from ai_platform_engineering.storage.event_log.event_log import SupersededError
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.checkpointer import (
    forget,
    is_persistent,
    release,
    settle,
    store_problem,
    until_stored,
)
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)


class ConversationGoneError(ReadableError):
    """The answer to a form came after the checkpoint of its conversation was deleted."""

    def __init__(self) -> None:
        super().__init__("The conversation that waited for this answer is no longer stored, so it cannot continue.")


class ConversationUnreadableError(ReadableError):
    """The answer to a form came while the store of its conversation cannot be used."""

    def __init__(self, store_problem: str) -> None:
        super().__init__(
            f"The answer was not used, because the conversation cannot be read now. {store_problem} Answer again later."
        )


class RunGoneError(ReadableError):
    """The server died during a run, and no checkpoint has it."""

    def __init__(self, store_problem: str | None = None) -> None:
        super().__init__(
            "The work was interrupted, and its conversation was not stored, so it cannot continue."
            + (f" {store_problem}" if store_problem else "")
        )


class NoCheckpointerError(ReadableError):
    """The run asks a person, but there is no checkpoint from which an answer could resume it."""

    def __init__(self) -> None:
        super().__init__(
            "A form cannot be answered here, because LANGGRAPH_DEV is set and no conversation is stored. That setting "
            "is for LangGraph Studio only: start the server without it, then ask again."
        )


@dataclass(frozen=True, slots=True)
class Resumption:
    """The answer to a form, which resumes a waiting run. `history` has the run's events so far.

    `decision_id` is that of the recorded decision, if the form is an approval.
    """

    form: Form
    answer: Answer
    history: Sequence[Event]
    decision_id: str = ""


class GraphRun:
    """One run of a graph, for a question or for the answer to a form."""

    def __init__(
        self,
        graph: Graph,
        agent: str,
        work: str | Resumption,
        context: RequestContext,
        begun: Sequence[Event] | None = None,
        on_model_turn: ModelTurnObserver = ignore_model_turn,
    ) -> None:
        """`begun` has the events of the run so far, if another process began it and this one continues it."""
        self._graph = graph
        self._work = work
        self._begun = begun
        resumed = work if isinstance(work, Resumption) else None
        self._granted = granted_by(resumed.form, resumed.answer) if resumed else ()
        history = [*(resumed.history if resumed else ()), *(begun or ())]
        self._events: list[Event] = [event for event in history if not isinstance(event, TextDelta)]
        self._translation = Translation(
            agent,
            own_text=context.stream_text,
            agent_text=context.stream_sub_agent_text,
            history=history,
            answered=resumed.form if resumed else None,
            on_model_turn=on_model_turn,
        )
        self._context = context
        if resumed or begun is not None:
            self._context = replace(
                context,
                approvals=(*context.approvals, *self._granted),
                resumed=True,
                answers_form=resumed is not None,
                started_calls=self._translation.started_calls if begun is not None else frozenset(),
            )

    async def events(self) -> AsyncIterator[Event]:
        """Yield the events as they happen, the ending last. A cancelled run yields no end; `canceled` has it.

        Raises `SupersededError` if another process has claimed the run, which then belongs to that process.
        """
        try:
            stored = await self._stored()
            if stored is not None:
                for event in self._translation.continue_from(stored.progress):
                    self._note(event)
                    yield event
            async for part in self._graph.astream(
                await self._input(stored),
                self._config,
                context=self._context,
                stream_mode=self._stream_modes,
                subgraphs=True,
                version="v2",
                durability=self._durability,
            ):
                for event in self._translation.feed(part):
                    self._note(event)
                    yield event
        except ConversationUnreadableError as error:
            yield self._asked_again(error)
            return
        except SupersededError:
            raise
        except Exception as error:  # every failure of a graph becomes an event
            ending = self._failure(error)
        else:
            ending = [*self._explained(self._translation.conclude(), "Ask again.")]
            if isinstance(ending[-1], InputRequired) and not self._graph.checkpointer:
                ending[-1:] = self._explained(self._translation.fail(NoCheckpointerError()))
        if waits := isinstance(ending[-1], InputRequired):
            # Saved before the form is shown, so that it can be answered even if this process dies.
            await self._settle(ending[-1])
        for event in ending:
            yield event
        if not waits:
            await self._settle(ending[-1])

    def _failure(self, error: Exception) -> list[Event]:
        """The last events of a run whose graph failed."""
        log_failure(logger, self._context.trace_id, failure_of(error))
        ending = [*self._translation.fail(error)]
        if isinstance(error, UnfinishedWorkError | NotDoneError):  # their texts name the completed work
            return ending
        return [*self._explained(ending, START_OVER if isinstance(error, ConversationGoneError) else "")]

    def _note(self, event: Event) -> None:
        if not isinstance(event, TextDelta):
            self._events.append(event)

    async def _stored(self) -> StoredRun | None:
        """How far another process has brought this run; None if it begins here."""
        if self._begun is None:
            return None
        while True:
            if (problem := store_problem(self._graph)) is not None:
                logger.warning(
                    "%s: the run is resumed when its conversation can be read. %s", self._context.trace_id, problem
                )
                await until_stored(self._graph)
            stored = await stored_run(self._graph, self._context.context_id, self._context.task_id)
            if store_problem(self._graph) is None:
                return stored

    async def _input(self, stored: StoredRun | None) -> dict[str, Any] | Command[Any] | None:
        """The graph's input; None to continue from its checkpoint."""
        if isinstance(self._work, Resumption):
            return await self._answer(self._work, stored)
        if stored is not None and stored.has_question:
            return None
        if self._translation.started_calls:
            # Without a checkpoint the run would start over, and repeat these calls.
            raise RunGoneError(store_problem(self._graph))
        question: dict[str, Any] = {"messages": [HumanMessage(self._work, id=self._context.task_id or None)]}
        delegated = {STEP: self._context.step, TAINT: self._context.taint}
        return question | {key: value for key, value in delegated.items() if value}

    async def _answer(self, work: Resumption, stored: StoredRun | None) -> Command[Any] | None:
        if not self._graph.checkpointer:  # the form was opened by a server with a checkpointer
            raise NoCheckpointerError
        interrupt_id = interrupt_of(work.form)
        if stored is None:
            state = await self._graph.aget_state(self._config)
            is_open = interrupt_id in {interrupt.id for interrupt in state.interrupts}
        else:
            is_open = interrupt_id in stored.interrupts
            is_answered = stored.answers.get(interrupt_id, 0) >= number_of(work.form)
            if is_answered or (stored.has_question and not is_open):
                self._drop_questions()
                return None
        if not is_open:
            # LangGraph ignores an answer to an unknown interrupt, and would ask again.
            if (problem := store_problem(self._graph)) is not None:
                raise ConversationUnreadableError(problem)
            raise ConversationGoneError
        self._drop_questions()
        resume = {interrupt_id: with_decision_id(answer_data(work.answer), work.decision_id)}
        return Command(resume=resume, update={GRANTS: [*self._granted]} if self._granted else None)

    def _asked_again(self, error: ConversationUnreadableError) -> InputRequired:
        """The open forms once more. Nothing has run, so they can still be answered."""
        work = self._work
        if not isinstance(work, Resumption) or not isinstance(last := work.history[-1], InputRequired):
            raise error
        return InputRequired(ask_later(last.forms, work.form, work.answer, str(error)).forms)

    def _drop_questions(self) -> None:
        """The form is answered now; an open call is running again."""
        self._events = [event for event in self._events if not isinstance(event, InputRequired)]

    @property
    def _config(self) -> RunnableConfig:
        thread = {"thread_id": self._context.context_id}
        if self._context.epoch is None:
            return {"configurable": thread}
        run = FencedRun(self._context.task_id, self._context.epoch)
        return {"configurable": thread | run.configurable()}

    @property
    def _stream_modes(self) -> list[StreamMode]:
        # Tokens that no caller gets would cost a third of a short run.
        streams_text = self._context.stream_text or self._context.stream_sub_agent_text
        return STREAM_MODES if streams_text else WITHOUT_TOKENS

    @property
    def _durability(self) -> Durability | None:
        if not self._graph.checkpointer:
            return None
        # Only a run with a ledger of effects is resumed after its process died, and needs a checkpoint of every step.
        return "sync" if self._context.effects is not None else "exit"

    async def _settle(self, ending: Event) -> None:
        thread_id, is_delegated = self._context.context_id, self._context.delegated
        try:
            if isinstance(ending, Failed):
                await abandon(self._graph, self.interrupted, for_good=is_delegated)
            elif is_delegated and not isinstance(ending, InputRequired):
                await forget(self._graph, thread_id)
            else:
                await settle(self._graph, thread_id)
        except Exception:  # the answer was sent; the next run trims the conversation
            logger.exception("%s: the conversation could not be trimmed", self._context.trace_id)

    def canceled(self, by: str = "user") -> Iterator[Event]:
        """The last events of a run that a person canceled: the ends of open calls, then `Canceled`."""
        return self._explained(self._translation.cancel(by))

    def failed(self, error: Exception) -> Iterator[Event]:
        """The last events of a run that was stopped from outside: the ends of open calls, then `Failed`."""
        return self._explained(self._translation.fail(error), NOTHING_RECORDED)

    @property
    def interrupted(self) -> InterruptedRun:
        """The run with its events so far, for a run that was stopped."""
        return InterruptedRun(self._context.context_id, self._context.task_id, tuple(self._events))

    def _explained(self, events: Iterable[Event], otherwise: str = "") -> Iterator[Event]:
        """The last events of a run. A failure or cancellation names the calls that were completed."""
        for event in events:
            yield explained(event, self._events, otherwise) if isinstance(event, Failed | Canceled) else event


class BaseLangGraphAgent:
    """A named agent. `graph` is called for every run, so that a rebuilt graph serves the next question. It gets the
    context of the run, or None where any graph of the agent will do."""

    def __init__(
        self,
        name: str,
        graph: Callable[[RequestContext | None], Graph],
        on_model_turn: ModelTurnObserver = ignore_model_turn,
    ) -> None:
        self.name = name
        self._graph = graph
        self._on_model_turn = on_model_turn

    def run(self, work: str | Resumption, context: RequestContext, begun: Sequence[Event] | None = None) -> GraphRun:
        return GraphRun(self._graph(context), self.name, work, context, begun, self._on_model_turn)

    @property
    def persists(self) -> bool:
        """Whether the graph's checkpoints survive the process."""
        return is_persistent(self._graph(None))

    async def abandon(self, run: InterruptedRun, context: RequestContext) -> None:
        """Complete the conversation of a stopped run, and drop its open forms."""
        await self.release(run, for_good=context.delegated)

    async def release(self, run: InterruptedRun, *, for_good: bool) -> None:
        """Like `abandon`, for a run without a request. `for_good` deletes the conversation."""
        await abandon(self._graph(None), run, for_good=for_good)


async def abandon(graph: Graph, run: InterruptedRun, *, for_good: bool) -> None:
    """Complete the conversation of a run that ended without an answer: keep its results, drop its open forms."""
    if not for_good:
        await complete_conversation(graph, run)
    await release(graph, run.context_id, for_good=for_good)
