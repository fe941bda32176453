"""Who asks, in which conversation, under which trace: what goes with a request into graphs, tools and remote agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class RequestContext:
    """`stream_text` is off for a caller that wants only the final result of what this agent writes. `delegated` is on
    for work that a supervisor hands on: once it has ended, nobody comes back to it. `approvals` are the kinds of action
    that need no further approval; `step` is the step of a workflow that this work is, if it is one."""

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
