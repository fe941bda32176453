"""Translates the parts of a graph's stream into the events of a run.

`graph.astream(..., stream_mode=STREAM_MODES, subgraphs=True, version="v2")` yields tokens (`messages`), starts and ends
of nodes with their results (`tasks`), and values that nodes write themselves (`custom`). A tool call is a task of the
tools node. The id of that task is the call id; the namespace of a delegated graph contains the same id, which
distinguishes parallel calls of one agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langgraph.types import StreamMode

from ai_platform_engineering.call_ledger import CallLedger, LedgerCall
from ai_platform_engineering.compat.agent_middleware import AGENT_ARGUMENT, DELEGATION_TOOL
from ai_platform_engineering.compat.langgraph import (
    MODEL_NODE,
    NODE_KEY,
    TOOLS_NODE,
    is_task_start,
    outer_task_id,
    token_task_id,
    tool_call_of,
)
from ai_platform_engineering.events import (
    SUPERVISOR,
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    Failed,
    FinalResult,
    Form,
    InputRequired,
    MessageEnded,
    PlanUpdated,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.llm.finish_reasons import cut_reason
from ai_platform_engineering.llm.guarded_call import RetryNotice
from ai_platform_engineering.runs.answers import structured_text
from ai_platform_engineering.runs.emitted_texts import EmittedTexts, StreamedText, streamed_as
from ai_platform_engineering.runs.failures import failure_of, short_reason
from ai_platform_engineering.runs.plan import PLAN_TOOL, Plan
from ai_platform_engineering.runs.questions import Questions
from ai_platform_engineering.runs.skill_calls import skill_of
from ai_platform_engineering.runs.stored_progress import StoredCall, StoredProgress, StoredTurn

STREAM_MODES: Final[list[StreamMode]] = ["messages", "tasks", "custom"]
WITHOUT_TOKENS: Final[list[StreamMode]] = ["tasks", "custom"]
"""The stream modes of a run whose text is not streamed."""
UNKNOWN_AGENT = "unknown"

Part = Mapping[str, Any]

ModelTurnObserver = Callable[[str, bool], None]
"""Gets the agent of a model turn that has ended, and whether it succeeded."""


def ignore_model_turn(_agent: str, _ok: bool) -> None:
    pass


@dataclass(frozen=True, slots=True)
class RemoteEvent:
    """Stream value: an event of a remote agent's own run, and the call id of the delegation to that agent."""

    event: Event
    delegation: str


@dataclass(frozen=True, slots=True)
class LimitReached:
    """Stream value of a graph that ends with an early answer because of a limit."""

    limit: str


@dataclass(frozen=True, slots=True)
class _FinalAnswer:
    text: str
    message_id: str
    cut: str | None = None


class Translation:
    """Translates one run of the graph of `agent` into events.

    `own_text` and `agent_text` enable the text events of the graph's own model and of delegated agents.
    """

    def __init__(
        self,
        agent: str,
        *,
        own_text: bool = True,
        agent_text: bool = False,
        history: Iterable[Event] = (),
        answered: Form | None = None,
        on_model_turn: ModelTurnObserver = ignore_model_turn,
    ) -> None:
        """For a resumed run, `history` has the events before the form, and `answered` is that form."""
        self._agent = agent
        self._own_text = own_text
        self._agent_text = agent_text
        self._on_model_turn = on_model_turn
        self._ledger = CallLedger()
        self._plan = Plan()
        self._plan_calls: dict[str, Mapping[str, Any]] = {}
        self._streams: dict[str, dict[str, StreamedText]] = {}
        """By the task id of a model turn, then by the id of the provider's chunks."""
        self._open_messages: dict[str, tuple[str, str | None]] = {}
        self._gathered: list[tuple[str, str]] = []
        self._answer: _FinalAnswer | None = None
        self._limit: str | None = None
        self._questions = Questions()
        self._emitted_plan: PlanUpdated | None = None
        self._texts = EmittedTexts()
        for event in history:
            self._restore(event)
        if answered is not None:
            self._questions.answered(answered)

    def feed(self, part: Part) -> Iterator[Event]:
        """The events of one part of the stream."""
        # The id of a delegation's task is its call id.
        parent = outer_task_id(part["ns"])
        data = part["data"]
        match part["type"]:
            case "messages":
                yield from self._token(data[0], data[1], parent)
            case "tasks" if is_task_start(data):
                yield from self._task_started(data, parent)
            case "tasks":
                yield from self._task_ended(data, parent)
            case "custom":
                yield from self._custom(data, parent)

    @property
    def started_calls(self) -> frozenset[str]:
        """The ids of the calls that were announced so far."""
        return self._ledger.seen

    def continue_from(self, progress: StoredProgress) -> Iterator[Event]:
        """Bring the events up to date with the checkpoints from which the graph continues."""
        if self._plan.steps and self._plan.event() != self._emitted_plan:
            yield self._plan.event()  # the process died between the end of a delegation and the plan that follows it
        if (plan := progress.plan) is not None and {str(step["content"]) for step in plan["steps"]} != {
            step.title for step in self._plan.steps
        }:
            yield from self._replan(self._plan.rewritten(str(plan.get("title") or ""), plan["steps"]))
        turn = progress.turn
        streamed = None if turn is None else self._texts.of_turn(turn, None)
        if turn is not None and streamed is not None and turn.tool_calls and not self._was_ended(streamed):
            yield from self._message_ended(turn, streamed, None)  # a message ends before its calls begin
        announced = self._ledger.seen
        for step in progress.steps:
            if isinstance(step, StoredTurn):
                yield from self._agent_turn(step)
            elif step.call_id not in announced and step.call["name"] != PLAN_TOOL:
                start = {"name": TOOLS_NODE, "id": step.call_id, "input": step.call}
                yield from self._task_started(start, step.parent_call_id)
        for step in reversed(progress.steps):
            if isinstance(step, StoredCall) and step.result is not None and self._ledger.get(step.call_id) is not None:
                yield from self._call_ended({"id": step.call_id, "result": {"messages": [step.result]}})
        self._texts.resume(self._open_messages.keys())
        if (
            turn is not None
            and streamed is not None
            and (progress.is_over or streamed.message_id in self._open_messages)
        ):
            yield from self._message_ended(turn, streamed, None)
        for message_id in [message_id for message_id, (_, parent) in self._open_messages.items() if parent is None]:
            yield from self._end_message(message_id)

    def _agent_turn(self, turn: StoredTurn) -> Iterator[Event]:
        """Emit the text of a delegated agent's turn that the history lacks: its model is not called again for it."""
        if not self._emits_text(turn.delegation):
            return
        streamed = self._texts.of_turn(turn.message, turn.delegation)
        if not self._was_ended(streamed):
            yield from self._message_ended(turn.message, streamed, turn.delegation)

    def _was_ended(self, streamed: StreamedText) -> bool:
        """Whether the history has the whole message."""
        return streamed.message_id in self._texts and streamed.message_id not in self._open_messages

    def conclude(self) -> Iterator[Event]:
        """The last events of a graph that has ended, or that waits for a form."""
        if forms := self._questions.forms(self._ledger):
            yield from self._end_all_messages()
            yield InputRequired(forms)
            return
        yield from self._close("stopped")
        if self._answer is None or not self._answer.text.strip():
            yield Failed("empty_answer", "The model ended without an answer.", self._partial())
            return
        yield from self._replan(self._plan.answered())
        yield FinalResult(self._answer.text, self._answer.message_id, self._answer.cut or self._limit)

    def fail(self, error: BaseException) -> Iterator[Event]:
        """The last events of a graph that has raised an exception."""
        failure = failure_of(error)
        yield from self._close("stopped")
        yield Failed(failure.code, failure.sentence, self._partial())

    def cancel(self, by: str = "user") -> Iterator[Event]:
        """The last events of a run that was canceled."""
        yield from self._close("canceled")
        yield Canceled(by)

    def _token(self, message: BaseMessage, metadata: Mapping[str, Any], parent: str | None) -> Iterator[Event]:
        # Complete messages are ignored here: they come again with the end of the model turn's task.
        if metadata.get(NODE_KEY) != MODEL_NODE or not isinstance(message, AIMessageChunk):
            return
        if not self._emits_text(parent) or not (text := str(message.text)):
            return
        streams = self._streams.setdefault(token_task_id(metadata), {})
        chunk_id = str(message.id)
        stream = streams.setdefault(chunk_id, StreamedText(chunk_id))
        section = stream.visible.section
        shown = stream.visible.feed(text)
        if stream.visible.section != section:
            yield from self._end_message(stream.message_id)
            stream.message_id, stream.text = f"{chunk_id}-{stream.visible.section}", ""
        if shown:
            stream.text += shown
            yield from self._delta(stream.message_id, shown, parent)

    def _emits_text(self, parent: str | None) -> bool:
        if parent is None:
            return self._own_text
        # After a kill, an agent whose end was emitted, but not stored, writes its answer again.
        return self._agent_text and not self._ledger.has_ended(parent)

    def _delta(self, message_id: str, text: str, parent: str | None) -> Iterator[Event]:
        if not text or not self._emits_text(parent):
            return
        agent = self._agent_of(parent)
        self._open_messages[message_id] = (agent, parent)
        yield TextDelta(agent, message_id, text, parent, self._texts.superseded_by(message_id, parent))

    def _task_started(self, task: Mapping[str, Any], parent: str | None) -> Iterator[Event]:
        if task["name"] != TOOLS_NODE or (tool_call := tool_call_of(task["input"])) is None:
            return
        name, arguments = str(tool_call["name"]), tool_call.get("args") or {}
        # Only the supervisor plans and delegates. An agent's server may offer tools of the same names.
        is_supervisor = parent is None and self._agent == SUPERVISOR
        if is_supervisor and name == PLAN_TOOL:
            self._plan_calls[task["id"]] = arguments
        elif is_supervisor and name == DELEGATION_TOOL:
            agent = str(arguments.get(AGENT_ARGUMENT) or UNKNOWN_AGENT)
            step = self._plan.step_for(agent)
            step_id = step.id if step else None
            yield from self._ledger.start(LedgerCall(task["id"], agent, plan_step_id=step_id))
            yield from self._replan(self._plan.delegation_started(step_id))
        else:
            step_id = self._ledger[parent].plan_step_id if parent and self._ledger.get(parent) else None
            skill = skill_of(name, arguments)
            yield from self._ledger.start(LedgerCall(task["id"], self._agent_of(parent), name, parent, step_id, skill))

    def _task_ended(self, task: Mapping[str, Any], parent: str | None) -> Iterator[Event]:
        # An interrupt ends the task of a call, but not the call.
        if interrupts := task.get("interrupts"):
            self._questions.add(task["id"], interrupts, parent, self._agent_of(parent))
            return
        if task["name"] == TOOLS_NODE:
            yield from self._call_ended(task)
        elif task["name"] == MODEL_NODE:
            streams = [*self._streams.pop(task["id"], {}).values()]
            ok = task.get("error") is None
            self._on_model_turn(self._agent_of(parent), ok)
            if ok:
                yield from self._model_ended(task["result"] or {}, streams, parent)

    def _call_ended(self, task: Mapping[str, Any]) -> Iterator[Event]:
        result = _tool_message(task.get("result"))
        ok = task.get("error") is None and (result is None or result.status != "error")
        if (arguments := self._plan_calls.pop(task["id"], None)) is not None:
            if ok:
                yield from self._replan(self._plan.rewritten(str(arguments.get("title") or ""), arguments["steps"]))
            return
        call = self._ledger.get(task["id"])
        if call is None:
            return
        yield from self._end_messages(task["id"])
        yield from self._ledger.finish(task["id"], ok, None if ok else _reason(result))
        if call.tool is None:
            if ok and result is not None:
                self._gathered.append((call.agent, str(result.text)))
            yield from self._replan(self._plan.delegation_finished(call.plan_step_id, call.agent, ok))
        elif ok and call.parent_call_id is None:
            self._plan = self._plan.own_tool_succeeded()

    def _model_ended(
        self, result: Mapping[str, Any], streams: Sequence[StreamedText], parent: str | None
    ) -> Iterator[Event]:
        for message in result.get("messages") or ():
            if isinstance(message, AIMessage):
                yield from self._message_ended(message, streamed_as(message, streams), parent)
        # A turn may have called the model twice. The text of the first call is not part of the answer.
        for stream in streams:
            yield from self._end_message(stream.message_id)
        if parent is None and (structured := result.get("structured_response")) is not None:
            yield from self._structured_answer(structured, result)

    def _message_ended(self, message: AIMessage, streamed: StreamedText, parent: str | None) -> Iterator[Event]:
        """Emit the rest of the text (of a model without streaming, or text added after the stream), then end the
        message."""
        message_id, text = streamed.message_id, str(message.text)
        if text.startswith(streamed.text):
            if rest := text[len(streamed.text) :]:
                yield from self._delta(message_id, rest, parent)
        else:
            yield from self._end_message(message_id)
            message_id = f"{message_id}-final"
            yield from self._delta(message_id, text, parent)
        yield from self._end_message(message_id)
        if parent is None and not message.tool_calls:
            self._answer = _FinalAnswer(text, message_id, cut_reason(message))

    def _structured_answer(self, structured: Any, result: Mapping[str, Any]) -> Iterator[Event]:
        text = structured_text(structured)
        message_id = next(
            (f"{m.id}-answer" for m in result.get("messages") or () if isinstance(m, AIMessage)), "answer"
        )
        yield from self._delta(message_id, text, None)
        yield from self._end_message(message_id)
        self._answer = _FinalAnswer(text, message_id)

    def _custom(self, data: Any, parent: str | None) -> Iterator[Event]:
        match data:
            case RetryNotice(text, message_id):
                yield from self._delta(message_id, text, parent)
                yield from self._end_message(message_id)
            case LimitReached(limit):
                self._limit = limit
            case RemoteEvent(event, delegation):
                yield from self._remote(event, delegation)

    def _remote(self, event: Event, delegation: str) -> Iterator[Event]:
        """An event of a remote agent's run, with the delegation as its parent, as for an in-process agent."""
        call = self._ledger.get(delegation)
        if call is None:
            return
        match event:
            case ToolStarted() | AgentStarted():
                parent = event.parent_call_id or delegation
                inner = replace(LedgerCall.of(event), parent_call_id=parent, plan_step_id=call.plan_step_id)
                yield from self._ledger.start(inner)
            case ToolFinished() | AgentFinished():
                yield from self._ledger.finish(event.call_id, event.ok, event.reason)
            case TextDelta():
                yield from self._delta(event.message_id, self._texts.rest(event, delegation), delegation)
            case MessageEnded():
                yield from self._end_message(event.message_id)

    def _restore(self, event: Event) -> None:
        """Take over an event from before the resume: it is not emitted again, but its end will be."""
        if isinstance(event, AgentStarted | ToolStarted):
            self._texts.call_started(event.parent_call_id)
        match event:
            case TextDelta(message_id=message_id, parent_call_id=parent):
                self._texts.add(event)
                self._open_messages[message_id] = (event.agent, parent)
            case MessageEnded(message_id=message_id):
                self._open_messages.pop(message_id, None)
            case AgentStarted(parent_call_id=parent):
                self._ledger.record(event)
                if parent is None:
                    self._plan = self._plan.delegation_started(event.plan_step_id)
            case AgentFinished(parent_call_id=parent):
                self._ledger.record(event)
                if parent is None:
                    self._plan = self._plan.delegation_finished(event.plan_step_id, event.agent, event.ok)
            case ToolStarted() | ToolFinished():
                self._ledger.record(event)
                if isinstance(event, ToolFinished) and event.ok and event.parent_call_id is None:
                    self._plan = self._plan.own_tool_succeeded()
            case PlanUpdated():
                self._plan = self._plan.restored(event)
                self._emitted_plan = event
            case InputRequired(forms):
                self._questions.restore(forms)

    def _replan(self, plan: Plan) -> Iterator[Event]:
        changed = plan.steps != self._plan.steps or plan.title != self._plan.title
        self._plan = plan
        if changed:
            yield plan.event()

    def _end_message(self, message_id: str) -> Iterator[Event]:
        if (opened := self._open_messages.pop(message_id, None)) is not None:
            agent, parent = opened
            yield MessageEnded(agent, message_id, parent)

    def _end_messages(self, parent: str) -> Iterator[Event]:
        for message_id in [mid for mid, (_, opened_by) in self._open_messages.items() if opened_by == parent]:
            yield from self._end_message(message_id)

    def _end_all_messages(self) -> Iterator[Event]:
        for message_id in [*self._open_messages]:
            yield from self._end_message(message_id)

    def _close(self, reason: str) -> Iterator[Event]:
        yield from self._end_all_messages()
        for event in self._ledger.close(reason):
            yield event
            # Open delegations of a failed run have failed; those of a canceled run stay unfinished.
            if isinstance(event, AgentFinished) and reason != "canceled":
                yield from self._replan(self._plan.delegation_finished(event.plan_step_id, event.agent, False))

    def _agent_of(self, parent: str | None) -> str:
        if parent is None:
            return self._agent
        call = self._ledger.get(parent)
        return call.agent if call else UNKNOWN_AGENT

    def _partial(self) -> str | None:
        return "\n\n".join(f"**{agent.title()}**\n\n{text}" for agent, text in self._gathered) or None


def _tool_message(result: Any) -> ToolMessage | None:
    messages = result.get("messages") if isinstance(result, Mapping) else None
    return next((message for message in messages or () if isinstance(message, ToolMessage)), None)


def _reason(result: ToolMessage | None) -> str:
    if result is None:
        return "it stopped unexpectedly"
    if isinstance(result.artifact, Mapping) and result.artifact.get("reason"):
        return short_reason(str(result.artifact["reason"]))
    return short_reason(str(result.text)) or "it reported an error"
