from __future__ import annotations

from dataclasses import replace

import pytest

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.integrations.slack_bot.channels import Channel
from ai_platform_engineering.integrations.slack_bot.permissions import may_answer
from ai_platform_engineering.integrations.slack_bot.places import SlackUser

ACTION = {"name": "delete_application", "args": {"name": "shop"}}
DETAILS = Form("f1", "Create a repository", (FormField("name", "text"),))
APPROVAL = Form("f2", "Delete the application", action_requests=(ACTION,))
SHOWS_AN_ACTION = replace(DETAILS, action_requests=(ACTION,))
"""It asks for values, and only says what they are for."""

ADA, BOB, EVE = (SlackUser("T1", name) for name in ("UADA", "UBOB", "UEVE"))
OPEN = Channel()
GUARDED = Channel(approvers=("UBOB",))


@pytest.mark.parametrize(
    ("form", "person", "channel"),
    [
        (DETAILS, ADA, OPEN),
        (APPROVAL, ADA, OPEN),
        (DETAILS, ADA, GUARDED),
        (DETAILS, BOB, GUARDED),
        (APPROVAL, BOB, GUARDED),
        (SHOWS_AN_ACTION, ADA, GUARDED),
        (DETAILS, EVE, Channel(forms="anyone")),
        (APPROVAL, EVE, Channel(forms="anyone")),
        (DETAILS, EVE, Channel(forms="anyone", approvers=("UBOB",))),
        (DETAILS, replace(ADA, team="T2"), OPEN),
        (APPROVAL, ADA, Channel(approvers=("UBOB", "UADA"))),
    ],
)
def test_these_may_answer(form: Form, person: SlackUser, channel: Channel) -> None:
    assert may_answer(form, ADA, person, channel) is None


@pytest.mark.parametrize(
    ("form", "person", "channel", "said"),
    [
        (DETAILS, EVE, OPEN, "Only <@UADA> may answer this."),
        (APPROVAL, EVE, OPEN, "Only <@UADA> may answer this."),
        (DETAILS, EVE, GUARDED, "Only <@UADA> and <@UBOB> may answer this."),
        (DETAILS, EVE, Channel(approvers=("UADA", "UBOB")), "Only <@UADA> and <@UBOB> may answer this."),
        (APPROVAL, ADA, GUARDED, "Only <@UBOB> may decide this."),
        (APPROVAL, EVE, Channel(forms="anyone", approvers=("UBOB",)), "Only <@UBOB> may decide this."),
        (
            APPROVAL,
            ADA,
            Channel(approvers=tuple(f"U{number}" for number in range(9))),
            "Only <@U0>, <@U1>, <@U2>, <@U3>, <@U4> and 4 more may decide this.",
        ),
    ],
)
def test_these_may_not_and_are_told_who_may(form: Form, person: SlackUser, channel: Channel, said: str) -> None:
    assert may_answer(form, ADA, person, channel) == said


def test_what_another_bot_asked_for() -> None:
    alerts = SlackUser("T1", "BALERT", is_bot=True)
    refused = may_answer(DETAILS, alerts, EVE, OPEN)
    assert refused is not None
    assert "Another bot asked for this" in refused
    assert may_answer(DETAILS, alerts, EVE, GUARDED) == "Only <@UBOB> may answer this."
    assert may_answer(DETAILS, alerts, BOB, GUARDED) is None
    assert may_answer(DETAILS, alerts, EVE, Channel(forms="anyone")) is None
