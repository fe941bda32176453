"""SKILL.md: the format, its limits, and the access that it declares."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.skills_middleware.document import SkillDocument, declared_access, parse_document
from ai_platform_engineering.skills_middleware.skill import GLOBAL, Access, InvalidSkillError, SkillProblem


def document_text(front_matter: str, instructions: str = "List the incidents.") -> str:
    return f"---\n{front_matter}\n---\n{instructions}\n"


def with_keys(*lines: str) -> str:
    return document_text("\n".join(["name: triage", "description: Triage an incident.", *lines]))


def problems_of(text: str, folder: str | None = None) -> dict[str, str]:
    """The sentences of the problems of a document, by code."""
    with pytest.raises(InvalidSkillError) as refusal:
        parse_document(text, folder)
    return {problem.code: problem.message for problem in refusal.value.problems}


def test_every_key_of_the_format_is_read() -> None:
    text = document_text(
        "name: incident-triage\n"
        "description: >\n"
        "  Triage an\n"
        "  incident.\n"
        "license: Apache-2.0\n"
        "compatibility: Needs PagerDuty\n"
        "metadata:\n"
        "  version: 1.10\n"
        "  reviewed: 2026-01-02\n"
        "  stable: yes\n"
        "  empty:\n"
    )
    assert parse_document(text, "incident-triage") == SkillDocument(
        name="incident-triage",
        description="Triage an incident.",
        instructions="List the incidents.",
        license="Apache-2.0",
        compatibility="Needs PagerDuty",
        metadata={"version": "1.10", "reviewed": "2026-01-02", "stable": "yes", "empty": ""},
    )


def test_a_byte_order_mark_and_windows_line_ends_are_accepted() -> None:
    text = with_keys("license: MIT").replace("\n", "\r\n")
    assert parse_document("\ufeff" + text) == parse_document(with_keys("license: MIT"))


def test_all_problems_are_reported_with_value_and_rule() -> None:
    found = problems_of(
        document_text(
            f"name: Triage_{'x' * 100}\nlicense: [MIT]\ncompatibility: {'c' * 501}\nmetadata: {{a: [b]}}", " "
        )
    )
    assert found.keys() == {"name", "description", "license", "compatibility", "metadata", "instructions"}
    assert '"Triage_xxx' in found["name"]
    assert "1 to 64 lower-case letters" in found["name"]
    assert len(found["name"]) < 200
    assert "missing" in found["description"]
    assert "list" in found["license"]
    assert "501 characters; 500 are allowed" in found["compatibility"]
    assert '"a"' in found["metadata"]


@pytest.mark.parametrize("name", ["", "-a", "a-", "a--b", "A", "ä", "a b", "a_b", "a" * 65, "[a]", "a/b", '"a\\n"'])
def test_a_name_outside_the_format_is_refused(name: str) -> None:
    assert problems_of(document_text(f"name: {name}\ndescription: x")).keys() == {"name"}


def test_the_name_is_the_name_of_the_folder() -> None:
    found = problems_of(with_keys(), "incident")
    assert found == {"name_folder": 'name is "triage", but the folder is "incident"; they must be equal'}


@pytest.mark.parametrize("description", ["", '" "', "{a: b}", "d" * 1025])
def test_a_description_outside_the_limits_is_refused(description: str) -> None:
    assert problems_of(document_text(f"name: a\ndescription: {description}")).keys() == {"description"}


@pytest.mark.parametrize("escape", ["\\u200B", "\\u202E", "\\U000E0041", "\\u0007", "\\uFEFF", "a\\u200D", "\\u00AD"])
def test_a_description_with_unseen_characters_is_refused(escape: str) -> None:
    found = problems_of(document_text(f'name: a\ndescription: "x{escape}y"'))
    assert found.keys() == {"characters"}
    assert "U+" in found["characters"]


def test_a_description_may_have_joined_emoji_and_scripts_with_joiners() -> None:
    description = "👩\u200d💻 ⚠️ می\u200cخواهم"
    assert parse_document(document_text(f"name: a\ndescription: {description}")).description == description


@pytest.mark.parametrize(
    ("text", "code", "sentence"),
    [
        ("# Triage", "front_matter", "begin with a --- line"),
        ("---\nname: a\n", "front_matter", "no --- line at its end"),
        ("---\n---\nx", "front_matter", "empty"),
        ("---\n- a\n---\nx", "front_matter", "mapping"),
        (with_keys("name: b"), "yaml_duplicate_key", '"name" occurs twice in line 4'),
        (with_keys("metadata: {a: 1, a: 2}"), "yaml_duplicate_key", '"a" occurs twice'),
        (with_keys("license: &l MIT"), "yaml_alias", "line 4"),
        (with_keys("metadata: *l"), "yaml_alias", "line 4"),
        (with_keys("metadata: !!binary aGk="), "yaml_tag", "binary"),
        (with_keys("metadata: " + "{a: " * 6 + "}" * 6), "yaml_depth", "5 levels"),
        (with_keys("license: [MIT"), "yaml", "line"),
        (with_keys("? [a]\n: b"), "yaml", "keys are texts"),
        (with_keys("license: a\x00b"), "yaml", "forbids"),
        (with_keys("license: " + "x" * 20_000), "front_matter_too_large", "16384 are allowed"),
        (with_keys("license: \ud800"), "encoding", "surrogate"),
    ],
)
def test_front_matter_outside_plain_yaml_is_refused(text: str, code: str, sentence: str) -> None:
    found = problems_of(text)
    assert found.keys() == {code}
    assert sentence in found[code]


def test_ignored_keys_are_warnings() -> None:
    warnings = parse_document(with_keys("licence: MIT", "zzz: 1", "allowed-tools: Bash Read")).warnings
    assert [(warning.code, warning.message) for warning in warnings] == [
        ("unknown_key", 'the key "licence" is ignored; did you mean license?'),
        (
            "unknown_key",
            'the key "zzz" is ignored; known are name, description, license, compatibility, metadata, allowed-tools',
        ),
        ("allowed_tools", "allowed-tools has no effect: a skill gives no rights to tools"),
    ]


def test_a_value_in_a_message_has_no_credentials() -> None:
    found = problems_of(document_text("name: https://user:hunter22@example.com\ndescription: x"))
    assert "hunter22" not in found["name"]


@pytest.mark.parametrize(
    ("metadata", "access"),
    [
        ("{}", GLOBAL),
        ("{visibility: global}", GLOBAL),
        ("{visibility: team, team: sre}", Access("team", "sre")),
        ("{visibility: personal, owner: ada@example.com}", Access("personal", "ada@example.com")),
        ("{team: sre}", GLOBAL),
    ],
)
def test_metadata_declare_the_access(metadata: str, access: Access) -> None:
    assert declared_access(parse_document(with_keys(f"metadata: {metadata}"))) == access


def test_a_team_without_visibility_is_a_warning() -> None:
    (warning,) = parse_document(with_keys("metadata: {team: sre}")).warnings
    assert warning == SkillProblem(
        "visibility", "metadata.team limits access only with metadata.visibility", "SKILL.md"
    )


@pytest.mark.parametrize(
    ("metadata", "code", "sentence"),
    [
        ("{visibility: public}", "visibility", '"public"; global, team, personal exist'),
        ("{visibility: }", "visibility", '""'),
        ("{visibility: team}", "team", "needs metadata.team"),
        ('{visibility: personal, owner: " "}', "owner", "needs metadata.owner"),
        ("{visibility: global, team: sre}", "visibility", "contradicts metadata.team"),
        ("{visibility: personal, owner: ada, team: sre}", "visibility", "contradicts metadata.team"),
    ],
)
def test_contradictions_in_the_declared_access_are_refused(metadata: str, code: str, sentence: str) -> None:
    document = parse_document(with_keys(f"metadata: {metadata}"))
    with pytest.raises(InvalidSkillError, match=sentence) as refusal:
        declared_access(document)
    assert [problem.code for problem in refusal.value.problems] == [code]


ANY_CHARACTER = st.characters(exclude_categories=())
YAML_PIECES = st.sampled_from(
    [
        *(
            "---\n",
            "\n",
            "name: a",
            "description: ",
            "metadata:\n  ",
            "- ",
            "? ",
            ": ",
            "&a ",
            "*a",
            "!!str ",
            "!",
            "[",
        ),
        *("{", "]", "}", "|\n", ">\n", '"', "'", "\\x00", "%YAML 1.2\n", "...\n", "<<", "~", "\t", "\r\n", "#", ","),
    ]
)


@given(
    st.text(ANY_CHARACTER)
    | st.lists(YAML_PIECES | st.text(ANY_CHARACTER, max_size=3)).map("".join).map(document_text)
    | st.lists(YAML_PIECES).map("".join)
)
def test_no_text_makes_parsing_fail_in_another_way(text: str) -> None:
    with suppress(InvalidSkillError):
        declared_access(parse_document(text, "a"))
