"""Grants: approvals that hold for the rest of a conversation.

A grant is a JSON object: agent, tool, leading arguments, and the effect of the approved call. It covers calls of the
same tool of the same agent with the same leading arguments, as long as their effect is not more severe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from ai_platform_engineering.approvals.effects import Effect, at_most
from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer, Approved
from ai_platform_engineering.forms.arguments import same_value

Grant = Mapping[str, Any]
"""`{"agent", "tool", "arguments", "effect"}`. None stands for an argument that was not given."""

GRANTS: Final = "approvals"
"""The key of the grants in the state of a conversation."""


def leading_arguments(args: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The first given argument in the order of the schema, required ones first.

    The arguments before it are included as None: a grant does not cover a call that gives one of them.
    """
    leading: dict[str, Any] = {}
    for name in argument_order(schema, args):
        leading[name] = args.get(name)
        if leading[name] is not None:
            break
    return leading


def argument_order(schema: Mapping[str, Any], args: Iterable[str] = ()) -> list[str]:
    """The names of a tool's arguments: required ones, optional ones, then arguments of the call that are not in the
    schema."""
    properties = _names(schema.get("properties"))
    required = set(_names(schema.get("required")))
    first = [name for name in properties if name in required]
    return list(dict.fromkeys(chain(first, properties, args)))


def granted_by(form: Form, answer: Answer) -> tuple[Mapping[str, Any], ...]:
    """The grants in an answer to a form.

    An approval with edited arguments gives none: a grant would cover the call with its original arguments.
    """
    if not isinstance(answer, Approved) or not answer.remember or answer.arguments is not None:
        return ()
    return tuple(
        {
            "agent": request.get("agent"),
            "tool": request.get("tool"),
            "arguments": dict(leading),
            "effect": request.get("effect"),
        }
        for request in form.action_requests
        if isinstance(leading := request.get("remember"), Mapping)
    )


def covers(grant: Grant, agent: str, tool: str, args: Mapping[str, Any], effect: Effect) -> bool:
    """Whether the call needs no approval. An invalid grant covers nothing."""
    arguments = grant.get("arguments")
    return (
        grant.get("agent") == agent
        and grant.get("tool") == tool
        and at_most(effect, grant.get("effect"))
        and isinstance(arguments, Mapping)
        and all(same_value(args.get(name), value) for name, value in arguments.items())
    )


def add_grants(known: Sequence[Grant] | None, new: Sequence[Grant] | None) -> list[Grant]:
    """All grants in order, without duplicates."""
    grants = list(known or ())
    for grant in new or ():
        if not any(same_value(grant, other) for other in grants):
            grants.append(grant)
    return grants


def _names(part: Any) -> list[str]:
    return [name for name in part if isinstance(name, str)] if isinstance(part, (Mapping, list, tuple)) else []
