"""Who may answer a form in Slack, where everybody in a channel sees it.

A form is answered by the person who asked for the work, or by anyone where the channel says so. Where the channel has
approvers they may answer it, too, and decisions about actions are theirs alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.decisions import is_approval
from ai_platform_engineering.integrations.slack_bot.channels import Channel
from ai_platform_engineering.integrations.slack_bot.places import Person

_NAMED: Final = 5


def may_answer(form: Form, asked_by: Person, person: Person, channel: Channel) -> str | None:
    """None if `person` may; otherwise the sentence to show them, in Slack's markup."""
    # People are known by their ids alone: somebody from another workspace is reported under one team here and another
    # there, but no two members of a channel have the same id.
    if person.id in channel.approvers:
        return None
    if channel.approvers and is_approval(form):
        return f"Only {_people(channel.approvers)} may decide this."
    if channel.forms == "anyone" or person.id == asked_by.id:
        return None
    if not asked_by.is_bot:
        return f"Only {_people([asked_by.id, *channel.approvers])} may answer this."
    if channel.approvers:
        return f"Only {_people(channel.approvers)} may answer this."
    return (
        "Another bot asked for this, and no people are named who may answer. Whoever set me up here can name approvers."
    )


def _people(ids: Sequence[str]) -> str:
    names = [f"<@{one}>" for one in dict.fromkeys(ids)]
    if len(names) > _NAMED:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
