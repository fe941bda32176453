"""Who may answer a form in Slack, where everyone in the channel sees it.

The requester may answer, or anyone if the channel allows it. A channel's approvers may answer every form, and only they
may decide approvals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.decisions import is_approval
from ai_platform_engineering.integrations.slack_bot.channels import Channel
from ai_platform_engineering.integrations.slack_bot.places import SlackUser

_MAX_NAMES: Final = 5


def may_answer(form: Form, asked_by: SlackUser, person: SlackUser, channel: Channel) -> str | None:
    """None if `person` may; otherwise the sentence to show them, in Slack's markup."""
    # Only user ids are compared. Slack reports a user from another workspace under different teams, but user ids are
    # unique within a channel.
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
        "Another bot asked for this, and no person is set who may answer. The operator of this bot can set approvers."
    )


def _people(ids: Sequence[str]) -> str:
    names = [f"<@{one}>" for one in dict.fromkeys(ids)]
    if len(names) > _MAX_NAMES:
        names = [*names[:_MAX_NAMES], f"{len(names) - _MAX_NAMES} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
