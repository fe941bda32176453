"""Conversations with small real graphs whose tools wait for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from a2a.types.a2a_pb2 import Task
from deepagents.backends import StateBackend
from deepagents.middleware.subagents import SubAgentMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Interrupt

from ai_platform_engineering.approvals.deciders import Deciders
from ai_platform_engineering.approvals.grants import GRANTS, granted_by
from ai_platform_engineering.forms.answers import Answer, answer_data, with_decision_id
from ai_platform_engineering.forms.questions import form_of
from ai_platform_engineering.graphs.agent_graph import PRIVATE_STATE, Graph, agent_graph
from ai_platform_engineering.graphs.approval_gate import ApprovalGate, Judge
from ai_platform_engineering.graphs.approval_policy import ApprovalRequired, CallAllowed, Verdict
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.policy.decisions import PrincipalPolicy
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.utils.a2a_common.server.approvals import ApprovalRules, TaskApprovals, decision_id
from tests.approvals.tools import Kind, mcp_tool
from tests.runs.graphs import context, settings_of

SCHEMA = {
    "type": "object",
    "properties": {"force": {"type": "boolean"}, "name": {"type": "string"}, "revision": {"type": "integer"}},
    "required": ["name"],
}
Calls = Sequence[tuple[str, Mapping[str, Any]]]


@dataclass
class Backend:
    """What the tools have done. One called `broken` fails, one called `long` says a lot."""

    done: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)

    def tool(self, agent: str, name: str, kind: Kind = "destroys", schema: Mapping[str, Any] = SCHEMA) -> BaseTool:
        async def invoke(tool: str, arguments: dict[str, Any]) -> str:
            self.done.append((agent, tool, arguments))
            if arguments.get("name") == "broken":
                raise ToolException("It is broken.")
            return "l" * 5_000 if arguments.get("name") == "long" else f"{tool} done"

        return mcp_tool(name, kind, invoke, schema, agent=agent)


def destructive(tool: BaseTool, _args: Mapping[str, Any]) -> Verdict:
    return ApprovalRequired("destructive") if (tool.metadata or {}).get("destructive") else CallAllowed()


def agent(name: str, tools: Sequence[BaseTool], *rounds: Calls, judge: Judge = destructive) -> Graph:
    """An agent that makes these calls, one round after the other, on every question."""
    return _graph(name, [Turn("", calls) for calls in rounds], tools, [], (), judge)


def supervisor(agents: Mapping[str, Graph], *rounds: Sequence[str]) -> Graph:
    """A supervisor that asks these agents, one round after the other, on every question."""
    delegation = SubAgentMiddleware(
        backend=StateBackend(),
        subagents=[{"name": name, "description": name, "runnable": graph} for name, graph in agents.items()],
        task_description="{available_agents}",
        private_state_keys=PRIVATE_STATE,
    )
    turns = [Turn("", [("task", {"description": "go", "subagent_type": name}) for name in names]) for names in rounds]
    return _graph("supervisor", turns, [], [delegation], list(agents), lambda _tool, _args: CallAllowed())


def _graph(
    name: str, turns: Sequence[Turn], tools: Any, middleware: Sequence[Any], agents: Sequence[str], judge: Any
) -> Graph:
    def part(cue: ModelInput) -> Turn:
        return turns[cue.turn] if cue.turn < len(turns) else Turn("That is all.")

    return agent_graph(
        settings_of(TOOL_RESULT_MAX_CHARS="1000"),
        ScriptedChatModel(script=part),
        tools,
        f"You are {name}.",
        name=name,
        middleware=[ApprovalGate(name, judge, title=name.title()), *middleware],
        agents=agents,
        checkpointer=InMemorySaver() if name in {"supervisor", "alone"} else None,
    )


@dataclass
class Conversation:
    graph: Graph
    number: int = 1
    approvals: tuple[Mapping[str, Any], ...] = ()
    log: MemoryEventLog = field(default_factory=MemoryEventLog)
    answers: int = 0
    policy: PrincipalPolicy | None = None

    async def ask(self, question: str = "q") -> list[Interrupt]:
        """Asks, and gives what a person is asked in turn."""
        if await self.log.state(f"task-{self.number}") is None:
            await self.log.create(Task(id=f"task-{self.number}", context_id=f"context-{self.number}"))
        return await self._go({"messages": [("user", question)]})

    async def answer(self, waiting: Interrupt, answer: Answer) -> list[Interrupt]:
        form = form_of(waiting.id, waiting.value, "")
        self.answers += 1
        await self._ledger.ask([form], context(self.number))
        await self._ledger.decide(form, answer, context(self.number), f"answer-{self.answers}")
        data = with_decision_id(answer_data(answer), decision_id(form, f"answer-{self.answers}"))
        granted = granted_by(form, answer)
        self.approvals += granted
        update = {GRANTS: [*granted]} if granted else None
        return await self._go(Command(resume={waiting.id: data}, update=update))

    async def answer_raw(self, waiting: Interrupt, value: Any) -> list[Interrupt]:
        return await self._go(Command(resume={waiting.id: value}))

    async def _go(self, given: Any) -> list[Interrupt]:
        request = context(self.number, approvals=self.approvals, approval_ledger=self._ledger, policy=self.policy)
        await self.graph.ainvoke(given, self._config, context=request, durability="exit")
        return list((await self.graph.aget_state(self._config)).interrupts)

    async def state(self) -> dict[str, Any]:
        return dict((await self.graph.aget_state(self._config)).values)

    async def results(self) -> list[ToolMessage]:
        return [message for message in (await self.state())["messages"] if isinstance(message, ToolMessage)]

    @property
    def _ledger(self) -> TaskApprovals:
        return TaskApprovals(self.log, f"task-{self.number}", None, ApprovalRules(lambda _form, _request: Deciders()))

    @property
    def _config(self) -> Any:
        return {"configurable": {"thread_id": f"context-{self.number}"}}
