"""Parse a list of messages into exchanges: question, tool calls with their results, answer.

Also parses the decisions of people about a call: rejected, made with other arguments, or its form canceled. Tool
results state rejections and cancellations in fixed sentences.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage

from ai_platform_engineering.approvals.edited_call import edited_arguments_of, output_of
from ai_platform_engineering.utils.summaries import summary_details

EPOCH = datetime.fromtimestamp(0, UTC)
MAX_QUESTION = 4000
"""Characters of a question that are used. Matching more text would only take longer."""
_REJECTED = re.compile(r"^\s*A person rejected this call(?::\s*(?P<reason>\S.*?)|\.?)\s*$", re.S)
_CANCELED = re.compile(
    r"^\s*The person canceled the form(?::\s*(?P<reason>\S.*?)|\.?)(?:\s+The workflow\b[^\n]*)?\s*$", re.S
)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call in the history. `result` is None while it is pending; `edited` are a person's changed arguments."""

    name: str
    arguments: Mapping[str, Any]
    result: str | None = None
    failed: bool = False
    edited: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question, the tool calls made for it, and the answer (empty while the exchange is in progress)."""

    question: str
    uses: tuple[ToolUse, ...] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class ParsedConversation:
    instructions: str
    earlier: tuple[Exchange, ...]
    current: Exchange
    instruction: str = ""
    """The last message, when it instructs the model to stop calling tools and to answer with the results so far."""
    now: datetime = EPOCH
    """The current time, for phrases like "last week"."""

    @property
    def must_answer_now(self) -> bool:
        return bool(self.instruction)


@dataclass(slots=True)
class _Draft:
    question: str
    uses: list[ToolUse] = field(default_factory=list)
    pending: dict[str, list[int]] = field(default_factory=dict)
    """By call id: positions in `uses` that wait for a result, in the order of the calls."""
    answer: str = ""

    def exchange(self) -> Exchange:
        return Exchange(self.question, tuple(self.uses), self.answer)

    def add_calls(self, calls: Sequence[ToolCall]) -> None:
        """Add calls. Some models reuse ids in every turn, so an id refers to the last call that has it."""
        positions: defaultdict[str, list[int]] = defaultdict(list)
        for call in calls:
            positions[call["id"] or ""].append(len(self.uses))
            self.uses.append(ToolUse(call["name"], call["args"]))
        self.pending |= positions

    def add_result(self, result: ToolMessage) -> None:
        positions = self.pending.get(result.tool_call_id)
        if positions:
            position = positions.pop(0) if len(positions) > 1 else positions[0]
            self.uses[position] = replace(
                self.uses[position],
                result=output_of(result),
                failed=result.status == "error",
                edited=edited_arguments_of(result),
            )


def parse_conversation(
    messages: Sequence[BaseMessage], *, may_use_tools: bool, now: datetime = EPOCH
) -> ParsedConversation:
    """Group messages into exchanges.

    When a model must stop calling tools, its last message is an instruction in the role of the person. It belongs to
    the question before it, unless that one has been answered.
    """
    instructions: list[str] = []
    drafts: list[_Draft] = []
    instruction = ""
    for position, message in enumerate(messages):
        match message:
            case SystemMessage():
                instructions.append(str(message.text))
            case HumanMessage() if summary_details(message) is not None:
                pass  # written for another model, about turns that are gone
            case HumanMessage():
                is_last = position == len(messages) - 1
                if is_last and not may_use_tools and drafts and not drafts[-1].answer:
                    instruction = str(message.text) or "Answer now."
                else:
                    drafts.append(_Draft(str(message.text)[:MAX_QUESTION]))
            case AIMessage() if drafts:
                drafts[-1].add_calls(message.tool_calls)
                if not message.tool_calls:
                    drafts[-1].answer = str(message.text)
            case ToolMessage() if drafts:
                drafts[-1].add_result(message)
            case _:
                pass
    if not drafts:
        drafts.append(_Draft(""))
    *earlier, current = [draft.exchange() for draft in drafts]
    return ParsedConversation("\n".join(instructions), tuple(earlier), current, instruction, now)


def rejection_reason(use: ToolUse) -> str | None:
    """Why a person rejected the call: "" without a reason, None for a call that was not rejected."""
    return _reason(_REJECTED, use.result) if use.failed else None


def cancellation_reason(use: ToolUse) -> str | None:
    """Why a person canceled the form: "" without a reason, None for a form that was not canceled."""
    return _reason(_CANCELED, use.result)


def with_edited_arguments(use: ToolUse) -> ToolUse:
    """The call with the arguments it was made with: a person may have changed them."""
    return use if use.edited is None else replace(use, arguments={**use.arguments, **use.edited}, edited=None)


def _reason(pattern: re.Pattern[str], result: str | None) -> str | None:
    match = pattern.match(result or "")
    return " ".join((match["reason"] or "").split()) if match else None
