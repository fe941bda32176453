"""The texts that plain A2A clients show to people. Our clients decode the metadata instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ai_platform_engineering.events import SUPERVISOR, Form, PlanStep, StepStatus
from ai_platform_engineering.utils.characters import clean

REASON_LENGTH = 200

_STATUS_SUFFIXES: dict[StepStatus, str] = {
    "pending": "",
    "in_progress": " (in progress)",
    "completed": " (done)",
    "failed": " (failed)",
}


def display(name: str) -> str:
    return name.title()


def one_line(text: str, limit: int) -> str:
    """`text` without line breaks and control characters, cut at a word where it is longer than `limit`."""
    line = " ".join(clean(text).split())
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    return (head.rsplit(" ", 1)[0] if " " in head[limit // 2 :] else head) + "…"


def plan(title: str, steps: Sequence[PlanStep]) -> str:
    heading = one_line(title, REASON_LENGTH) or ("1 step" if len(steps) == 1 else f"{len(steps)} steps")
    lines = [f"⟦🎯 Execution Plan: {heading}⟧"]
    lines += [plan_step(step) for step in sorted(steps, key=lambda step: step.order)]
    return "\n".join(lines)


def plan_step(step: PlanStep) -> str:
    title = one_line(step.title, REASON_LENGTH)
    tag = f"[{display(step.agent)}]" if step.agent else ""
    # Models often write the tag themselves.
    if tag and not title.lower().startswith(tag.lower()):
        title = f"{tag} {title}"
    return title + _STATUS_SUFFIXES[step.status]


def agent_started(caller: str, agent: str) -> str:
    return f"🔧 {display(caller)}: Calling Agent {display(agent)}..."


def agent_finished(caller: str, agent: str, ok: bool, reason: str | None) -> str:
    if ok:
        return f"✅ {display(caller)}: {display(agent)} completed"
    return f"❌ {display(caller)}: {display(agent)} failed{_because(reason)}"


def tool_started(agent: str, tool: str) -> str:
    return f"🔧 {display(agent)}: Calling tool: {display(tool)}"


def tool_finished(agent: str, tool: str, ok: bool, reason: str | None) -> str:
    if ok:
        return f"✅ {display(agent)}: Tool {display(tool)} completed"
    return f"❌ {display(agent)}: Tool {display(tool)} failed{_because(reason)}"


def call_started(name: str) -> str:
    return f"Tool call started: {name}"


def call_finished(name: str, ok: bool) -> str:
    return f"Tool call {'completed' if ok else 'failed'}: {name}"


def question(form: Form) -> str:
    return form.response or form.description or form.title or "More information is needed."


def questions(forms: Iterable[Form]) -> str:
    """The questions of all open forms, without duplicates."""
    return "\n\n".join(dict.fromkeys(map(question, forms)))


def server_title(agent: str) -> str:
    """The server of the supervisor or of an agent, as the subject of a sentence."""
    return "The supervisor" if agent == SUPERVISOR else f"The {display(agent)} agent"


def stopped(agent: str) -> str:
    """The sentence for a run that ended because its server was shut down."""
    return f"{server_title(agent)} was stopped while it worked on this."


def handed_over(agent: str) -> str:
    """The sentence for a run that continues on another server, or when its server is back."""
    return f"{server_title(agent)} is stopping. This task continues when it runs again: subscribe again to follow it."


def _because(reason: str | None) -> str:
    line = one_line((reason or "").replace("*", "").replace("`", ""), REASON_LENGTH)
    return f": {line}" if line else ""
