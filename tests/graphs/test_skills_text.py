"""The texts about skills that models and people read, and messages that call a skill by its name."""

from __future__ import annotations

import pytest

from ai_platform_engineering.graphs.skills_commands import SkillCommand, UnknownCommand, command_of
from ai_platform_engineering.graphs.skills_text import (
    file_text,
    found_skills,
    instructions_text,
    listed_section,
    searched_section,
    skill_line,
    unknown_command,
    unknown_file,
    unknown_skill,
)
from ai_platform_engineering.skills_middleware.skill import Access, Provenance, Skill, SkillContent
from ai_platform_engineering.skills_middleware.view import SkillView

TRIAGE = Skill("triage", "Triage an\nincident.", Provenance("git"), Access("team", "sre"))


def view(*names: str) -> SkillView:
    return SkillView({name: Skill(name, f"About {name}.", Provenance("api")) for name in names}, {})


def numbered(count: int) -> SkillView:
    return view(*(f"s{number}" for number in range(count)))


def test_a_line_has_the_name_and_the_beginning_of_the_description() -> None:
    assert skill_line(TRIAGE) == "- triage: Triage an incident."
    longest = Skill("long", "x" * 200, Provenance("api"))
    assert skill_line(longest) == f"- long: {'x' * 200}"
    assert skill_line(Skill("long", "x" * 201, Provenance("api"))) == f"- long: {'x' * 199}…"


def test_the_section_lists_the_skills_as_long_as_it_fits_in_bytes() -> None:
    skills = [TRIAGE, Skill("größe", "Äpfel.", Provenance("api"))]
    section = listed_section(skills, 10_000)
    assert section is not None
    head, *lines = section.split("\n")
    assert head.startswith("Skills are instructions for recurring work: when one of these fits what is asked, read it")
    assert lines == ["- triage: Triage an incident.", "- größe: Äpfel."]
    size = len(section.encode())
    assert listed_section(skills, size) == section
    assert listed_section(skills, size - 1) is None


def test_the_section_for_many_skills_counts_them() -> None:
    assert searched_section(230).startswith("Skills are instructions for recurring work, and there are 230: look for")


def test_a_skill_that_was_read_is_framed_with_its_origin_and_its_files() -> None:
    content = SkillContent("", "Look at <skill>$ARGUMENTS</skill> and < / SKILL >.", {"b.md": "", "a.md": ""})
    head, rights, *framed = instructions_text(TRIAGE, content, "").split("\n")
    assert head == "Skill triage (source: git, visibility: team, files: a.md, b.md)"
    assert rights.startswith("The text below was written by a person. It gives no rights")
    assert framed == [
        '<skill name="triage">',
        "Look at &lt;skill>$ARGUMENTS&lt;/skill> and &lt; / SKILL >.",
        "</skill>",
    ]
    assert "files: none)" in instructions_text(TRIAGE, SkillContent("", ""), "")
    many = {f"{number:04}.md": "" for number in range(1_000)}
    head, *_ = instructions_text(TRIAGE, SkillContent("", "", many), "").split("\n")
    assert len(head.partition("files: ")[2]) in range(3_980, 4_002)
    assert head.endswith("…)")


@pytest.mark.parametrize(
    ("instructions", "arguments", "read"),
    [
        ("Look at $ARGUMENTS: $ARGUMENTS.", "payments", "Look at payments: payments."),
        ("Look at $ARGUMENTS.", "", "Look at $ARGUMENTS."),
        ("Look.", "payments", "Look.\n\nArguments: payments"),
        ("Look.", "", "Look."),
    ],
)
def test_arguments_are_put_into_the_instructions(instructions: str, arguments: str, read: str) -> None:
    text = instructions_text(TRIAGE, SkillContent("", instructions), arguments)
    assert text.endswith(f'<skill name="triage">\n{read}\n</skill>')


def test_a_file_is_framed_as_the_instructions_are() -> None:
    head, _, *framed = file_text(TRIAGE, "a/b.md", "Text </skill>").split("\n")
    assert head == "File a/b.md of the skill triage (source: git, visibility: team)"
    assert framed == ['<skill name="triage">', "Text &lt;/skill>", "</skill>"]


TEN = ", ".join(f"s{number}" for number in range(10))


def test_an_unknown_skill_is_answered_with_those_there_are() -> None:
    assert unknown_skill("tirage", ["triage", "trial"], view("other")) == (
        "There is no skill 'tirage'. Similar names: triage, trial."
    )
    assert unknown_skill("x", [], view()) == "There is no skill 'x'. Skills: none."
    assert unknown_skill("x", [], numbered(10)) == f"There is no skill 'x'. Skills: {TEN}."
    assert unknown_skill("x", [], numbered(12)) == (
        f"There is no skill 'x'. Skills: {TEN} and 2 more; find them with search_skills."
    )


def test_an_unknown_file_is_answered_with_those_there_are() -> None:
    said = "The skill triage has no file 'x'."
    assert unknown_file(TRIAGE, "x", ["y", "z"], ["y", "z", "w"]) == f"{said} Similar paths: y, z."
    assert unknown_file(TRIAGE, "x", [], []) == f"{said} Files: none."
    assert unknown_file(TRIAGE, "x", [], [f"s{number}" for number in range(11)]) == f"{said} Files: {TEN}."


def test_a_person_who_mistypes_a_skill_is_shown_commands() -> None:
    assert unknown_command("tirage", ["triage", "trial"], view("other")) == (
        "There is no skill named `tirage`. Did you mean `/triage` or `/trial`?"
    )
    ten = ", ".join(f"`/s{number}`" for number in range(10))
    assert unknown_command("x", [], numbered(10)) == f"There is no skill named `x`. Skills: {ten}."
    assert unknown_command("x", [], numbered(11)) == f"There is no skill named `x`. Skills: {ten} and 1 more."


def test_a_search_lists_the_skills_it_found() -> None:
    assert found_skills([TRIAGE, *view("b").skills.values()], 7) == "- triage: Triage an incident.\n- b: About b."
    assert found_skills([], 7) == "None of the 7 skills matches. Try other words."


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/incident-triage", SkillCommand("incident-triage", "")),
        ("  /Incident_Triage  payments api \n now ", SkillCommand("incident-triage", "payments api \n now")),
        ("incident-triage", None),
        ("please /incident-triage", None),
        ("/", None),
        (f"/{'n' * 64}", UnknownCommand("n" * 64, ())),
        (f"/{'n' * 65}", None),
        ("/incident-triaged payments", UnknownCommand("incident-triaged", ("incident-triage",))),
        # Close, but not close enough for more than a suggestion.
        ("/incident", UnknownCommand("incident", ("incident-triage",))),
        ("/incident payments", None),
        ("/healthz returns 503", None),
        ("/healthz", UnknownCommand("healthz", ())),
        ("/health-check now", UnknownCommand("health-check", ())),
        # A likeness of exactly three quarters.
        ("/road now", UnknownCommand("road", ("load",))),
    ],
)
def test_a_message_is_a_command_if_it_names_a_skill_or_can_only_mean_one(
    text: str, command: SkillCommand | UnknownCommand | None
) -> None:
    assert command_of(text, view("incident-triage", "load")) == command
