from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ai_platform_engineering.events import FieldRules
from ai_platform_engineering.multi_agents.platform_engineer.workflows import WorkflowError
from ai_platform_engineering.multi_agents.platform_engineer.workflows.definition import Condition, Input, read_workflow

GOOD: dict[str, Any] = {
    "name": "make_repo",
    "title": "Make Repo",
    "description": "Makes a repository.",
    "inputs": [{"name": "repository"}, {"name": "ticket", "type": "boolean", "default": False}],
    "steps": [
        {
            "name": "repo",
            "title": "Create it",
            "agent": "github",
            "tool": "create_repository",
            "arguments": {"name": "{{ inputs.repository }}"},
            "outputs": {"url": "url"},
        },
        {
            "name": "ticket",
            "title": "Tell",
            "agent": "jira",
            "instruction": "Say that {{ steps.repo.url }} is there.",
            "when": {"value": "{{ inputs.ticket }}", "equals": True},
        },
    ],
}


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """The good workflow with one value changed; `...` takes it out."""
    content = yaml.safe_load(yaml.safe_dump(GOOD))
    place = content
    for key in path[:-1]:
        place = place[key]
    if to is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return dict(content)


def problem_of(tmp_path: Path, content: Any) -> str:
    file = tmp_path / "make.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.raises(WorkflowError) as caught:
        read_workflow(file)
    text = str(caught.value)
    assert all(line.startswith(f"{file}: ") and line.endswith(".") for line in text.splitlines())
    return text.replace(f"{file}: ", "")


def test_a_good_one(tmp_path: Path) -> None:
    file = tmp_path / "make.yaml"
    file.write_text(yaml.safe_dump(GOOD), encoding="utf-8")
    workflow = read_workflow(file)
    assert workflow.agents() == ("github", "jira")
    assert [declared.required for declared in workflow.inputs] == [True, True]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("name",), "Make-Repo", "name: 'Make-Repo' is not allowed; use a lower-case letter"),
        (("title",), ..., "title: is missing"),
        (("titel",), "x", "titel: unknown key; allowed are name, title, description, keywords, inputs, steps"),
        (("inputs", 0, "kind"), "x", "inputs.0.kind: unknown key; allowed are name, type, description"),
        (("steps", 0, "args"), {}, "steps.0.args: unknown key; allowed are name, title, agent, tool, arguments"),
        (("steps", 1, "when", "is"), 1, "steps.1.when.is: unknown key; allowed are value, equals, not_equals, one_of"),
        (("inputs", 0, "type"), "string", "inputs.0.type: 'string' is not allowed; use 'text', 'multiline'"),
        (("inputs", 0, "type"), "select", "inputs.0: type select needs the key 'options'"),
        (("inputs", 0, "minimum"), 3, "inputs.0: 'minimum' is for number, not for text"),
        (("inputs", 1, "pattern"), "x", "'pattern' is for email and multiline and text and url, not for boolean"),
        (("inputs", 0, "pattern"), "(", "inputs.0.pattern: '(' is not a regular expression"),
        (("inputs", 1, "default"), "maybe", "inputs.1: 'default' does not fit: `ticket` takes yes or no"),
        (("inputs", 1, "name"), "repository", "inputs: has more than one entry named repository"),
        (("steps",), [], "steps: "),
        (("steps", 1, "name"), "repo", "steps: has more than one entry named repo"),
        (("steps", 0, "instruction"), "x", "steps.0: needs exactly one of tool, instruction"),
        (("steps", 0, "tool"), ..., "steps.0: needs exactly one of tool, instruction"),
        (("steps", 1, "arguments"), {"a": 1}, "steps.1: 'arguments' are for a tool"),
        (("steps", 1, "outputs"), {"key": "("}, "steps.1: '(' is not a regular expression"),
        (("steps", 0, "outputs", "url"), "a..b", "output 'url' is 'a..b'; use a dotted path, for example issue.key"),
        (
            ("steps", 1, "when", "not_equals"),
            1,
            "steps.1.when: needs exactly one of equals, not_equals, one_of, is_set",
        ),
        (("steps", 1, "when", "equals"), ..., "and has none"),
        (("steps", 1, "when", "value"), "yes", "steps.1.when.value: has no placeholder"),
        (
            ("steps", 0, "arguments", "name"),
            "{{ inputs.repositry }}",
            "steps.0.arguments.name: {{ inputs.repositry }} refers to nothing: there is no input 'repositry'; "
            "did you mean 'repository'",
        ),
        (
            ("steps", 0, "arguments", "deep"),
            {"list": ["{{ inputs.zzz }}"]},
            "steps.0.arguments.deep.list.0: {{ inputs.zzz }} refers to nothing: there is no input 'zzz'; "
            "known are repository, ticket",
        ),
        (
            ("steps", 0, "arguments", "name"),
            "{{ repository }}",
            "{{ repository }} is not a valid placeholder; use {{ inputs.",
        ),
        (
            ("steps", 0, "arguments", "name"),
            "{{ steps.ticket.key }}",
            "{{ steps.ticket.key }} is not available yet; a step can use only outputs of earlier steps",
        ),
        (("steps", 1, "instruction"), "{{ steps.rep.url }}", "there is no earlier step 'rep'; did you mean 'repo'"),
        (
            ("steps", 1, "instruction"),
            "{{ steps.repo.link }}",
            "there is no output of the step 'repo' 'link'; known are url",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_key_and_what_is_allowed(
    tmp_path: Path, path: tuple[str | int, ...], value: Any, said: str
) -> None:
    assert said in problem_of(tmp_path, changed(*path, to=value))


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    content = changed("steps", 0, "arguments", "name", to="{{ inputs.a }} {{ inputs.b }}")
    assert len(problem_of(tmp_path, content).splitlines()) == 2


@pytest.mark.parametrize("content", [b"name: [", b"- a\n", b"", b"\xff\xfe\xff"])
def test_a_file_that_is_no_workflow(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(content)
    with pytest.raises(WorkflowError, match=r"x\.yaml: "):
        read_workflow(file)


def test_an_input_is_a_field_with_its_rules() -> None:
    field = Input(name="replicas", type="number", minimum=1, maximum=5, integer=True, default=2).field()
    assert field.rules == FieldRules(1, 5, True)
    assert (field.field_type, field.default_value, field.required) == ("number", 2, True)
    assert Input(name="note", required=False).field().rules is None


@pytest.mark.parametrize(
    ("condition", "value", "holds"),
    [
        ({"equals": True}, True, True),
        ({"equals": True}, 1, False),
        ({"equals": 1}, True, False),
        ({"equals": 1}, 1.0, True),
        ({"equals": None}, None, True),
        ({"equals": "a"}, "A", False),
        ({"not_equals": "a"}, "b", True),
        ({"not_equals": "a"}, "a", False),
        ({"not_equals": "a"}, None, True),
        ({"one_of": ["a", 2]}, 2, True),
        ({"one_of": ["a", 2]}, "2", False),
        ({"is_set": True}, "x", True),
        ({"is_set": True}, False, True),
        ({"is_set": True}, 0, True),
        ({"is_set": True}, "", False),
        ({"is_set": True}, None, False),
        ({"is_set": True}, [], False),
        ({"is_set": False}, None, True),
        ({"is_set": False}, "x", False),
    ],
)
def test_conditions(condition: dict[str, Any], value: Any, holds: bool) -> None:
    assert Condition(value="{{ inputs.x }}", **condition).holds(value) is holds
