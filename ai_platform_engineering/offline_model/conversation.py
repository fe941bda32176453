"""Reading a list of messages: who asked what, which tools were used for it, what was answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage

from ai_platform_engineering.approvals.edited_call import edited_arguments_of, output_of

EPOCH = datetime.fromtimestamp(0, UTC)
MAX_QUESTION = 4000
"""Characters of a question that are read: matching words in more would take long and find nothing new."""


@dataclass(frozen=True, slots=True)
class Use:
    """A tool call that was made. `result` is None while there is none; `edited` are a person's arguments for it."""

    name: str
    arguments: Mapping[str, Any]
    result: str | None = None
    failed: bool = False
    edited: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question, what was done for it, and the answer (empty while it is being worked on)."""

    question: str
    uses: tuple[Use, ...] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    instructions: str
    earlier: tuple[Exchange, ...]
    current: Exchange
    instruction: str = ""
    """What the model was told last when it was told to stop working and to answer from what there is."""
    now: datetime = EPOCH
    """The moment from which "last week" is counted."""

    @property
    def cut_short(self) -> bool:
        return bool(self.instruction)


@dataclass(slots=True)
class _Draft:
    question: str
    uses: list[Use] = field(default_factory=list)
    waiting: dict[str, list[int]] = field(default_factory=dict)
    """The places of the last calls with an id, first the one whose result comes next."""
    answer: str = ""

    def exchange(self) -> Exchange:
        return Exchange(self.question, tuple(self.uses), self.answer)

    def call(self, calls: Sequence[ToolCall]) -> None:
        """Some models number the calls of every turn anew: an id means the last call that has it."""
        places: defaultdict[str, list[int]] = defaultdict(list)
        for call in calls:
            places[call["id"] or ""].append(len(self.uses))
            self.uses.append(Use(call["name"], call["args"]))
        self.waiting |= places

    def take(self, result: ToolMessage) -> None:
        places = self.waiting.get(result.tool_call_id)
        if places:
            place = places.pop(0) if len(places) > 1 else places[0]
            self.uses[place] = replace(
                self.uses[place],
                result=output_of(result),
                failed=result.status == "error",
                edited=edited_arguments_of(result),
            )


def read_conversation(messages: Sequence[BaseMessage], *, may_use_tools: bool, now: datetime = EPOCH) -> Conversation:
    """Group messages into exchanges.

    A model that may not use tools any more gets an instruction as its last message, in the person's role: it belongs
    to the question before it when that was not answered yet.
    """
    instructions: list[str] = []
    drafts: list[_Draft] = []
    instruction = ""
    for position, message in enumerate(messages):
        match message:
            case SystemMessage():
                instructions.append(str(message.text))
            case HumanMessage():
                is_last = position == len(messages) - 1
                if is_last and not may_use_tools and drafts and not drafts[-1].answer:
                    instruction = str(message.text) or "Answer now."
                else:
                    drafts.append(_Draft(str(message.text)[:MAX_QUESTION]))
            case AIMessage() if drafts:
                drafts[-1].call(message.tool_calls)
                if not message.tool_calls:
                    drafts[-1].answer = str(message.text)
            case ToolMessage() if drafts:
                drafts[-1].take(message)
            case _:
                pass
    if not drafts:
        drafts.append(_Draft(""))
    *earlier, current = [draft.exchange() for draft in drafts]
    return Conversation("\n".join(instructions), tuple(earlier), current, instruction, now)
