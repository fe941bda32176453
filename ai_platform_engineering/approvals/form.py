"""The form with which a person approves or rejects a tool call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ai_platform_engineering.approvals.effects import Effect
from ai_platform_engineering.approvals.record import DIGEST, call_digest
from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.arguments import in_words, masked_arguments

_EFFECTS: Final[Mapping[Effect, str]] = {
    "read": "This only reads.",
    "write": "This may change things; it is not destructive.",
    "destructive": "This is destructive: it can delete or overwrite things.",
}
_LIMITS: Final[Mapping[Effect, str]] = {
    "read": ", as long as it only reads",
    "write": ", unless it is destructive",
    "destructive": "",
}


def approval_form(
    agent: str,
    title: str,
    tool: str,
    args: Mapping[str, Any],
    leading: Mapping[str, Any],
    effect: Effect,
    why: str = "",
) -> Form:
    """`title` is the agent's name for people. `leading` are the arguments that a later call must share to be covered by
    a grant. `effect` is the effect of this call. `why` is a sentence about why it needs approval."""
    about = f"{_EFFECTS[effect]} {why}".rstrip()
    call = f"call {tool}{f' with {words}' if (words := in_words(args)) else ''}"
    request = {
        "agent": agent,
        "tool": tool,
        "args": masked_arguments(args),
        DIGEST: call_digest(agent, tool, args),
        "description": f"{call[0].upper()}{call[1:]}. {about}",
        "effect": effect,
        "remember": masked_arguments(leading),
    }
    return Form(
        form_id="",
        title=f"Approve {tool}?",
        description=f"{title} wants to {call}. {about}",
        agent=agent,
        action_requests=(request,),
        fields=(
            FormField("decision", "select", "Whether the call may be made.", field_values=("approve", "reject")),
            FormField("reason", "text", "Why it is rejected. The agent gets the reason.", required=False),
            FormField("remember", "boolean", _remembered(tool, leading, effect), required=False),
        ),
    )


def _remembered(tool: str, leading: Mapping[str, Any], effect: Effect) -> str:
    words = in_words(leading)
    link = "" if not words else " " if words.startswith("without ") else " with "
    return f"Also approve every later call of {tool}{link}{words} in this conversation{_LIMITS[effect]}."
