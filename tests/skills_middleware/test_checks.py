"""The files of a skill: paths, sizes, encodings and kinds."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.skills_middleware.checks import build_skill, checked_skill
from ai_platform_engineering.skills_middleware.skill import Access, InvalidSkillError, Provenance, Skill

DOCUMENT = "---\nname: triage\ndescription: Triage an incident.\nlicense: MIT\n---\nList the incidents.\n"


def problems_of(files: dict[str, bytes | str]) -> list[tuple[str, str]]:
    """The codes and paths of the problems of a skill with a good SKILL.md."""
    with pytest.raises(InvalidSkillError) as refusal:
        checked_skill({"SKILL.md": DOCUMENT, **files})
    return [(problem.code, problem.path) for problem in refusal.value.problems]


def test_a_good_skill_has_its_document_its_files_and_their_size() -> None:
    checked = checked_skill(
        {"./SKILL.md": b"\xef\xbb\xbf" + DOCUMENT.encode(), "scripts/a.sh": b"echo \xc3\xbc\n", "a\u0308.md": ""},
        folder="triage",
    )
    assert checked.document.name == "triage"
    assert checked.text == DOCUMENT
    assert checked.files == {"scripts/a.sh": "echo ü\n", "ä.md": ""}
    assert checked.size == len(DOCUMENT) + 8
    assert [finding.code for finding in checked.findings] == ["script"]
    assert checked.content.instructions == "List the incidents."


def test_every_source_makes_the_same_head() -> None:
    checked = checked_skill({"SKILL.md": DOCUMENT, "b.md": "b", "a.md": "a"})
    provenance, team = Provenance("api", added_by="ada"), Access("team", "sre")
    skill = build_skill(checked, team, provenance)
    assert skill == Skill(
        "triage", "Triage an incident.", provenance, team, "MIT", None, {}, ("a.md", "b.md"), checked.size, skill.digest
    )
    assert len({skill.digest, build_skill(checked, Access(), provenance).digest, ""}) == 3
    assert build_skill(checked_skill({"a.md": b"a", "b.md": b"b", "SKILL.md": DOCUMENT}), team, provenance) == skill


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", "path"),
        ("docs/", "path"),
        ("/a", "absolute_path"),
        ("c:a", "absolute_path"),
        ("a/../b", "path_traversal"),
        ("a\\b", "path_characters"),
        ("a\0b", "path_characters"),
        ("a\u200bb", "path_characters"),
        ("a\ud800", "path_characters"),
        ("a?", "path_characters"),
        ("nul", "reserved_name"),
        ("docs/Com1.txt", "reserved_name"),
        ("docs /a", "reserved_name"),
        ("a" * 201, "path_too_long"),
        ("a/b/c/d/e", "path_too_deep"),
    ],
)
def test_a_path_that_is_not_portable_is_refused(path: str, code: str) -> None:
    assert problems_of({path: "x"}) == [(code, "")]


def test_the_limits_are_inclusive() -> None:
    checked = checked_skill(
        {
            "SKILL.md": DOCUMENT + "x" * (64 * 1024 - len(DOCUMENT)),
            "a" * 200: b"a" * 256 * 1024,
            "a/b/c/d": b"d" * (192 * 1024),
            **{f"{number}.md": "" for number in range(61)},
        }
    )
    assert checked.size == 512 * 1024
    assert len(checked.files) == 63


def test_beyond_the_limits_a_skill_is_refused() -> None:
    assert problems_of({"a.md": b"a" * (256 * 1024 + 1)}) == [("file_too_large", "a.md")]
    assert problems_of({"a.md": b"a" * 260_000, "b.md": b"b" * 260_000, "c.md": "ü" * 2500}) == [
        ("skill_too_large", "")
    ]
    assert problems_of({"SKILL.md": DOCUMENT + "ü" * 33_000}) == [("document_too_large", "SKILL.md")]
    assert problems_of({f"{number}.md": "" for number in range(64)}) == [("too_many_files", "")]


def test_files_that_are_one_on_some_file_systems_are_refused() -> None:
    assert problems_of({"a.md": "", "A.md": ""}) == [("path_conflict", "")]
    assert problems_of({"ä.md": "", "a\u0308.md": ""}) == [("path_conflict", "")]
    assert problems_of({"docs": "", "Docs/a.md": ""}) == [("path_conflict", "")]


def test_text_with_half_of_a_surrogate_pair_is_refused() -> None:
    assert problems_of({"a.md": "a\ud800"}) == [("encoding", "a.md")]


def test_text_may_begin_as_a_program_does() -> None:
    assert checked_skill({"SKILL.md": DOCUMENT, "a.md": "MZ is a mark.", "b.md": "BZh is another."}).files


def test_problems_of_all_files_and_of_the_document_come_together() -> None:
    secret = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    files: dict[str, bytes | str] = {"SKILL.md": "# Triage", "../a": "", "b.md": b"\xff", "c.md": secret}
    with pytest.raises(InvalidSkillError) as refusal:
        checked_skill(files)
    assert [problem.code for problem in refusal.value.problems] == [
        "path_traversal",
        "encoding",
        "front_matter",
        "secret",
    ]
    assert secret not in str(refusal.value)
    assert str(refusal.value).splitlines()[-1] == "c.md: has a GitHub token; revoke it (line 1)"


PATHS = st.sampled_from(["SKILL.md", "skill.md", "a/SKILL.md", "a", "a/b", "./a", "a/./b", "/", ".", "..", "con", ""])
CONTENTS = st.binary(max_size=40) | st.text(st.characters(exclude_categories=()), max_size=40) | st.just(DOCUMENT)


@given(
    st.dictionaries(PATHS | st.text(st.characters(exclude_categories=()), max_size=20), CONTENTS, max_size=5),
    st.none() | st.text(),
)
def test_no_files_make_the_checks_fail_in_another_way(files: dict[str, bytes | str], folder: str | None) -> None:
    with suppress(InvalidSkillError):
        checked_skill(files, folder=folder)
