"""The text of an answer: from a structured response, from tool results, or from an answer that was cut off."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage
from pydantic import BaseModel

from ai_platform_engineering.final_results import CUT_SENTENCES, CutReason
from ai_platform_engineering.runs.skill_calls import SKILL_TOOLS

_TEXT_FIELDS = ("content", "answer", "message", "text")


def structured_text(response: Any) -> str:
    """The text of a structured response: its text field if it has one, else the response as JSON."""
    fields = _fields(response)
    if isinstance(fields, Mapping):
        for name in _TEXT_FIELDS:
            if isinstance(value := fields.get(name), str) and value.strip():
                return value
    return fields if isinstance(fields, str) else json.dumps(fields, ensure_ascii=False, default=str)


def gathered_text(messages: Iterable[AnyMessage]) -> str:
    """The tool results since the last question, for an answer that had to end early."""
    results: list[str] = []
    for message in messages:
        match message:
            # The instructions of a skill are for the model and are no result.
            case ToolMessage() if message.name in SKILL_TOOLS:
                pass
            case ToolMessage() if message.status != "error" and str(message.text).strip():
                results.append(str(message.text).strip())
            case _ if message.type == "human":
                results.clear()
    return "\n\n".join(dict.fromkeys(results))


def with_cut_note(answer: str, cut: CutReason | None) -> str:
    """An agent's answer for the supervisor's model, with a note if it was cut off."""
    return answer if cut is None else f"{answer}\n\n[This answer is incomplete. {CUT_SENTENCES[cut]}]"


def _fields(response: Any) -> Any:
    if isinstance(response, BaseModel):
        return response.model_dump(mode="json")
    if dataclasses.is_dataclass(response) and not isinstance(response, type):
        return dataclasses.asdict(response)
    return response
