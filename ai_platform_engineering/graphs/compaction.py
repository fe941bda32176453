"""Makes the messages of a conversation shorter: pure functions over messages.

A turn is a question with all messages up to the next question. Older turns are replaced by one summary. The current
turn keeps its messages, because other middleware counts its calls; its long results are shortened, and `read_result`
still reads all of them. A call is never separated from its results.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from ai_platform_engineering.graphs.history import call_groups
from ai_platform_engineering.graphs.long_results import READ_TOOL, part
from ai_platform_engineering.graphs.untrusted import TAINT, sources_in
from ai_platform_engineering.runs.plan import PLAN_TOOL
from ai_platform_engineering.utils.summaries import summary_details, summary_message

KEPT_TURNS: Final = 3
"""Maximum number of turns before the current one that are kept as they are."""

MAX_SUMMARY_CHARS: Final = 12_000

_SHORT_RESULT_CHARS: Final = 500
_MAX_QUESTIONS: Final = 20
_QUESTION_CHARS: Final = 200
_MAX_RESULTS: Final = 40
_MIN_TRANSCRIPT_PIECE: Final = 100
_RESULT_ID: Final = re.compile(rf'{READ_TOOL}\(result_id="(\w+)"')

Size = Callable[[AnyMessage], float]


@dataclass(frozen=True, slots=True)
class Split:
    """`older` is to be summarised. `kept` is the rest; its first `before` messages come before the older ones."""

    older: tuple[AnyMessage, ...]
    kept: tuple[AnyMessage, ...]
    before: int = 0

    @property
    def turns(self) -> int:
        """The number of older turns, without those that an earlier summary already stands for."""
        return sum(_is_question(message) for message in self.older)


def split(messages: Sequence[AnyMessage], size: Size, budget: float) -> Split:
    """Keep the current turn, and as many turns before it as fit into `budget` together with it.

    Also kept are instructions at the start, and calls without a result together with the results of the same message.
    An earlier summary stays if there is no older turn to add to it.
    """
    starts = [place for place, message in enumerate(messages) if _is_question(message)]
    if not starts:
        return Split((), tuple(messages))
    first = starts.pop()
    budget -= sum(map(size, messages[first:]))
    for start in reversed(starts[-KEPT_TURNS:]):
        budget -= sum(map(size, messages[start:first]))
        if budget < 0:
            break
        first = start
    opening = 0
    while isinstance(messages[opening], SystemMessage):
        opening += 1
    older = {id(message) for message in messages[opening:first]}
    for turn, results, is_complete in call_groups(messages):
        if id(turn) in older:
            group = {id(turn), *map(id, results)}
            # Results may be stored after a later question.
            older = older | group if is_complete else older - group
    if not any(_is_question(message) and id(message) in older for message in messages):
        return Split((), tuple(messages))
    places = [place for place, message in enumerate(messages) if id(message) in older]
    return Split(
        tuple(messages[place] for place in places),
        tuple(message for message in messages if id(message) not in older),
        places[0],
    )


def summarised(parts: Split, text: str | None) -> list[AnyMessage]:
    """The conversation with a summary in place of its older turns. Without a text, the summary lists the questions.

    The summary replaces the message whose id it takes, so it has the same position in the stored conversation.
    """
    details = _details(parts)
    if text is None:
        content = _dropped_text(details)
    else:
        details["text"] = text[:MAX_SUMMARY_CHARS]
        content = f"(Summary of the earlier conversation, for your information. It is not a request.)\n\n{text}"
    sections = [content[: MAX_SUMMARY_CHARS + _QUESTION_CHARS], *_sections(details)]
    summary = summary_message("\n\n".join(sections), details, parts.older[0].id)
    return [*parts.kept[: parts.before], summary, *parts.kept[parts.before :]]


def transcript(messages: Sequence[AnyMessage], max_chars: float) -> str:
    """The messages as text. Each is cut to the same length, so that the whole is at most about `max_chars` long."""
    pieces = [piece for message in messages for piece in _pieces(message)]
    longest = max(map(len, pieces), default=0)
    while longest > _MIN_TRANSCRIPT_PIECE and sum(min(len(piece), longest) for piece in pieces) > max_chars:
        longest //= 2
    text = "\n\n".join(_clipped(piece, max(longest, _MIN_TRANSCRIPT_PIECE)) for piece in pieces)
    return text if len(text) <= max_chars else text[-int(max_chars) :]


def shortened(
    messages: Sequence[AnyMessage], size: Size, excess: float, results: Mapping[str, str], *, last_step: bool = False
) -> tuple[list[AnyMessage], dict[str, str]]:
    """Shorten results of the current turn, the oldest first, until `excess` is saved.

    Returns the messages, and the complete texts that are not among the stored `results` yet. The results of the last
    step are shortened only with `last_step`.
    """
    changed = [*messages]
    stored: dict[str, str] = {}
    first = max((place for place, message in enumerate(messages) if _is_question(message)), default=-1)
    last_call = max((place for place, message in enumerate(messages) if isinstance(message, AIMessage)), default=-1)
    for place in range(first + 1, len(messages) if last_step else max(last_call, first + 1)):
        message = messages[place]
        if excess <= 0:
            break
        if not isinstance(message, ToolMessage) or len(text := str(message.text)) <= 2 * _SHORT_RESULT_CHARS:
            continue
        result_id, whole = _stored_result(text, results)
        if result_id not in results:
            stored[result_id] = whole
        new = message.model_copy(update={"content": part(whole, result_id, 0, _SHORT_RESULT_CHARS)})
        excess -= size(message) - size(new)
        changed[place] = new
    return changed, stored


def state_update(before: Sequence[AnyMessage], after: Sequence[AnyMessage]) -> list[BaseMessage]:
    """The messages with which LangGraph's `add_messages` changes `before` into `after`."""
    known = {message.id: message for message in before}
    remaining = {message.id for message in after}
    removed = [RemoveMessage(id=str(message.id)) for message in before if message.id not in remaining]
    return [*removed, *(message for message in after if known.get(message.id) is not message)]


def _is_question(message: AnyMessage) -> bool:
    return isinstance(message, HumanMessage) and summary_details(message) is None


def _stored_result(text: str, results: Mapping[str, str]) -> tuple[str, str]:
    """The id of a result, and its complete text. A result that was cut before is stored under the id in its note."""
    found = _RESULT_ID.findall(text)
    whole = results.get(found[-1]) if found else None
    if whole is not None and whole.startswith(text[:_SHORT_RESULT_CHARS]):
        return found[-1], whole
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8], text


def _details(parts: Split) -> dict[str, Any]:
    """The parts of a summary that are not left to the model, with those of an earlier summary."""
    earlier = next((found for message in parts.older if (found := summary_details(message)) is not None), {})
    questions = [_clipped(str(message.text), _QUESTION_CHARS) for message in parts.older if _is_question(message)]
    results: dict[str, str] = {**earlier.get("results", {})}
    for message in parts.older:
        if isinstance(message, ToolMessage):
            results |= dict.fromkeys(_RESULT_ID.findall(str(message.text)), message.name or "tool")
    details: dict[str, Any] = {
        "turns": earlier.get("turns", 0) + parts.turns,
        "questions": [*earlier.get("questions", ()), *questions][-_MAX_QUESTIONS:],
        "results": dict([*results.items()][-_MAX_RESULTS:]),
        "text": earlier.get("text", ""),
    }
    if sources := [*dict.fromkeys(sources_in(parts.older))]:
        details[TAINT] = sources
    if not any(True for _ in _plans(parts.kept)) and (plan := next(_plans(parts.older), earlier.get("plan"))):
        details["plan"] = plan
    return details


def _plans(messages: Sequence[AnyMessage]) -> Iterator[Mapping[str, Any]]:
    """The arguments of the calls that wrote a plan, newest first."""
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            yield from (call["args"] for call in reversed(message.tool_calls) if call["name"] == PLAN_TOOL)


def _dropped_text(details: Mapping[str, Any]) -> str:
    before = f"Before that:\n{details['text']}\n\n" if details["text"] else ""
    questions = "\n".join(f"- {question}" for question in details["questions"])
    return (
        f"(The earlier part of this conversation, {details['turns']} turns, no longer fits and was removed. Look up "
        f"its results again if you need them.)\n\n{before}The person had asked:\n{questions}"
    )


def _sections(details: Mapping[str, Any]) -> Iterator[str]:
    plan = details.get("plan")
    if isinstance(plan, Mapping) and isinstance(steps := plan.get("steps"), list):
        yield "\n".join([f"Your plan: {plan.get('title') or ''}".rstrip(), *map(_step, steps)])
    if details["results"]:
        lines = [f'- {tool}: {READ_TOOL}(result_id="{key}", offset=0)' for key, tool in details["results"].items()]
        yield "\n".join(["Long results that you can still read:", *lines])


def _step(step: Any) -> str:
    if not isinstance(step, Mapping):
        return f"- {step}"
    agent = f" ({step['agent']})" if step.get("agent") else ""
    return f"- [{step.get('status', 'pending')}] {step.get('content', '')}{agent}"


def _pieces(message: AnyMessage) -> Iterator[str]:
    text = str(message.text).strip()
    match message:
        case HumanMessage() if (details := summary_details(message)) is not None:
            yield f"Summary of what came before: {details.get('text') or text}"
        case HumanMessage():
            yield f"Person: {text}"
        case AIMessage():
            if text:
                yield f"Assistant: {text}"
            for call in message.tool_calls:
                yield f"Assistant calls {call['name']}: {json.dumps(call['args'], ensure_ascii=False, default=str)}"
        case ToolMessage():
            failed = " (failed)" if message.status == "error" else ""
            yield f"Result of {message.name or 'the call'}{failed}: {text}"
        case _ if text:
            yield text


def _clipped(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
