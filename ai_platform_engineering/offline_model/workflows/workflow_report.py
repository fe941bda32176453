"""The answer after a workflow: the results of its steps, and the steps that were not done, with the reasons."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ai_platform_engineering.offline_model.messages.conversation import ToolUse
from ai_platform_engineering.offline_model.messages.tools import DELEGATION_TOOL
from ai_platform_engineering.offline_model.results.parsing import parse
from ai_platform_engineering.offline_model.results.rendering import render

_HEAD = re.compile(r"^The workflow (?P<title>.+?) (?P<how>has ended|was stopped\b[^\n]*?)\.(?:\s|$)")
_STEP = re.compile(
    r"^- (?P<title>.+?)(?: \([\w-]+\))?: (?P<status>completed|failed|skipped|not done)\b[,:]?\s*(?P<rest>.*)$"
)


@dataclass(frozen=True, slots=True)
class _StepOutcome:
    title: str
    status: str
    rest: str


def is_report(instruction: str) -> bool:
    """Whether the instruction asks for a report on the steps of a workflow."""
    return _HEAD.match(instruction) is not None and bool(_steps(instruction))


def report(instruction: str, uses: Sequence[ToolUse]) -> str:
    """The report. Each step that was started has one delegation, in the same order."""
    head = _HEAD.match(instruction)
    steps = [_StepOutcome(match["title"], match["status"], match["rest"].strip()) for match in _steps(instruction)]
    results = iter([use.result or "" for use in uses if use.name == DELEGATION_TOOL])
    started = [(step, next(results, "")) for step in steps if step.status in {"completed", "failed"}]
    texts = [(step, _step_text(step, result)) for step, result in started]
    title = head["title"] if head else "the workflow"
    sections = [text if len(texts) == 1 else f"### {step.title}\n\n{text}" for step, text in texts]
    return "\n\n".join([_opening(title, head["how"] if head else "", steps), *sections, *_remaining_notes(steps)])


def _steps(instruction: str) -> list[re.Match[str]]:
    return [match for match in map(_STEP.match, instruction.splitlines()) if match]


def _opening(title: str, how: str, steps: Sequence[_StepOutcome]) -> str:
    failed = next((step for step in steps if step.status == "failed"), None)
    done = [step for step in steps if step.status == "completed"]
    if failed is not None:
        return f"The workflow “{title}” was stopped: the step “{failed.title}” failed."
    if how.startswith("was stopped"):
        return f"The workflow “{title}” {how}."
    return f"The workflow “{title}” is done." if done else f"The workflow “{title}” has ended; no step had to be done."


def _step_text(step: _StepOutcome, result: str) -> str:
    if step.status == "failed":
        reason = step.rest.rstrip(".") or "no reason was given"
        return f"Failed: {reason}."
    text = render(parse(result)) if result.strip() else step.rest
    return text or "Done."


def _remaining_notes(steps: Sequence[_StepOutcome]) -> list[str]:
    lines = {
        "Not done": [step for step in steps if step.status == "not done"],
        "Skipped": [step for step in steps if step.status == "skipped"],
    }
    return [f"{label}: {'; '.join(map(_with_reason, remaining))}." for label, remaining in lines.items() if remaining]


def _with_reason(step: _StepOutcome) -> str:
    return f"{step.title} ({step.rest.rstrip('.')})" if step.rest else step.title
