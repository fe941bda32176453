"""The answers to a form, and their JSON: the same on the wire and as the value that resumes a graph."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_DECISION_ID: Final = "decision_id"


@dataclass(frozen=True, slots=True)
class Submitted:
    """The form was filled in; the values are valid."""

    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Approved:
    """The action is approved, with edited `arguments` if there are any. `remember` approves later actions of this kind
    in the conversation."""

    arguments: Mapping[str, Any] | None = None
    remember: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """The action is rejected."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Dismissed:
    """The person canceled the form."""

    reason: str = ""


Answer = Submitted | Approved | Rejected | Dismissed


def answer_data(answer: Answer) -> dict[str, Any]:
    """`answer` as the JSON object of `resume`, without the id of the form."""
    match answer:
        case Submitted(values):
            return {"values": dict(values)}
        case Approved(None, remember):
            decision: dict[str, Any] = {"type": "approve"}
        case Approved(arguments, remember):
            decision = {"type": "edit", "args": dict(arguments or {})}
        case Rejected(reason):
            return {"decisions": [{"type": "reject", "message": reason}]}
        case Dismissed(reason):
            return {"cancel": True, "message": reason}
    if remember:
        decision["remember"] = True
    return {"decisions": [decision]}


def with_decision_id(data: dict[str, Any], decision_id: str) -> dict[str, Any]:
    """The JSON object of an answer with the id of its recorded decision, if it has one."""
    return data | {_DECISION_ID: decision_id} if decision_id else data


def take_decision_id(data: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The JSON object of an answer without the id of its recorded decision, and that id; empty if it has none."""
    return {key: value for key, value in data.items() if key != _DECISION_ID}, _text(data.get(_DECISION_ID))


def answer_text(answer: Answer) -> str:
    """`answer` as text, as a person would write it."""
    match answer:
        case Submitted(values) if len(values) == 1:
            return _in_words(next(iter(values.values())))
        case Submitted(values):
            return "\n".join(f"{name}: {_in_words(value)}" for name, value in values.items())
        case Approved(None, remember):
            return "approve always" if remember else "approve"
        case Approved(arguments):
            return f"approve with {json.dumps(arguments, ensure_ascii=False, default=str)}"
        case Rejected(reason):
            return f"reject: {reason}" if reason else "reject"
        case Dismissed():
            return "cancel"


def read_answer(data: Mapping[str, Any]) -> Answer | None:
    """The answer in `data`, or None if there is none. Values are not validated here."""
    if data.get("cancel") is True:
        return Dismissed(_text(data.get("message")))
    if isinstance(values := data.get("values"), Mapping):
        return Submitted(values)
    decisions = data.get("decisions")
    decision = decisions[0] if isinstance(decisions, list) and decisions else None
    return _decision(decision) if isinstance(decision, Mapping) else None


def _decision(decision: Mapping[str, Any]) -> Answer | None:
    remember = decision.get("remember") is True
    match decision.get("type"):
        case "approve":
            return Approved(remember=remember)
        case "reject":
            return Rejected(_text(decision.get("message") or decision.get("reason")))
        case "edit":
            action = decision.get("edited_action")
            sources = (
                decision.get("args"),
                decision.get("values"),
                action.get("args") if isinstance(action, Mapping) else None,
            )
            edited = next((source for source in sources if isinstance(source, Mapping)), None)
            return None if edited is None else Approved(edited, remember)
        case _:
            return None


def _in_words(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(_in_words, value))
        case _:
            return str(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
