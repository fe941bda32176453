"""What a person can say to a form, and the one JSON shape of it: on the wire, and as what a waiting graph is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Submitted:
    """The form was filled in; the values fit it."""

    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Approved:
    """The action may go on, with other `arguments` if some are given. `remember` is for this kind of action, until
    the conversation ends."""

    arguments: Mapping[str, Any] | None = None
    remember: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """The action may not go on."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Dismissed:
    """The person does not want to fill in the form."""

    reason: str = ""


Answer = Submitted | Approved | Rejected | Dismissed


def answer_data(answer: Answer) -> dict[str, Any]:
    """`answer` as the object that stands behind `resume`, without the id of the form."""
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


def answer_text(answer: Answer) -> str:
    """`answer` in the words that a person would write."""
    match answer:
        case Submitted(values) if len(values) == 1:
            return _words(next(iter(values.values())))
        case Submitted(values):
            return "\n".join(f"{name}: {_words(value)}" for name, value in values.items())
        case Approved(None, remember):
            return "approve always" if remember else "approve"
        case Approved(arguments):
            return f"approve with {json.dumps(arguments, ensure_ascii=False, default=str)}"
        case Rejected(reason):
            return f"reject: {reason}" if reason else "reject"
        case Dismissed():
            return "cancel"


def read_answer(data: Mapping[str, Any]) -> Answer | None:
    """The answer in `data`, or None where there is none. Values are as they were sent: nothing is checked here."""
    if data.get("cancel") is True:
        return Dismissed(_text(data.get("message")))
    if isinstance(values := data.get("values"), Mapping):
        return Submitted(values)
    decisions = data.get("decisions")
    decision = decisions[0] if isinstance(decisions, list) and decisions else None
    return _decided(decision) if isinstance(decision, Mapping) else None


def _decided(decision: Mapping[str, Any]) -> Answer | None:
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


def _words(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(_words, value))
        case _:
            return str(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
