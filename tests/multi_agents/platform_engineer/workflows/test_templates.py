from __future__ import annotations

from typing import Any

import pytest

from ai_platform_engineering.multi_agents.platform_engineer.workflows.templates import (
    TemplateError,
    ValueReference,
    Values,
    references,
    render,
)

KNOWN = Values(
    {"name": "demo", "replicas": 3, "private": False, "teams": ["shop", "search"], "share": 0.5},
    {"repo": {"url": "https://example.test/demo", "number": 7}},
)


@pytest.mark.parametrize(
    ("template", "rendered"),
    [
        ("{{ inputs.replicas }}", 3),
        ("{{inputs.private}}", False),
        ("  {{ inputs.share }}  ", 0.5),
        ("{{ inputs.teams }}", ["shop", "search"]),
        ("{{ steps.repo.number }}", 7),
        ("{{ inputs.name }}{{ inputs.name }}", "demodemo"),
        ("{{ inputs.name }} has {{ inputs.replicas }}", "demo has 3"),
        ("private: {{ inputs.private }}, for {{ inputs.teams }}", "private: false, for shop, search"),
        ("see {{ inputs.nothing }}.", "see ."),
        ("no placeholder { at all }", "no placeholder { at all }"),
        (12, 12),
        (None, None),
    ],
)
def test_a_placeholder_alone_keeps_its_type_and_becomes_text_among_others(template: Any, rendered: Any) -> None:
    result = render(template, KNOWN)
    assert result == rendered
    assert type(result) is type(rendered)


def test_what_has_no_value_is_left_out_and_what_is_written_stays() -> None:
    template = {
        "name": "{{ inputs.name }}",
        "description": "{{ inputs.nothing }}",
        "none": None,
        "spec": {"url": "{{ steps.repo.url }}", "skipped": "{{ steps.ticket.key }}"},
        "list": ["{{ inputs.nothing }}", "{{ inputs.replicas }}", "x"],
    }
    assert render(template, KNOWN) == {
        "name": "demo",
        "none": None,
        "spec": {"url": "https://example.test/demo"},
        "list": [3, "x"],
    }


def test_a_value_that_looks_like_a_placeholder_is_only_a_value() -> None:
    known = Values({"name": "{{ inputs.secret }}", "secret": "s"}, {})
    assert render("{{ inputs.name }}", known) == "{{ inputs.secret }}"
    assert render("a {{ inputs.name }}", known) == "a {{ inputs.secret }}"


def test_references() -> None:
    assert references("{{ inputs.a }} and {{ steps.b.c }}") == [ValueReference("a"), ValueReference("c", "b")]


@pytest.mark.parametrize("text", ["{{ input.a }}", "{{ steps.a }}", "{{}}", "{{ inputs.a | upper }}", "{{ a", "a }}"])
def test_what_is_no_placeholder_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(TemplateError, match=r"use \{\{ inputs\.<name> \}\} or \{\{ steps\.<step>\.<output> \}\}"):
        references(text)
