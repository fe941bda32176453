"""The plan of a run: the model's steps, with their status corrected by what really happened.

`Plan` is a value; every change gives a new one. Matching by title keeps a step's id while the model rewrites the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ai_platform_engineering.events import SUPERVISOR, PlanStep, PlanUpdated, StepStatus

PLAN_TOOL = "write_todos"


@dataclass(frozen=True, slots=True)
class Plan:
    title: str = ""
    steps: tuple[PlanStep, ...] = ()
    delegated: frozenset[str] = frozenset()
    """Ids of steps that a delegation was started for: their status follows the delegation, not the model's word."""
    served: frozenset[str] = frozenset()
    """Agents that have finished a delegation successfully since the run began."""

    def event(self) -> PlanUpdated:
        return PlanUpdated(self.steps, self.title)

    def told(self, event: PlanUpdated) -> Plan:
        """The plan as it was last shown."""
        return replace(self, title=event.title, steps=event.steps)

    def rewritten(self, title: str, todos: Sequence[Mapping[str, Any]]) -> Plan:
        """The plan as the model wrote it anew."""
        known = {(step.title, step.agent): step for step in reversed(self.steps)}
        taken: Counter[tuple[str, str | None]] = Counter()
        next_number = 1 + max((int(step.id.removeprefix("step-")) for step in self.steps), default=0)
        steps: list[PlanStep] = []
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
        return replace(self, title=title or self.title, steps=tuple(steps))

    def step_for(self, agent: str) -> PlanStep | None:
        """The step a new delegation to `agent` works on: its first one that nobody has worked on yet."""
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

    def answered(self) -> Plan:
        """The answer is written, so the supervisor's own steps are done; those of agents that never ran are not."""
        done = tuple(
            replace(step, status="completed")
            if step.agent is None and step.status in ("pending", "in_progress")
            else step
            for step in self.steps
        )
        return replace(self, steps=done)

    def _with_status(self, step_id: str, status: StepStatus) -> Plan:
        return replace(
            self, steps=tuple(replace(step, status=status) if step.id == step_id else step for step in self.steps)
        )

    def _true_status(self, step: PlanStep, before: PlanStep | None) -> StepStatus:
        if before is not None and before.id in self.delegated:
            return before.status
        if step.agent is not None and step.status == "completed" and step.agent not in self.served:
            return before.status if before is not None else "pending"
        return step.status


def _agent_of(todo: Mapping[str, Any]) -> str | None:
    agent = str(todo.get("agent") or "").strip().lower()
    return agent if agent and agent != SUPERVISOR else None
