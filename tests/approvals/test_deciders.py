"""Who may approve a tool call."""

import pytest

from ai_platform_engineering.approvals.deciders import Deciders
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal

ALICE = Principal("statement", "slack:T1/U1", frozenset({"dev"}))
BOB = Principal("token", "bob", frozenset({"sre", "dev"}))


def test_without_names_everybody_may_approve() -> None:
    assert Deciders().refusal(ANONYMOUS, ANONYMOUS) is None
    assert Deciders.parse(" , ").anybody


@pytest.mark.parametrize(
    ("names", "who", "words"),
    [
        ("slack:T1/U1", BOB, "Only slack:T1/U1 may approve this. You are bob."),
        ("group:sre", ALICE, "Only members of sre may approve this. You are slack:T1/U1."),
        ("group:sre, bob", ANONYMOUS, "Only bob and members of sre may approve this. You are not signed in"),
    ],
)
def test_a_principal_that_is_not_named_is_told_who_may_approve(names: str, who: Principal, words: str) -> None:
    refusal = Deciders.parse(names).refusal(who, ALICE)
    assert refusal is not None
    assert refusal.startswith(words)


def test_a_subject_and_a_group_may_approve() -> None:
    assert Deciders.parse("slack:T1/U1").refusal(ALICE, BOB) is None
    assert Deciders.parse("group:sre").refusal(BOB, ALICE) is None


def test_four_eyes_refuse_the_requester() -> None:
    deciders = Deciders(four_eyes=True)
    refusal = deciders.refusal(ALICE, ALICE)
    assert refusal is not None
    assert "another person has to approve it" in refusal
    assert deciders.refusal(BOB, ALICE) is None
    # The same person in a named group, and two callers that nobody can tell apart.
    assert Deciders.parse("group:sre", four_eyes=True).refusal(BOB, BOB) is not None
    assert deciders.refusal(ANONYMOUS, ANONYMOUS) is not None


def test_a_long_list_names_some() -> None:
    words = Deciders(frozenset("abcdefg")).in_words()
    assert words == "Only a, b, c, d, e and 2 more may approve this."


def test_json_goes_in_and_out() -> None:
    deciders = Deciders.parse("bob,group:sre", four_eyes=True)
    assert Deciders.read(deciders.facts()) == deciders


@pytest.mark.parametrize(
    "facts", [{}, {"subjects": [], "groups": []}, {"subjects": [1], "groups": [], "four_eyes": False}]
)
def test_damaged_json_allows_nobody(facts: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="deciders"):
        Deciders.read(facts)
