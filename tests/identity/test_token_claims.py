from __future__ import annotations

from typing import Any

import pytest

from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.identity.token_claims import (
    MAX_GROUP_LENGTH,
    MAX_GROUPS,
    ClaimRules,
    UnusableClaimsError,
    groups_in,
)

NAMESPACED = "https://acme.example/groups"


@pytest.mark.parametrize("subject", ["key", "key:ci", "", " ", None, 7, "a\nb", "x" * 256])
def test_a_token_that_identifies_nobody_is_refused(subject: object) -> None:
    with pytest.raises(UnusableClaimsError, match="no usable subject"):
        ClaimRules().principal({"sub": subject})


@pytest.mark.parametrize(
    ("claims", "path"),
    [
        ({"groups": ["a", "b"]}, "groups"),
        ({"groups": " a  b "}, "groups"),
        ({"groups": ["a", 7, "", None, "x" * (MAX_GROUP_LENGTH + 1), "b"]}, "groups"),
        ({"realm_access": {"roles": ["a", "b"]}}, "realm_access.roles"),
        ({NAMESPACED: ["a", "b"]}, NAMESPACED),
    ],
)
def test_groups_are_a_list_or_a_text(claims: dict[str, Any], path: str) -> None:
    assert groups_in(claims, path) == {"a", "b"}


@pytest.mark.parametrize("claims", [{}, {"a": 1}, {"a": {"b": {"c": 1}}}, {"a": {"b": None}}])
def test_a_claim_without_groups_gives_none(claims: dict[str, Any]) -> None:
    assert groups_in(claims, "a.b") == frozenset()


def test_the_number_of_groups_is_bounded() -> None:
    assert len(groups_in({"groups": [f"g{number}" for number in range(2 * MAX_GROUPS)]}, "groups")) == MAX_GROUPS


def test_members_of_an_admin_group_are_admins() -> None:
    rules = ClaimRules(admin_groups=frozenset({"ops"}))
    admin = rules.principal({"sub": "ada", "groups": ["ops"], "roles": ["admin"]})
    assert admin == Principal("token", "ada", frozenset({"ops"}), frozenset({"user", "admin"}))
    assert not rules.principal({"sub": "bob", "groups": ["dev"], "admin": True}).is_admin
