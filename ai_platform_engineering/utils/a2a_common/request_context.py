"""Who asks, in which conversation, under which trace: what goes with a request into graphs, tools and remote agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from a2a.types.a2a_pb2 import Message

from ai_platform_engineering.utils.a2a_common.caller import ANONYMOUS, Caller

MAX_INSTRUCTIONS_LENGTH: Final = 4_000
"""Characters of what the owners of a channel may want."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """`stream_text` is off for a caller that wants only the final result of what this agent writes. `delegated` is on
    for work that a supervisor hands on: once it has ended, nobody comes back to it. `approvals` are the kinds of action
    that need no further approval; `step` is the step of a workflow that this work is, if it is one. `instructions` are
    what the owners of the place want where this was asked; with `silent_when_unsure` nobody there waits for an answer,
    and none is better than a poor one. `resumed` is on for a run that waited for a person and goes on. `user` is the
    name that the client gives; `caller` is what the server has verified. `skills` are those that a supervisor hands to
    an agent, with their contents; None where the agent uses its own catalog."""

    context_id: str
    task_id: str
    trace_id: str
    user: str | None = None
    auth_token: str | None = field(default=None, repr=False)
    stream_text: bool = True
    stream_sub_agent_text: bool = False
    delegated: bool = False
    approvals: tuple[Mapping[str, Any], ...] = ()
    step: Mapping[str, Any] | None = None
    instructions: str = ""
    silent_when_unsure: bool = False
    resumed: bool = False
    caller: Caller = ANONYMOUS
    skills: tuple[Mapping[str, Any], ...] | None = None


TO_CONVERSATION: Final = "to_conversation"
"""Metadata of a message that names the conversation, and not the task whose form is open."""


def is_to_conversation(message: Message) -> bool:
    """Whether a message may be a new question, so that only a plain answer counts as one."""
    return TO_CONVERSATION in message.metadata and message.metadata[TO_CONVERSATION] is True


def is_delegated(message: Message) -> bool:
    """Whether a supervisor says it, about work that it hands on."""
    return "delegated" in message.metadata and message.metadata["delegated"] is True
