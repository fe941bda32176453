"""The answer after a workflow: which of its steps were done, with what they gave, and which were not, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ai_platform_engineering.offline_model.conversation import Use
from ai_platform_engineering.offline_model.rendering import parse, render
from ai_platform_engineering.offline_model.tools import DELEGATION_TOOL

_HEAD = re.compile(r"^The workflow (?P<title>.+?) (?P<how>has ended|was stopped\b[^\n]*?)\.(?:\s|$)")
_STEP = re.compile(
    r"^- (?P<title>.+?)(?: \([\w-]+\))?: (?P<status>completed|failed|skipped|not done)\b[,:]?\s*(?P<rest>.*)$"
)


@dataclass(frozen=True, slots=True)
class _Outcome:
    title: str
    status: str
    rest: str


def is_report(instruction: str) -> bool:
    """Whether the model is told to say what became of the steps of a workflow."""
    return _HEAD.match(instruction) is not None and bool(_steps(instruction))


def report(instruction: str, uses: Sequence[Use]) -> str:
    """The answer that the instruction asks for. Each step that was begun has one delegation, in the same order."""
    head = _HEAD.match(instruction)
    steps = [_Outcome(match["title"], match["status"], match["rest"].strip()) for match in _steps(instruction)]
    results = iter([use.result or "" for use in uses if use.name == DELEGATION_TOOL])
    begun = [(step, next(results, "")) for step in steps if step.status in {"completed", "failed"}]
    told = [(step, _told(step, result)) for step, result in begun]
    title = head["title"] if head else "the workflow"
    sections = [text if len(told) == 1 else f"### {step.title}\n\n{text}" for step, text in told]
    return "\n\n".join([_opening(title, head["how"] if head else "", steps), *sections, *_left(steps)])


def _steps(instruction: str) -> list[re.Match[str]]:
    return [match for match in map(_STEP.match, instruction.splitlines()) if match]


def _opening(title: str, how: str, steps: Sequence[_Outcome]) -> str:
    failed = next((step for step in steps if step.status == "failed"), None)
    done = [step for step in steps if step.status == "completed"]
    if failed is not None:
        return f"The workflow “{title}” was stopped: the step “{failed.title}” failed."
    if how.startswith("was stopped"):
        return f"The workflow “{title}” {how}."
    return f"The workflow “{title}” is done." if done else f"The workflow “{title}” has ended; no step was to be done."


def _told(step: _Outcome, result: str) -> str:
    if step.status == "failed":
        reason = step.rest.rstrip(".") or "no reason was given"
        return f"Failed: {reason}."
    text = render(parse(result)) if result.strip() else step.rest
    return text or "Done."


def _left(steps: Sequence[_Outcome]) -> list[str]:
    lines = {
        "Not done": [step for step in steps if step.status == "not done"],
        "Skipped": [step for step in steps if step.status == "skipped"],
    }
    return [f"{label}: {'; '.join(map(_named, left))}." for label, left in lines.items() if left]


def _named(step: _Outcome) -> str:
    return f"{step.title} ({step.rest.rstrip('.')})" if step.rest else step.title
