"""Words, sentences and references: values in, values out."""

from __future__ import annotations

import pytest

from ai_platform_engineering.offline_model.english.lexical import similarity, states, stem, terms
from ai_platform_engineering.offline_model.english.requests import RequestText, request_names
from ai_platform_engineering.offline_model.english.sentences import (
    clauses,
    from_leading_verb,
    leading_verb,
    requested_changes,
)
from ai_platform_engineering.offline_model.planning.references import (
    PreviousExchange,
    resolve,
    subject_of,
    things_named,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tickets", "ticket"),
        ("repositories", "repository"),
        ("synced", "sync"),
        ("syncing", "syncs"),
        ("created", "create"),
        ("running", "run"),
        ("issues", "issue"),
        ("Guestbook's", "guestbook"),
    ],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    ("one", "other"), [("status", "statu"), ("check", "checkout"), ("port", "report"), ("is", "i")]
)
def test_other_words_have_other_stems(one: str, other: str) -> None:
    assert stem(one) != stem(other)
    assert similarity(stem(one), stem(other)) == 0


def test_words_that_belong_together_are_one_term() -> None:
    assert terms("who is on call for the pull requests?") == ("oncall", "pullrequest")
    assert terms("roll it back") == terms("rollback")


@pytest.mark.parametrize(
    ("text", "phrase", "expected"),
    [
        ("which are out of sync?", ("out", "of", "sync"), True),
        ("show the sync status", ("synced",), None),
        ("which are not healthy?", ("healthy",), False),
        ("tickets in progress", ("in", "progress"), True),
    ],
)
def test_states_are_taken_literally(text: str, phrase: tuple[str, ...], expected: bool | None) -> None:
    assert states(text, phrase) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("show the guestbook app", ["show the guestbook app"]),
        ("who is on call and which incidents are open?", ["who is on call", "which incidents are open?"]),
        ("compare Jira and GitHub issues", ["compare Jira and GitHub issues"]),
        ("find it. Then sync it; list the rest", ["find it.", "Then sync it", "list the rest"]),
        ('create a ticket "find and show it" and list them', ['create a ticket "find and show it"', "list them"]),
        (
            "comment on SHOP-1: merged, and show it to all. Done.",
            ["comment on SHOP-1: merged, and show it to all. Done."],
        ),
        ("status of checkout and search", ["status of checkout and search"]),
        (" ... ", []),
    ],
)
def test_where_a_text_falls_into_clauses(text: str, expected: list[str]) -> None:
    assert list(clauses(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sync the app", ["sync"]),
        ("Could you please go ahead and sync it?", ["sync"]),
        ("trigger a sync", ["sync"]),
        ("open a ticket", ["open"]),
        ("list the apps, then delete guestbook", ["delet"]),
        ("open tickets", []),
        ("sync status of guestbook", []),
        ("which apps are out of sync?", []),
        ("how do I sync?", []),
        ("don't sync it", []),
        ("do not sync it", []),
        ("never delete it", []),
        ("show name, owner and label", []),
        ("who did the last sync?", []),
    ],
)
def test_which_changes_a_text_asks_for(text: str, expected: list[str]) -> None:
    assert list(requested_changes(text)) == expected


def test_the_verb_that_leads_a_request() -> None:
    assert leading_verb("could you please list them") == "list"
    assert leading_verb("open incidents") is None
    assert from_leading_verb("could you please list them") == "list them"


def test_names_of_things_are_distinguished_from_descriptions() -> None:
    known = frozenset(terms("applications in a project, with their status"))
    assert request_names(RequestText("show the status of payments-api in project shop", known)) == (
        "payments-api",
        "shop",
    )
    assert request_names(RequestText('the "web shop" application', known)) == ("web shop",)
    assert request_names(RequestText("which applications aren't healthy?", known)) == ()


def test_the_things_an_answer_lists() -> None:
    assert things_named("2 apps:\n\n| Name | Health |\n| --- | --- |\n| a-b | ok |\n| c | ok |") == ("a-b", "c")
    assert things_named("| Repository | Number |\n| --- | --- |\n| acme/x | 7 |") == ("acme/x#7",)
    assert things_named("- **P1**: title\n- **P2**") == ("P1", "P2")
    assert things_named("1. `one`\n2. `two`") == ("one", "two")
    assert things_named("Application **guestbook**:\n\n- **Name:** guestbook\n- **Health:** ok") == ("guestbook",)
    assert things_named("See SHOP-1 and SHOP-2.") == ("SHOP-1", "SHOP-2")
    assert things_named("Nothing here.") == ()


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("list my Jira tickets", "my Jira tickets"),
        ("which applications are out of sync?", "applications"),
        ("who is on call?", ""),
    ],
)
def test_what_a_question_is_about(question: str, subject: str) -> None:
    assert subject_of(question) == subject


BEFORE = PreviousExchange("show the guestbook app", "Application **guestbook**:\n\n- **Health:** ok", ["guestbook"])
LISTED = PreviousExchange("which apps are out of sync?", "- **guestbook**: shop\n- **search**: shop")


@pytest.mark.parametrize(
    ("text", "before", "expected"),
    [
        ("sync it", BEFORE, "sync guestbook"),
        ("sync that app", BEFORE, "sync guestbook app"),
        ("what is its health?", BEFORE, "what is the health of guestbook?"),
        ("what about search?", BEFORE, "show the search app"),
        ("again", BEFORE, "show the guestbook app"),
        ("and why?", BEFORE, "why?"),
        ("tell me more", BEFORE, "show details of guestbook"),
        ("show the second one", LISTED, "show search"),
        ("show the fifth one", LISTED, "show the fifth one"),
        ("sync them all", LISTED, "sync guestbook and search"),
        ("which of them are healthy?", LISTED, "which of the apps are healthy?"),
        ("create a ticket that says it is broken", BEFORE, "create a ticket that says guestbook is broken"),
        ('create a ticket "it is broken"', BEFORE, 'create a ticket "it is broken"'),
        ("comment on SHOP-1: it works", BEFORE, "comment on SHOP-1: it works"),
        ("sync it", PreviousExchange("hi", "Hello."), "sync it"),
    ],
)
def test_what_a_follow_up_means(text: str, before: PreviousExchange, expected: str) -> None:
    assert resolve(text, before) == expected
