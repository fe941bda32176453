"""The plan of a run: the model's steps, with their status corrected by the actual delegations.

`Plan` is immutable; every change returns a new one. When the model rewrites the plan, steps keep their id by title.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ai_platform_engineering.events import SUPERVISOR, PlanStep, PlanUpdated, StepStatus

PLAN_TOOL = "write_todos"
WORKFLOW_TOOL = "start_workflow"
"""The tool that starts a workflow. The steps of the workflow become the plan."""


@dataclass(frozen=True, slots=True)
class Plan:
    title: str = ""
    steps: tuple[PlanStep, ...] = ()
    delegated: frozenset[str] = frozenset()
    """Ids of steps that a delegation was started for. Their status follows the delegation, not the model's claim."""
    served: frozenset[str] = frozenset()
    """Agents that have completed a delegation successfully in this run."""
    claimed: frozenset[str] = frozenset()
    """Ids of steps that the model reported as completed and that no delegation was started for."""
    used_tools: bool = False
    """Whether one of the supervisor's own tools has succeeded. Then its own steps can be completed before the
    answer."""

    def event(self) -> PlanUpdated:
        return PlanUpdated(self.steps, self.title)

    def restored(self, event: PlanUpdated) -> Plan:
        """The plan as it was last emitted."""
        return replace(self, title=event.title, steps=event.steps)

    def rewritten(self, title: str, todos: Sequence[Mapping[str, Any]]) -> Plan:
        """The plan after the model has rewritten it."""
        known = {(step.title, step.agent): step for step in reversed(self.steps)}
        taken: Counter[tuple[str, str | None]] = Counter()
        next_number = 1 + max((int(step.id.removeprefix("step-")) for step in self.steps), default=0)
        steps: list[PlanStep] = []
        claimed: set[str] = set()
        for order, todo in enumerate(todos):
            agent = _agent_of(todo)
            key = (str(todo["content"]), agent)
            before = known.get(key) if not taken[key] else None
            taken[key] += 1
            if before is None:
                step_id, next_number = f"step-{next_number}", next_number + 1
            else:
                step_id = before.id
            step = PlanStep(step_id, key[0], todo.get("status", "pending"), order, agent)
            steps.append(replace(step, status=self._true_status(step, before)))
            if step.status == "completed":
                claimed.add(step_id)
        return replace(self, title=title or self.title, steps=tuple(steps), claimed=frozenset(claimed) - self.delegated)

    def step_for(self, agent: str) -> PlanStep | None:
        """The step for a new delegation to `agent`: its first unfinished step, preferably one without a delegation."""
        unfinished = [step for step in self.steps if step.agent == agent and step.status in ("pending", "in_progress")]
        fresh = [step for step in unfinished if step.id not in self.delegated]
        return next(iter(fresh or unfinished), None)

    def delegation_started(self, step_id: str | None) -> Plan:
        if step_id is None:
            return self
        return replace(self, delegated=self.delegated | {step_id})._with_status(step_id, "in_progress")

    def delegation_finished(self, step_id: str | None, agent: str, ok: bool) -> Plan:
        plan = replace(self, served=self.served | {agent}) if ok else self
        return plan if step_id is None else plan._with_status(step_id, "completed" if ok else "failed")

    def own_tool_succeeded(self) -> Plan:
        return self if self.used_tools else replace(self, used_tools=True)

    def answered(self) -> Plan:
        """The plan after the answer, which completes the supervisor's own steps.

        One delegation may have completed several steps of its agent. For these, the model's claim counts now.
        """
        done = tuple(
            replace(step, status="completed")
            if step.status in ("pending", "in_progress") and self._is_done_by_answer(step)
            else step
            for step in self.steps
        )
        return replace(self, steps=done)

    def _is_done_by_answer(self, step: PlanStep) -> bool:
        return step.agent is None or (step.id in self.claimed and step.agent in self.served)

    def _with_status(self, step_id: str, status: StepStatus) -> Plan:
        return replace(
            self, steps=tuple(replace(step, status=status) if step.id == step_id else step for step in self.steps)
        )

    def _true_status(self, step: PlanStep, before: PlanStep | None) -> StepStatus:
        if before is not None and before.id in self.delegated:
            # The model may report a completed delegation as failed, but not a failed one as completed.
            gave_up = before.status == "completed" and step.status == "failed"
            return "failed" if gave_up else before.status
        if step.status == "completed" and (step.agent is not None or not self.used_tools):
            return before.status if before is not None else "pending"
        return step.status


def _agent_of(todo: Mapping[str, Any]) -> str | None:
    agent = str(todo.get("agent") or "").strip().lower()
    return agent if agent and agent != SUPERVISOR else None
