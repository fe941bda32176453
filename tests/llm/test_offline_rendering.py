"""Results as Markdown: values in, Markdown out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ai_platform_engineering.offline_model.results.parsing import identity, listing, parse
from ai_platform_engineering.offline_model.results.rendering import MAX_ROWS, label, render


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain text", "plain text"),
        ('{"a": 1}', {"a": 1}),
        ('{"result": [1, 2]}', [1, 2]),
        ('{"a": 1}\n{"a": 2}', [{"a": 1}, {"a": 2}]),
        ("[cut off", "[cut off"),
        ('{"a": 1} and more', '{"a": 1} and more'),
        ("", ""),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_what_a_result_stands_for(text: str, value: Any) -> None:
    assert parse(text) == value


def test_facts_become_a_list_with_readable_labels_and_without_blanks() -> None:
    facts = {"sync_status": "Synced", "goVersion": "1.24", "url": "https://x", "none": None, "list": [], "ok": True}
    assert render(facts) == "- **Sync status:** Synced\n- **Go version:** 1.24\n- **URL:** https://x\n- **Ok:** yes"


def test_nested_facts_are_indented() -> None:
    value = {"name": "a", "related": {"tickets": ["T-1", "T-2"]}, "log": [{"at": "2026-04-08T08:06:00Z", "text": "up"}]}
    assert render(value) == (
        "- **Name:** a\n- **Related:**\n  - **Tickets:** T-1, T-2\n- **Log:**\n  - at 2026-04-08 08:06 UTC; text up"
    )


def test_records_become_a_table_without_long_columns_and_addresses() -> None:
    records = [{"name": n, "note": "x" * 99, "url": f"https://{n}", "tags": ["p", "q|r"]} for n in ("a", "b")]
    assert render(records) == "| Name | Tags |\n| --- | --- |\n| a | p, q\\|r |\n| b | p, q\\|r |"


def test_records_that_a_table_cannot_tell_apart_become_bullets() -> None:
    records = [{"id": "x" * 80, "state": "on"}, {"id": "y" * 80, "state": "on"}]
    assert render(records) == f"- **{'x' * 80}**: state on\n- **{'y' * 80}**: state on"


def test_long_lists_are_cut_with_a_count() -> None:
    rendered = render([{"name": f"n{number}", "size": number} for number in range(MAX_ROWS + 7)])
    assert rendered.count("\n| n") == MAX_ROWS
    assert rendered.endswith("\n\n_... and 7 more._")


def test_long_texts_are_cut_with_a_count() -> None:
    assert render("x" * 6100).endswith("_(100 more characters are not shown.)_")


@pytest.mark.parametrize(
    ("value", "total"),
    [
        ([{"a": 1}], 1),
        ({"total": 30, "items": [{"a": 1}]}, 30),
        ({"total": 0, "apps": []}, 0),
        ({"name": "x", "history": [{"a": 1}, {"a": 2}]}, 2),
    ],
)
def test_what_is_a_listing(value: Any, total: int) -> None:
    found = listing(value)
    assert found is not None
    assert found.total == total


@pytest.mark.parametrize(
    "value",
    ["text", 3, {"name": "x"}, {"a": [{"b": 1}], "c": [{"d": 1}]}, {"tags": []}, {"a": [{"b": 1}], "c": {"d": 1}}],
)
def test_what_is_no_listing(value: Any) -> None:
    assert listing(value) is None


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"key": "SHOP-1", "name": "x"}, "SHOP-1"),
        ({"repository": "acme/x", "number": 7, "title": "t"}, "acme/x#7"),
        ({"repository": "acme/x", "language": "Go"}, "acme/x"),
        ({"id": 0}, "0"),
        ({"open": True}, None),
    ],
)
def test_what_a_thing_is_called(record: dict[str, Any], name: str | None) -> None:
    assert identity(record) == name


@pytest.mark.parametrize(
    ("name", "text"), [("issue_key", "Issue key"), ("BuildDate", "Build date"), ("id", "ID"), ("", "")]
)
def test_labels(name: str, text: str) -> None:
    assert label(name) == text


def test_no_json_is_left_in_what_is_shown() -> None:
    value = {"a": {"b": [{"c": {"d": [1, {"e": None}]}}]}}
    assert not set('{}[]"') & set(render(json.loads(json.dumps(value))))
