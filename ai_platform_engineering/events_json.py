"""Events as JSON lines: the output of `chat --json`, and the format of recordings.

`event` is the kind of the event, as on the wire; fields with default values are left out. A recording may also have
`at`, the seconds since its start, and lines with the questions. No I/O.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Discriminator, Tag, TypeAdapter, ValidationError

from ai_platform_engineering.events import (
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    Failed,
    FinalResult,
    InputRequired,
    MessageEnded,
    PlanUpdated,
    TextDelta,
    ToolFinished,
    ToolStarted,
)


class EventFormatError(ValueError):
    """A line is not a valid event; the text says why."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and its conversation. In a recording it comes before the events of its run."""

    question: str
    context_id: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a recording; `at` is in seconds since the start of the recording."""

    item: Event | Asked
    at: float | None = None


_KINDS: Final[dict[type[Event | Asked], str]] = {
    PlanUpdated: "plan_updated",
    AgentStarted: "agent_started",
    AgentFinished: "agent_finished",
    ToolStarted: "tool_started",
    ToolFinished: "tool_finished",
    TextDelta: "text_delta",
    MessageEnded: "message_ended",
    InputRequired: "input_required",
    FinalResult: "final_result",
    Failed: "failed",
    Canceled: "canceled",
    Asked: "asked",
}


def _kind(value: Any) -> str | None:
    return value.get("event") if isinstance(value, dict) else _KINDS.get(type(value))


_ITEM: Final[TypeAdapter[Event | Asked]] = TypeAdapter(
    Annotated[
        Annotated[PlanUpdated, Tag("plan_updated")]
        | Annotated[AgentStarted, Tag("agent_started")]
        | Annotated[AgentFinished, Tag("agent_finished")]
        | Annotated[ToolStarted, Tag("tool_started")]
        | Annotated[ToolFinished, Tag("tool_finished")]
        | Annotated[TextDelta, Tag("text_delta")]
        | Annotated[MessageEnded, Tag("message_ended")]
        | Annotated[InputRequired, Tag("input_required")]
        | Annotated[FinalResult, Tag("final_result")]
        | Annotated[Failed, Tag("failed")]
        | Annotated[Canceled, Tag("canceled")]
        | Annotated[Asked, Tag("asked")],
        Discriminator(_kind),
    ]
)


def encode(item: Event | Asked) -> dict[str, Any]:
    """`item` as a JSON object."""
    fields: dict[str, Any] = _ITEM.dump_python(item, exclude_defaults=True)
    return {"event": _KINDS[type(item)], **fields}


def encode_line(item: Event | Asked, at: float | None = None) -> str:
    """`item` as one line of ASCII, without the line end."""
    head: dict[str, Any] = {} if at is None else {"at": round(at, 3)}
    return json.dumps(head | encode(item))


def decode_line(line: str | bytes) -> Line:
    try:
        data = json.loads(line)
    except ValueError:
        raise EventFormatError("This is not JSON; a recording has one JSON object a line.") from None
    if not isinstance(data, dict):
        raise EventFormatError("This is not a JSON object; a recording has one a line.")
    kind = data.get("event")
    if kind not in _KINDS.values():
        raise EventFormatError(f"The value of `event`, {kind!r}, is none of {', '.join(_KINDS.values())}.")
    at = data.get("at")
    if at is not None and (isinstance(at, bool) or not isinstance(at, int | float)):
        raise EventFormatError(f"The value of `at`, {at!r}, is not a number of seconds.")
    try:
        item = _ITEM.validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise EventFormatError(_sentence(str(kind), error)) from None
    return Line(item, None if at is None else float(at))


def _sentence(kind: str, error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in problem["loc"][1:])
    return f"The {kind} event has a wrong `{place}`: {problem['msg'].lower()}."
