"""A run that another process continues: at every event, with checkpoints that are behind or ahead of the events."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
)
from langgraph.checkpoint.memory import InMemorySaver

from ai_platform_engineering.compat.langgraph import INTERRUPT_CHANNEL
from ai_platform_engineering.events import (
    AgentFinished,
    AgentStarted,
    Event,
    Failed,
    FinalResult,
    InputRequired,
    MessageEnded,
    PlanUpdated,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.forms.answers import Submitted
from ai_platform_engineering.graphs.agent_graph import Graph, agent_graph
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.runs.stored_progress import StoredCall, StoredProgress
from ai_platform_engineering.runs.translation import Translation
from ai_platform_engineering.storage.checkpoints.active_conversations import ActiveConversations, place_of
from ai_platform_engineering.storage.checkpoints.deferred import DeferredCheckpoints
from ai_platform_engineering.storage.checkpoints.fencing import RunClaims
from ai_platform_engineering.storage.checkpoints.omissions import are_in_next_checkpoint
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import GraphRun, Resumption
from ai_platform_engineering.utils.a2a_common.request_context import RecordedEffect, RequestContext
from tests.invariants import check, check_task
from tests.runs.graphs import agent, context, settings_of, supervisor
from tests.runs.test_questions import asker

pytestmark = pytest.mark.long

ANSWER = "Both are done, and this answer has a few words."


@dataclass
class Ledger:
    """The effects that the event log of a server has recorded."""

    recorded: dict[str, str | None] = field(default_factory=dict)

    async def begin(self, call_id: str) -> RecordedEffect | None:
        if call_id in self.recorded:
            return RecordedEffect(self.recorded[call_id])
        self.recorded[call_id] = None
        return None

    async def finish(self, call_id: str, result: str) -> None:
        self.recorded[call_id] = result


class DeferringSaver(InMemorySaver):
    """Stores what the product stores: not what can be restored otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self._active = ActiveConversations()
        self._deferred = DeferredCheckpoints(self._active, RunClaims(None, is_checked_by_store=False))

    def __deepcopy__(self, memo: dict[int, Any]) -> DeferringSaver:
        """What a killed process leaves."""
        left = DeferringSaver()
        left.storage, left.writes, left.blobs = copy.deepcopy((self.storage, self.writes, self.blobs), memo)
        return left

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        stored = await self._deferred.put(self._store, config, checkpoint, metadata, new_versions)
        self._active.note_checkpoint(config, checkpoint, metadata, stored)
        return stored

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        if not are_in_next_checkpoint(writes, task_path):
            await self._deferred.store(self._store, place_of(config), get_checkpoint_id(config))
            await super().aput_writes(config, writes, task_id, task_path)
            self._active.note_writes(config, writes, task_id)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        await self._deferred.store(self._store, place_of(config), get_checkpoint_id(config))
        found = await super().aget_tuple(config)
        self._active.note_read(config, found)
        return found

    @property
    def _store(self) -> Any:
        return super()


@dataclass
class World:
    """Everything that outlives a process: changes of a backend, checkpoints, recorded effects."""

    changes: list[str] = field(default_factory=list)
    saver: InMemorySaver = field(default_factory=InMemorySaver)
    ledger: Ledger = field(default_factory=Ledger)
    model_inputs: list[ModelInput] = field(default_factory=list)


@dataclass
class Process:
    """A graph, and the world that it works in. It continues one run after the other: a graph takes several times
    longer to build than to run."""

    build: Callable[[Process], Graph]
    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        self._graph = self.build(self)

    def graph_in(self, world: World) -> Graph:
        self.world = world
        self._graph.checkpointer = world.saver
        return self._graph


def changing_agent(process: Process) -> Graph:
    @tool
    async def create_issue(title: str) -> str:
        """Creates an issue."""
        process.world.changes.append(title)
        return f"created {title}"

    script = [Turn("On it. ", [("create_issue", {"title": "one"})]), Turn("The issue is there.")]
    return agent_graph(
        settings_of(),
        ScriptedChatModel(script=script),
        [create_issue],
        "You change.",
        name="jira",
        changes=lambda called, _: called.name == "create_issue",
    )


def reading_agent() -> Graph:
    @tool
    async def list_apps() -> str:
        """Lists applications."""
        return "guestbook"

    return agent("argocd", ScriptedChatModel(script=[Turn("", [("list_apps", {})]), Turn("One app.")]), [list_apps])


def planned(process: Process) -> Graph:
    """A plan, two agents in parallel, one of which changes something, and an answer."""
    steps = [
        {"content": "List apps", "agent": "argocd", "status": "pending"},
        {"content": "Create issue", "agent": "jira", "status": "pending"},
    ]
    script = [
        Turn("First a plan. ", [("write_todos", {"title": "Both", "steps": steps})]),
        Turn(
            "Now both. ",
            [
                ("task", {"description": "list", "subagent_type": "argocd"}),
                ("task", {"description": "create", "subagent_type": "jira"}),
            ],
        ),
        Turn(ANSWER),
    ]

    def recorded(model_input: ModelInput) -> Turn:
        process.world.model_inputs.append(model_input)
        return script[min(model_input.turn, len(script) - 1)]

    return supervisor(ScriptedChatModel(script=recorded), {"argocd": reading_agent(), "jira": changing_agent(process)})


def asking(process: Process) -> Graph:
    """An agent that asks a person, beside one that changes something."""
    script = [
        Turn(
            "",
            [
                ("task", {"description": "create", "subagent_type": "jira"}),
                ("task", {"description": "ask", "subagent_type": "github"}),
            ],
        ),
        Turn(ANSWER),
    ]
    agents = {"jira": changing_agent(process), "github": agent("github", asker("Which?", "name"))}
    return supervisor(ScriptedChatModel(script=script), agents)


@dataclass(frozen=True)
class Moment:
    """The events and the world at one moment of a run."""

    events: Sequence[Event]
    world: World


def streaming(world: World) -> RequestContext:
    return context(effects=world.ledger, stream_sub_agent_text=True)


async def moments(
    process: Process, world: World, work: str | Resumption = "q", before: Sequence[Event] = ()
) -> list[Moment]:
    run = GraphRun(process.graph_in(world), "supervisor", work, streaming(world))
    events: list[Event] = []
    found = [Moment((), copy.deepcopy(world))]
    async for event in run.events():
        events.append(event)
        found.append(Moment((*events,), copy.deepcopy(world)))
    check_task([*before, *events])
    return found


async def continued(
    process: Process, begun: Sequence[Event], world: World, work: str | Resumption = "q"
) -> list[Event]:
    """The events of the rest of a run, in a world that nothing else uses."""
    world = copy.deepcopy(world)
    run = GraphRun(process.graph_in(world), "supervisor", work, streaming(world), begun)
    rest = [event async for event in run.events()]
    whole = [*(work.history if isinstance(work, Resumption) else ()), *begun, *rest]
    [created] = [event for event in whole if isinstance(event, ToolFinished) and event.tool == "create_issue"]
    assert world.changes == ["one"] if created.ok else world.changes in ([], ["one"]), "nothing is changed twice"
    for event in whole:
        if isinstance(event, ToolFinished | AgentFinished) and not event.ok:
            assert event is created
            assert event.reason == "it was interrupted, and its outcome is unknown"
    return rest


def kills(run: Sequence[Moment]) -> list[tuple[Sequence[Event], World]]:
    """What a killed process may leave: the last events may be missing, and so may the last results in checkpoints.

    Only a call begins after the checkpoint of the step before it, so its start is never ahead of the checkpoints.
    """
    ends = len(run) - 1
    return [
        (run[events].events, world)
        for stored in range(ends + 1)
        for events in range(max(0, stored - 2), min(stored + 2, ends))
        if events <= stored or not isinstance(run[events].events[-1], AgentStarted | ToolStarted)
        for world in (run[stored].world, without_last_results(run[stored].world))
    ]


def without_last_results(world: World) -> World:
    """The world without the results of the current steps: LangGraph does not wait until these are stored.

    An interrupt is stored before its form is shown.
    """
    world = copy.deepcopy(world)
    for thread_id, namespaces in world.saver.storage.items():
        for namespace, checkpoints in namespaces.items():
            writes = world.saver.writes[thread_id, namespace, max(checkpoints, default="")]
            for key in [key for key, (_, channel, *_) in writes.items() if channel != INTERRUPT_CHANNEL]:
                del writes[key]
    return world


def texts(events: Sequence[Event]) -> dict[str, list[str]]:
    """The messages of each agent, without those that were superseded."""
    deltas = [event for event in events if isinstance(event, TextDelta)]
    superseded = {delta.supersedes for delta in deltas}
    found: dict[str, dict[str, str]] = {}
    for delta in deltas:
        if delta.message_id not in superseded:
            messages = found.setdefault(delta.agent, {})
            messages[delta.message_id] = messages.get(delta.message_id, "") + delta.text
    return {agent: [*messages.values()] for agent, messages in found.items()}


@pytest.mark.parametrize("saver", [InMemorySaver, DeferringSaver])
async def test_a_run_is_continued_wherever_it_was_killed(saver: type[InMemorySaver]) -> None:
    other = Process(planned)
    run = await moments(Process(planned), World(saver=saver()))
    for begun, world in kills(run):
        rest = await continued(other, begun, world)
        whole = [*begun, *rest]
        assert check(whole) == FinalResult(ANSWER, whole[-1].answer_message_id)  # type: ignore[union-attr]
        assert texts(whole) == texts(run[-1].events), "each text is there once"
        plan = [event for event in whole if isinstance(event, PlanUpdated)][-1]
        assert [(step.agent, step.status) for step in plan.steps] == [("argocd", "completed"), ("jira", "completed")]


async def test_a_change_that_was_in_flight_is_not_repeated() -> None:
    run = await moments(Process(planned), World())
    before = next(m for m in run if any(isinstance(e, ToolStarted) and e.tool == "create_issue" for e in m.events))
    world = without_last_results(before.world)
    (call_id,) = {event.call_id for event in before.events if isinstance(event, ToolStarted) and event.agent == "jira"}
    world.changes.clear()
    world.ledger.recorded = {call_id: None}
    rest = await continued(Process(planned), before.events, world)
    [created] = [event for event in rest if isinstance(event, ToolFinished) and event.tool == "create_issue"]
    assert not created.ok
    assert isinstance(rest[-1], FinalResult)


async def test_cut_text_is_superseded_by_the_text_that_is_written_again() -> None:
    run = await moments(Process(planned), World())
    texts = [moment for moment in run if moment.events and isinstance(moment.events[-1], TextDelta)]
    cut = next(moment for moment in reversed(texts) if moment.events[-1].text != ANSWER.rsplit(maxsplit=1)[-1])  # type: ignore[union-attr]
    rest = await continued(Process(planned), cut.events, cut.world)
    last = cut.events[-1]
    assert isinstance(last, TextDelta)
    first = next(event for event in rest if isinstance(event, TextDelta))
    assert (first.supersedes, first.message_id == last.message_id) == (last.message_id, False)
    assert not any(event.supersedes for event in rest if isinstance(event, TextDelta) and event is not first)


async def test_the_model_gets_the_results_and_not_the_question_again() -> None:
    run = await moments(Process(planned), World())
    done = next(m for m in run if sum(isinstance(event, AgentFinished) for event in m.events) == 2)
    world = copy.deepcopy(done.world)
    world.model_inputs.clear()
    graph = Process(planned).graph_in(world)
    async for _ in GraphRun(graph, "supervisor", "q", context(effects=world.ledger), done.events).events():
        pass
    (last,) = world.model_inputs
    assert [message.type for message in last.messages[1:]] == ["human", "ai", "tool", "ai", "tool", "tool"]


@pytest.mark.parametrize("kind", ["before its answer is read", "anywhere"])
async def test_a_run_that_was_answered_is_continued_with_the_answer(kind: str) -> None:
    world, first, other = World(), Process(asking), Process(asking)
    asked = (await moments(first, world))[-1]
    question = asked.events[-1]
    assert isinstance(question, InputRequired)
    work = Resumption(question.forms[0], Submitted({"name": "demo"}), asked.events)
    run = await moments(first, world, work, asked.events)
    left = kills(run) if kind == "anywhere" else [((), asked.world)]
    for begun, stored in left:
        rest = await continued(other, begun, stored, work)
        check_task([*asked.events, *begun, *rest])
        assert isinstance(rest[-1], FinalResult), rest[-1]


async def test_without_its_checkpoint_a_run_with_calls_is_not_started_over() -> None:
    run = await moments(Process(planned), World())
    started = next(m for m in run if any(isinstance(event, ToolFinished) for event in m.events))
    rest = await continued_without_checkpoints(started)
    assert isinstance(rest[-1], Failed)
    assert rest[-1].message.startswith("The work was interrupted, and its conversation was not stored")
    begun = next(m for m in run if any(isinstance(event, TextDelta) for event in m.events))
    assert isinstance((await continued_without_checkpoints(begun))[-1], FinalResult), "nothing was done yet"


async def continued_without_checkpoints(moment: Moment) -> list[Event]:
    world = World(changes=[*moment.world.changes])
    graph = Process(planned).graph_in(world)
    run = GraphRun(graph, "supervisor", "q", context(effects=world.ledger), moment.events)
    rest = [event async for event in run.events()]
    check([*moment.events, *rest])
    return rest


@pytest.mark.parametrize("emitted", ["", "I ask", "I ask Jira."])
def test_a_message_is_whole_before_its_calls_begin(emitted: str) -> None:
    call = {"name": "task", "args": {"subagent_type": "jira", "description": "list tickets"}, "id": "c1"}
    turn = AIMessage("I ask Jira.", id="m1", tool_calls=[call])
    history = [TextDelta("supervisor", "m1", emitted)] if emitted else []
    translation = Translation("supervisor", history=history)
    progress = StoredProgress(steps=[StoredCall("t1", None, call)], plan=None, turn=turn, is_over=False)
    events = [*translation.continue_from(progress)]
    assert texts([*history, *events]) == {"supervisor": ["I ask Jira."]}
    assert [type(event) for event in events][-2:] == [MessageEnded, AgentStarted]
