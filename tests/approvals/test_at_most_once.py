"""Whatever happens around an approval, the approved arguments run at most once, and no others.

The executor and the graph of an agent are real. A process is killed at any write to the ledger and in the tool; the
next one takes its run over. In the remote placement a supervisor delegates, so only decisions that it has signed count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar, Literal

import pytest
from a2a.types.a2a_pb2 import Message, Part, Role, Task, TaskState, TaskStatus
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain.agents.middleware import AgentMiddleware
from langgraph.checkpoint.memory import InMemorySaver

from ai_platform_engineering.approvals.deciders import Deciders
from ai_platform_engineering.approvals.record import Decision, call_digest
from ai_platform_engineering.events import InputRequired
from ai_platform_engineering.graphs.agent_graph import agent_graph
from ai_platform_engineering.graphs.approval_gate import ApprovalGate
from ai_platform_engineering.graphs.approval_policy import ApprovalRequired
from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.storage.event_log.event_log import RecordedEffect, StoredRequest
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import BaseLangGraphAgent
from ai_platform_engineering.utils.a2a_common.codec.decoder import decode_updates
from ai_platform_engineering.utils.a2a_common.codec.values import set_value
from ai_platform_engineering.utils.a2a_common.server.approvals import ApprovalRules
from ai_platform_engineering.utils.a2a_common.server.executor import RunExecutor
from ai_platform_engineering.utils.a2a_common.server.recovery import take_over
from ai_platform_engineering.utils.a2a_common.server.task_endings import TaskEndings
from ai_platform_engineering.utils.a2a_common.server.work import Assignment
from tests.approvals.conversations import SCHEMA
from tests.approvals.tools import mcp_tool
from tests.runs.graphs import settings_of

pytestmark = pytest.mark.long

ADA, BOB = Principal("token", "ada"), Principal("token", "bob")
ORIGINAL = {"name": "web", "revision": 1}
LIFETIME = 100.0

Step = tuple[Literal["approve", "edit", "reject", "chat", "wait", "tamper", "kill"], int]

disturbances = st.one_of(
    st.tuples(st.just("kill"), st.integers(0, 9)),
    st.tuples(st.just("tamper"), st.integers(0, 1)),
    st.tuples(st.just("wait"), st.sampled_from([10, 200])),
)
answers = st.one_of(
    st.just(("approve", 1)),
    st.tuples(st.just("edit"), st.integers(2, 3)),
    st.tuples(st.sampled_from(["approve", "reject", "chat"]), st.integers(0, 1)),
)
# What comes after the last answer has no effect.
turns = st.tuples(st.lists(disturbances, max_size=2), answers).map(lambda turn: [*turn[0], turn[1]])
steps = st.lists(turns, min_size=1, max_size=3).map(lambda played: [step for turn in played for step in turn])


class KilledError(BaseException):
    """The process is gone. No handler of the product may see this as an error of its own."""


class MortalLog(MemoryEventLog):
    """A log that survives its process, and a process that dies at one of its writes to the ledger."""

    durable: ClassVar = True  # type: ignore[misc]
    life: int | None = None

    def live(self) -> None:
        if self.life is not None:
            self.life -= 1
            if self.life < 0:
                self.life = None
                raise KilledError

    async def begin_effect(
        self, task_id: str, call_id: str, epoch: int | None = None, *, result: str | None = None
    ) -> RecordedEffect | None:
        self.live()
        found = await super().begin_effect(task_id, call_id, epoch, result=result)
        self.live()
        return found

    async def finish_effect(self, task_id: str, call_id: str, result: str, epoch: int | None = None) -> None:
        self.live()
        await super().finish_effect(task_id, call_id, result, epoch)
        self.live()


class Tampering(AgentMiddleware[Any, Any, Any]):
    """Other arguments reach the gate than those that were shown."""

    def __init__(self) -> None:
        super().__init__()
        self.on = False

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        changed = {**request.tool_call, "args": {**request.tool_call["args"], "name": "all"}}
        return await handler(request.override(tool_call=changed) if self.on else request)


@dataclass
class World:
    """One agent with one dangerous tool, and the tasks of one example after the other."""

    delegated: bool
    log: MortalLog = field(default_factory=MortalLog)
    tampering: Tampering = field(default_factory=Tampering)
    ran: list[dict[str, Any]] = field(default_factory=list)
    now: float = 0.0
    ids: Any = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        async def invoke(_tool: str, arguments: dict[str, Any]) -> str:
            self.log.live()
            self.ran.append(arguments)
            self.log.live()
            return "done"

        def part(cue: ModelInput) -> Turn:
            return Turn("", [("drop", ORIGINAL)]) if cue.turn == 0 else Turn("That is all.")

        options = settings_of()
        graph = agent_graph(
            options,
            ScriptedChatModel(script=part),
            [mcp_tool("drop", "destroys", invoke, SCHEMA, agent="depot")],
            "You drop.",
            name="depot",
            middleware=[self.tampering, ApprovalGate("depot", lambda _tool, _args: ApprovalRequired("destructive"))],
            changes=lambda _tool, _args: True,
            checkpointer=InMemorySaver(),
        )
        self.executor = RunExecutor(BaseLangGraphAgent("depot", lambda _policy: graph), self.log, options)
        deciders = Deciders(frozenset({"bob"}))
        self.executor.rules = ApprovalRules(lambda _form, _request: deciders, LIFETIME, lambda: self.now)

    async def play(self, script: list[Step]) -> None:
        self.ran.clear()
        self.tampering.on, self.log.life = False, None
        self.task_id, self.asked_at = f"task-{next(self.ids)}", self.now
        question = self._message(Part(text="go"))
        task = Task(id=self.task_id, context_id=self.task_id, history=[question])
        task.status.CopyFrom(TaskStatus(state=TaskState.TASK_STATE_SUBMITTED))
        await self.log.create(task, ADA)
        await self._execute(question, ADA, begins=True)
        for verb, number in script:
            match verb:
                case "wait":
                    self.now += number
                case "tamper":
                    self.tampering.on = bool(number)
                case "kill":
                    self.log.life = number
                case _ if await self.log.waiting(self.task_id):
                    await self._answer(verb, number)
        self.log.life = None

    async def _answer(self, verb: str, number: int) -> None:
        by, before = (BOB if number else ADA), len(self.ran)
        edited = {**ORIGINAL, "revision": number}
        expected = edited if verb == "edit" else ORIGINAL
        decision: Mapping[str, Any] = {"type": verb, **({"args": edited} if verb == "edit" else {})}
        parts = Part(text="what is this?")
        if verb != "chat":
            parts = Part()
            set_value(parts.data, {"resume": {"decisions": [decision]}})
        message = self._message(parts, _signed(verb) if by == BOB else None)
        await self.log.add_message(self.task_id, message, by)
        in_time, untouched = self.now < self.asked_at + LIFETIME, not self.tampering.on
        await self._execute(message, by)
        ran = self.ran[before:]
        may_run = verb in ("approve", "edit") and by == BOB and in_time and untouched
        assert ran in ([], [expected] if may_run else []), (verb, number, ran)

    async def _execute(self, message: Message, by: Principal, *, begins: bool = False) -> None:
        claim = await self.log.claim(self.task_id, 0)
        assignment: Assignment | None = Assignment(
            self.task_id, self.task_id, StoredRequest(message, by, 0), begins_task=begins, epoch=claim.epoch
        )
        assignment.request = await self.log.request(self.task_id) or assignment.request
        while assignment is not None:
            try:
                await self.executor.execute(assignment)
                return
            except KilledError:
                assignment = await take_over(self.log, TaskEndings(self.log, "depot"), self.task_id, self.task_id)

    def _message(self, part: Part, approval: Mapping[str, Any] | None = None) -> Message:
        message = Message(message_id=f"m-{next(self.ids)}", context_id=self.task_id, role=Role.ROLE_USER, parts=[part])
        if self.delegated:
            # As admission leaves the metadata of a message whose signature was verified.
            message.metadata.update({"delegated": True, **({"approval": dict(approval)} if approval else {})})
        return message

    async def is_waiting(self) -> bool:
        events = decode_updates("depot", [entry.event for entry in await self.log.read(self.task_id)])
        return isinstance(events[-1], InputRequired)


def _signed(verb: str) -> Mapping[str, Any] | None:
    if verb == "chat":
        return None
    return Decision(verb, call_digest("depot", "drop", ORIGINAL), BOB, ADA, 0.0).facts()  # type: ignore[arg-type]


def check(examples: int, *, delegated: bool) -> None:
    world = World(delegated)
    with asyncio.Runner() as runner:

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
        @given(steps)
        def scripts(script: list[Step]) -> None:
            runner.run(world.play(script))
            assert len(world.ran) <= 1

        scripts()


placed = pytest.mark.parametrize("delegated", [False, True], ids=["in-process", "remote"])


@placed
def test_approved_arguments_run_at_most_once(delegated: bool) -> None:
    check(25, delegated=delegated)


@pytest.mark.slow
@placed
def test_approved_arguments_run_at_most_once_in_any_order_of_events(delegated: bool) -> None:
    check(500, delegated=delegated)


@placed
def test_without_interference_they_run_once(delegated: bool) -> None:
    world = World(delegated)

    async def play() -> None:
        await world.play([("approve", 0), ("chat", 0)])
        assert (world.ran, await world.is_waiting()) == ([], True)
        await world.play([("approve", 1), ("approve", 1)])
        assert (world.ran, await world.is_waiting()) == ([ORIGINAL], False)
        await world.play([("edit", 3), ("approve", 1)])
        assert (world.ran, await world.is_waiting()) == ([{**ORIGINAL, "revision": 3}], False)

    asyncio.run(play())


@placed
def test_each_disturbance_alone(delegated: bool) -> None:
    world = World(delegated)

    async def play() -> None:
        for disturbance in (("tamper", 1), ("wait", 200)):
            await world.play([disturbance, ("approve", 1)])
            assert (world.ran, await world.is_waiting()) == ([], False)
        for life in range(12):
            await world.play([("kill", life), ("approve", 1)])
            assert world.ran in ([], [ORIGINAL])
            assert not await world.is_waiting()

    asyncio.run(play())
