"""From the parts of a graph's stream to the events of a run.

`graph.astream(..., stream_mode=STREAM_MODES, subgraphs=True, version="v2")` tells everything once: tokens
(`messages`), starts and ends of nodes with their results (`tasks`), and what nodes say themselves (`custom`).
A tool call is a task of the node `tools`; the id of that task is the call id, and the namespace of a delegated
graph carries the same id, which keeps two parallel calls of one agent apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langgraph.types import StreamMode

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
from ai_platform_engineering.llm.guarded_call import Notice
from ai_platform_engineering.llm.thinking import VisibleText
from ai_platform_engineering.runs.answers import structured_text
from ai_platform_engineering.runs.failures import failure_of, short_reason
from ai_platform_engineering.runs.ledger import Call, CallLedger, call_of
from ai_platform_engineering.runs.plan import PLAN_TOOL, Plan
from ai_platform_engineering.runs.questions import Questions
from ai_platform_engineering.runs.skill_calls import skill_of

STREAM_MODES: Final[list[StreamMode]] = ["messages", "tasks", "custom"]
WITHOUT_TOKENS: Final[list[StreamMode]] = ["tasks", "custom"]
"""For a run whose words are told to nobody before they are whole."""
DELEGATION_TOOL = "task"
UNKNOWN_AGENT = "unknown"

_MODEL_NODE = "model"
_TOOLS_NODE = "tools"

Part = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RemoteEvent:
    """Said where a remote agent is talked to: an event of that agent's own run, and the call that it belongs to."""

    event: Event
    delegation: str


@dataclass(frozen=True, slots=True)
class LimitReached:
    """Said by a graph that wrote its answer early because of a limit."""

    limit: str


@dataclass(frozen=True, slots=True)
class _Answer:
    text: str
    message_id: str
    cut: str | None = None


@dataclass(slots=True)
class _Stream:
    """The pieces of one message of a model turn, as they arrive."""

    message_id: str
    visible: VisibleText = field(default_factory=VisibleText)
    text: str = ""


class Translation:
    """One run of one graph, seen as events. `agent` is whose graph it is; whose words are told holds for the run."""

    def __init__(
        self,
        agent: str,
        *,
        own_text: bool = True,
        agent_text: bool = False,
        told: Iterable[Event] = (),
        answered: Form | None = None,
    ) -> None:
        """`told` is what was said before the run had to wait, `answered` the form that lets it go on."""
        self._agent = agent
        self._own_text = own_text
        self._agent_text = agent_text
        self._ledger = CallLedger()
        self._plan = Plan()
        self._plan_calls: dict[str, Mapping[str, Any]] = {}
        self._streams: dict[str, dict[str, _Stream]] = {}
        """By the task of a model turn and the id that the provider's chunks carry."""
        self._open_messages: dict[str, tuple[str, str | None]] = {}
        self._gathered: list[tuple[str, str]] = []
        self._answer: _Answer | None = None
        self._limit: str | None = None
        self._questions = Questions()
        for event in told:
            self._recall(event)
        if answered is not None:
            self._questions.answered(answered)

    def feed(self, part: Part) -> Iterator[Event]:
        """The events that one part of the stream stands for."""
        parent = delegation_of(part["ns"])
        data = part["data"]
        match part["type"]:
            case "messages":
                yield from self._token(data[0], data[1], parent)
            case "tasks" if "triggers" in data:
                yield from self._task_started(data, parent)
            case "tasks":
                yield from self._task_ended(data, parent)
            case "custom":
                yield from self._said(data, parent)

    def conclude(self) -> Iterator[Event]:
        """The graph has ended by itself, or waits."""
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
        """The graph has raised."""
        failure = failure_of(error)
        yield from self._close("stopped")
        yield Failed(failure.code, failure.sentence, self._partial())

    def cancel(self, by: str = "user") -> Iterator[Event]:
        """The run was stopped from outside."""
        yield from self._close("canceled")
        yield Canceled(by)

    def _token(self, message: BaseMessage, metadata: Mapping[str, Any], parent: str | None) -> Iterator[Event]:
        # A whole message is not a piece: it comes again when the task of its turn ends.
        if metadata.get("langgraph_node") != _MODEL_NODE or not isinstance(message, AIMessageChunk):
            return
        if not self._is_wanted(parent) or not (text := str(message.text)):
            return
        streams = self._streams.setdefault(_task_of(metadata), {})
        chunk_id = str(message.id)
        stream = streams.setdefault(chunk_id, _Stream(chunk_id))
        section = stream.visible.section
        shown = stream.visible.feed(text)
        if stream.visible.section != section:
            yield from self._end_message(stream.message_id)
            stream.message_id, stream.text = f"{chunk_id}-{stream.visible.section}", ""
        if shown:
            stream.text += shown
            yield from self._delta(stream.message_id, shown, parent)

    def _is_wanted(self, parent: str | None) -> bool:
        return self._own_text if parent is None else self._agent_text

    def _delta(self, message_id: str, text: str, parent: str | None) -> Iterator[Event]:
        if not text or not self._is_wanted(parent):
            return
        agent = self._who(parent)
        self._open_messages[message_id] = (agent, parent)
        yield TextDelta(agent, message_id, text, parent)

    def _task_started(self, task: Mapping[str, Any], parent: str | None) -> Iterator[Event]:
        if task["name"] != _TOOLS_NODE or (tool_call := _tool_call(task["input"])) is None:
            return
        name, arguments = str(tool_call["name"]), tool_call.get("args") or {}
        # Only the supervisor plans and delegates; an agent's server may offer tools of these names.
        steers = parent is None and self._agent == SUPERVISOR
        if steers and name == PLAN_TOOL:
            self._plan_calls[task["id"]] = arguments
        elif steers and name == DELEGATION_TOOL:
            agent = str(arguments.get("subagent_type") or UNKNOWN_AGENT)
            step = self._plan.step_for(agent)
            step_id = step.id if step else None
            yield from self._ledger.start(Call(task["id"], agent, plan_step_id=step_id))
            yield from self._replan(self._plan.delegation_started(step_id))
        else:
            step_id = self._ledger[parent].plan_step_id if parent and self._ledger.get(parent) else None
            skill = skill_of(name, arguments)
            yield from self._ledger.start(Call(task["id"], self._who(parent), name, parent, step_id, skill))

    def _task_ended(self, task: Mapping[str, Any], parent: str | None) -> Iterator[Event]:
        # A call that waits for a person ends its task, but not the call.
        if interrupts := task.get("interrupts"):
            self._questions.note(task["id"], interrupts, parent, self._who(parent))
            return
        if task["name"] == _TOOLS_NODE:
            yield from self._call_ended(task)
        elif task["name"] == _MODEL_NODE:
            streams = [*self._streams.pop(task["id"], {}).values()]
            if task.get("error") is None:
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
        self, result: Mapping[str, Any], streams: Sequence[_Stream], parent: str | None
    ) -> Iterator[Event]:
        for message in result.get("messages") or ():
            if isinstance(message, AIMessage):
                yield from self._message_ended(message, _streamed_as(message, streams), parent)
        # A turn may have been asked twice: what was written the first time is no part of the answer.
        for stream in streams:
            yield from self._end_message(stream.message_id)
        if parent is None and (structured := result.get("structured_response")) is not None:
            yield from self._structured_answer(structured, result)

    def _message_ended(self, message: AIMessage, streamed: _Stream, parent: str | None) -> Iterator[Event]:
        """Send what was not streamed (a model that does not stream, a text completed afterwards), then close."""
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
            self._answer = _Answer(text, message_id, cut_reason(message))

    def _structured_answer(self, structured: Any, result: Mapping[str, Any]) -> Iterator[Event]:
        text = structured_text(structured)
        message_id = next(
            (f"{m.id}-answer" for m in result.get("messages") or () if isinstance(m, AIMessage)), "answer"
        )
        yield from self._delta(message_id, text, None)
        yield from self._end_message(message_id)
        self._answer = _Answer(text, message_id)

    def _said(self, data: Any, parent: str | None) -> Iterator[Event]:
        match data:
            case Notice(text, message_id):
                yield from self._delta(message_id, text, parent)
                yield from self._end_message(message_id)
            case LimitReached(limit):
                self._limit = limit
            case RemoteEvent(event, delegation):
                yield from self._remote(event, delegation)

    def _remote(self, event: Event, delegation: str) -> Iterator[Event]:
        """An event of a remote agent's run, placed below the delegation as an in-process agent's would be."""
        call = self._ledger.get(delegation)
        if call is None:
            return
        match event:
            case ToolStarted() | AgentStarted():
                parent = event.parent_call_id or delegation
                yield from self._ledger.start(call_of(event, parent, call.plan_step_id))
            case ToolFinished() | AgentFinished():
                yield from self._ledger.finish(event.call_id, event.ok, event.reason)
            case TextDelta():
                yield from self._delta(event.message_id, event.text, delegation)
            case MessageEnded():
                yield from self._end_message(event.message_id)

    def _recall(self, event: Event) -> None:
        """Know what was said already, so that it is not said again and its ends are."""
        match event:
            case AgentStarted(parent_call_id=parent):
                self._ledger.recall(event)
                if parent is None:
                    self._plan = self._plan.delegation_started(event.plan_step_id)
            case AgentFinished(parent_call_id=parent):
                self._ledger.recall(event)
                if parent is None:
                    self._plan = self._plan.delegation_finished(event.plan_step_id, event.agent, event.ok)
            case ToolStarted() | ToolFinished():
                self._ledger.recall(event)
                if isinstance(event, ToolFinished) and event.ok and event.parent_call_id is None:
                    self._plan = self._plan.own_tool_succeeded()
            case PlanUpdated():
                self._plan = self._plan.told(event)
            case InputRequired(forms):
                self._questions.recall(forms)

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
            # Work that broke off by itself has failed; work that a person stopped is merely unfinished.
            if isinstance(event, AgentFinished) and reason != "canceled":
                yield from self._replan(self._plan.delegation_finished(event.plan_step_id, event.agent, False))

    def _who(self, parent: str | None) -> str:
        if parent is None:
            return self._agent
        call = self._ledger.get(parent)
        return call.agent if call else UNKNOWN_AGENT

    def _partial(self) -> str | None:
        return "\n\n".join(f"**{agent.title()}**\n\n{text}" for agent, text in self._gathered) or None


def delegation_of(namespace: Sequence[str]) -> str | None:
    """The call id of the delegation that a part comes from, or None for the run's own graph."""
    if not namespace:
        return None
    return namespace[0].partition(":")[2]


def _streamed_as(message: AIMessage, streams: Sequence[_Stream]) -> _Stream:
    """The stream that became the message. Some providers give the message another id than its pieces."""
    text = str(message.text)
    written = [stream for stream in streams if stream.text]
    same_id = [stream for stream in written if stream.message_id == message.id]
    begun = [stream for stream in written if text.startswith(stream.text)]
    return next(iter(same_id or begun[-1:]), _Stream(str(message.id)))


def _task_of(metadata: Mapping[str, Any]) -> str:
    """The id of the task in which a model wrote."""
    return str(metadata["langgraph_checkpoint_ns"]).rpartition(":")[2]


def _tool_call(task_input: Any) -> Mapping[str, Any] | None:
    call = task_input[0] if isinstance(task_input, list) and task_input else task_input
    if isinstance(call, Mapping):
        call = call.get("tool_call", call)
        if isinstance(call, Mapping) and "name" in call:
            return call
    return None


def _tool_message(result: Any) -> ToolMessage | None:
    messages = result.get("messages") if isinstance(result, Mapping) else None
    return next((message for message in messages or () if isinstance(message, ToolMessage)), None)


def _reason(result: ToolMessage | None) -> str:
    if result is None:
        return "it stopped unexpectedly"
    if isinstance(result.artifact, Mapping) and result.artifact.get("reason"):
        return short_reason(str(result.artifact["reason"]))
    return short_reason(str(result.text)) or "it reported an error"
