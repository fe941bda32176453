"""The supervisor's answer: agents' results combined into one Markdown text, greetings and refusals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ai_platform_engineering.offline_model.answers.agent_answer import NO_REASON, rejection_text
from ai_platform_engineering.offline_model.messages.tools import Agent

SIGNATURE = (
    "_Answered by the offline model, which matches words and does not reason. "
    "Set `LLM_PROVIDER` to use a language model._"
)
_FACT = re.compile(r"^- \*\*(?P<label>[^*]+):\*\* (?P<value>.+)$")


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """The request to one agent, and its result."""

    agent: str
    request: str
    text: str
    failed: bool = False
    rejection_reason: str | None = None
    """Why a person rejected the request, if one did."""


def with_signature(text: str) -> str:
    return f"{text}\n\n{SIGNATURE}"


def combine_parts(parts: Sequence[AnswerPart], notes: Sequence[str] = (), *, side_by_side: bool = False) -> str:
    """The supervisor's answer: a single result unchanged, several in sections, failures as sentences."""
    if not parts:
        return "\n\n".join(notes) or "Nothing was gathered."
    if len(parts) == 1:
        return "\n\n".join([part_text(parts[0]), *notes])
    sections = [f"### {title}\n\n{part_text(part)}" for title, part in zip(_titles(parts), parts, strict=True)]
    if side_by_side:
        sections.insert(0, _comparison(parts))
    return "\n\n".join([*sections, *notes])


def part_text(part: AnswerPart) -> str:
    if part.rejection_reason is not None:
        return f"{part.agent} did not do this: {rejection_text(part.rejection_reason)}"
    if part.failed:
        return f"{part.agent} could not do this: {part.text.strip() or NO_REASON}"
    return part.text or f"{part.agent} returned nothing."


def _titles(parts: Sequence[AnswerPart]) -> list[str]:
    """The agents' names, with the request if an agent has several."""
    agents = [part.agent for part in parts]
    return [f"{part.agent}: {part.request}" if agents.count(part.agent) > 1 else part.agent for part in parts]


def _comparison(parts: Sequence[AnswerPart]) -> str:
    """A table of the facts that all results state; without any, the first line of each result."""
    facts = [_facts(part.text) for part in parts]
    shared = [key for key in facts[0] if all(key in other for other in facts[1:])]
    if len(shared) < 2:
        lines = [f"{title}: {_first_line(part_text(part))}" for title, part in zip(_titles(parts), parts, strict=True)]
        return f"{'; '.join(lines)}."
    differing = [key for key in shared if len({other[key] for other in facts}) > 1]
    rows = [["", *_distinctions(parts)], ["---"] * (len(parts) + 1)]
    rows += [[key, *(other[key].replace("|", "\\|") for other in facts)] for key in shared]
    verdict = f"They differ in {', '.join(key.lower() for key in differing)}." if differing else "They do not differ."
    return "\n".join([verdict, "", *(f"| {' | '.join(row)} |" for row in rows)])


def _distinctions(parts: Sequence[AnswerPart]) -> list[str]:
    """The words of each request that the others do not have."""
    spoken = [part.request.split() for part in parts]
    common = set(spoken[0]).intersection(*spoken[1:])
    return [
        " ".join(word for word in each if word not in common) or part.agent
        for each, part in zip(spoken, parts, strict=True)
    ]


def _facts(text: str) -> dict[str, str]:
    return {match["label"]: match["value"] for match in map(_FACT.match, text.splitlines()) if match}


def _first_line(text: str) -> str:
    return next((line.strip().rstrip(":") for line in text.splitlines() if line.strip()), "")


def greeting(agents: Sequence[Agent]) -> str:
    return f"Hello! I plan a request and hand its parts to agents:\n\n{capabilities(agents)}"


def refusal(without_tools: Sequence[Agent], agents: Sequence[Agent]) -> str:
    if without_tools:
        reasons = [f"{agent.title} would serve this, but has no tools: {agent.no_tools}" for agent in without_tools]
        return "\n\n".join(dict.fromkeys(reasons))
    return f"None of my agents can serve this request. What I can do:\n\n{capabilities(agents)}"


def capabilities(agents: Sequence[Agent]) -> str:
    lines = [
        f"- **{agent.title}**: {agent.description}{f' (not available: {agent.no_tools})' if agent.no_tools else ''}"
        for agent in agents
    ]
    return "\n".join(lines) or "No agents are available at the moment."
