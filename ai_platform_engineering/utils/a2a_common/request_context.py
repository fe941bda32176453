"""The context of a request: caller, conversation, trace and options. Graphs, tools and remote agents get it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from a2a.types.a2a_pb2 import Message

from ai_platform_engineering.utils.a2a_common.caller import ANONYMOUS, Caller

MAX_INSTRUCTIONS_LENGTH: Final = 4_000
"""Characters of the instructions of a channel's owners."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    context_id: str
    task_id: str
    trace_id: str
    user: str | None = None
    """The user that the client names. `caller` is the identity that the server has verified."""
    auth_token: str | None = field(default=None, repr=False)
    stream_text: bool = True
    """False if the caller wants only the final result of this agent."""
    stream_sub_agent_text: bool = False
    delegated: bool = False
    """A supervisor delegates this work. No later message comes to its conversation."""
    approvals: tuple[Mapping[str, Any], ...] = ()
    """The kinds of actions that need no further approval."""
    step: Mapping[str, Any] | None = None
    """The workflow step that this work carries out."""
    instructions: str = ""
    """Instructions of the owners of the channel in which the question was asked."""
    silent_when_unsure: bool = False
    """The question was not addressed to the supervisor: no answer is better than a poor one."""
    resumed: bool = False
    """The run continues after a person answered its form."""
    caller: Caller = ANONYMOUS
    skills: tuple[Mapping[str, Any], ...] | None = None
    """The skills that a supervisor gives to an agent, in full; None if the agent uses its own catalog."""


TO_CONVERSATION: Final = "to_conversation"
"""Metadata key of a message that names its conversation, but not the task whose form is open."""


def is_to_conversation(message: Message) -> bool:
    """Whether a message may be a new question, so that only a clear answer counts as an answer to a form."""
    return TO_CONVERSATION in message.metadata and message.metadata[TO_CONVERSATION] is True


def is_delegated(message: Message) -> bool:
    """Whether a supervisor delegates work with this message."""
    return "delegated" in message.metadata and message.metadata["delegated"] is True
