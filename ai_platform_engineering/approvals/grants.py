"""Grants: what a person has approved for the rest of a conversation.

A grant is an object that fits into JSON: an agent, a tool, the beginning of the arguments, and the effect of the call
that was approved. It covers calls of exactly that tool of that agent whose arguments begin the same way, whatever the
others are, unless these make the effect more severe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from ai_platform_engineering.approvals.effects import Effect, at_most
from ai_platform_engineering.forms.arguments import same_value

Grant = Mapping[str, Any]
"""`{"agent", "tool", "arguments", "effect"}`. An argument of None is one that was not given."""


def leading_arguments(args: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The first argument that the call gives, in the order of the schema, required ones first.

    Those before it come along as None: a call that gives one of them is a call of another kind.
    """
    leading: dict[str, Any] = {}
    for name in argument_order(schema, args):
        leading[name] = args.get(name)
        if leading[name] is not None:
            break
    return leading


def argument_order(schema: Mapping[str, Any], args: Iterable[str] = ()) -> list[str]:
    """The names of a tool's arguments: required ones, the others, and what a call gives beside them."""
    properties = _names(schema.get("properties"))
    required = set(_names(schema.get("required")))
    first = [name for name in properties if name in required]
    return list(dict.fromkeys(chain(first, properties, args)))


def covers(grant: Grant, agent: str, tool: str, args: Mapping[str, Any], effect: Effect) -> bool:
    """Whether the call needs no approval of its own. What is no grant covers nothing."""
    arguments = grant.get("arguments")
    return (
        grant.get("agent") == agent
        and grant.get("tool") == tool
        and at_most(effect, grant.get("effect"))
        and isinstance(arguments, Mapping)
        and all(same_value(args.get(name), value) for name, value in arguments.items())
    )


def add_grants(known: Sequence[Grant] | None, new: Sequence[Grant] | None) -> list[Grant]:
    """All grants, each once, in the order they came."""
    grants = list(known or ())
    for grant in new or ():
        if not any(same_value(grant, other) for other in grants):
            grants.append(grant)
    return grants


def _names(part: Any) -> list[str]:
    return [name for name in part if isinstance(name, str)] if isinstance(part, (Mapping, list, tuple)) else []
