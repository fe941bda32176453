"""The definition of a workflow: the schema of its YAML file.

Reading a file finds all errors in it: unknown keys, invalid values, placeholders that refer to nothing.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from ai_platform_engineering.events import FieldRules, FieldType, FormField
from ai_platform_engineering.forms.validation import InvalidValue, validated
from ai_platform_engineering.manifest import (
    AgentName,
    Keyword,
    Line,
    ServerName,
    Text,
    describe_error,
)
from ai_platform_engineering.multi_agents.platform_engineer.workflows import WorkflowError
from ai_platform_engineering.multi_agents.platform_engineer.workflows.templates import (
    TemplateError,
    ValueReference,
    references,
    texts_in,
)
from ai_platform_engineering.utils.yaml_files import read_keys

# The limit of the plan tool.
_MAX_STEPS: Final = 20
_MAX_TITLE_LENGTH: Final = 100

_OPERATORS: Final = ("equals", "not_equals", "one_of", "is_set")
_CHOICES: Final = frozenset({"select", "multiselect"})
_TEXTS: Final = frozenset({"text", "multiline", "url", "email"})
_RULES: Final = {
    "options": _CHOICES,
    "minimum": frozenset({"number"}),
    "maximum": frozenset({"number"}),
    "integer": frozenset({"number"}),
    "min_length": _TEXTS,
    "max_length": _TEXTS,
    "pattern": _TEXTS,
}

Title = Annotated[Line, StringConstraints(max_length=_MAX_TITLE_LENGTH)]


class BadReferencesError(ValueError):
    """Placeholders that refer to nothing: for each, its key and the problem."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{key}: {problem}" for key, problem in problems))
        self.problems = tuple(problems)


def _regular_expression(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    return pattern


class _DefinitionModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class Input(_DefinitionModel):
    """A value that the user enters before the workflow starts."""

    name: ServerName
    type: FieldType = "text"
    description: Line = ""
    required: bool = True
    default: Any = None
    options: tuple[Text, ...] = ()
    pattern: Annotated[Text, AfterValidator(_regular_expression)] | None = None
    min_length: int | None = Field(default=None, ge=0)
    max_length: int | None = Field(default=None, ge=1)
    minimum: float | None = None
    maximum: float | None = None
    integer: bool = False

    @model_validator(mode="after")
    def _rules_fit_type(self) -> Self:
        for rule, types in _RULES.items():
            if rule in self.model_fields_set and getattr(self, rule) and self.type not in types:
                raise ValueError(f"{rule!r} is for {' and '.join(sorted(types))}, not for {self.type}")
        if self.type in _CHOICES and not self.options:
            raise ValueError(f"type {self.type} needs the key 'options'")
        if self.default is not None and isinstance(misfit := validated(self.field(), self.default), InvalidValue):
            raise ValueError(f"'default' does not fit: {misfit.sentence.removesuffix('.')}")
        return self

    def field(self) -> FormField:
        """The form field for this input."""
        rules = FieldRules(self.minimum, self.maximum, self.integer, self.min_length, self.max_length, self.pattern)
        return FormField(
            field_name=self.name,
            field_type=self.type,
            field_description=self.description,
            field_values=self.options or None,
            default_value=self.default,
            required=self.required,
            rules=None if rules == FieldRules() else rules,
        )


class Condition(_DefinitionModel):
    """A step runs only if its condition holds. The rendered `value` is compared with exactly one operator."""

    value: Text
    equals: Any = None
    not_equals: Any = None
    one_of: tuple[Any, ...] = ()
    is_set: bool = True

    @model_validator(mode="after")
    def _one_comparison(self) -> Self:
        given = [name for name in _OPERATORS if name in self.model_fields_set]
        if len(given) != 1:
            raise ValueError(f"needs exactly one of {', '.join(_OPERATORS)}, and has {', '.join(given) or 'none'}")
        return self

    def holds(self, value: Any) -> bool:
        if "equals" in self.model_fields_set:
            return _same(value, self.equals)
        if "not_equals" in self.model_fields_set:
            return not _same(value, self.not_equals)
        if "one_of" in self.model_fields_set:
            return any(_same(value, option) for option in self.one_of)
        return (value not in (None, "", [], ())) is self.is_set

    def text(self) -> str:
        """The condition as people read it: `{{ inputs.severity }} is one of 1, 2`."""
        if "equals" in self.model_fields_set:
            return f"{self.value} is {value_text(self.equals)}"
        if "not_equals" in self.model_fields_set:
            return f"{self.value} is not {value_text(self.not_equals)}"
        if "one_of" in self.model_fields_set:
            return f"{self.value} is one of {', '.join(map(value_text, self.one_of))}"
        return f"{self.value} is set" if self.is_set else f"{self.value} is not set"


class Step(_DefinitionModel):
    """One delegation: a tool that the agent calls with `arguments`, or an `instruction` for the agent.

    `outputs` are named values for later steps. For a tool, an output is the dotted path of a value in its JSON result;
    for an instruction, a regular expression that is searched in the agent's answer.
    """

    name: ServerName
    title: Title
    agent: AgentName
    tool: Text | None = None
    arguments: Mapping[str, Any] = Field(default_factory=dict)
    instruction: Text | None = None
    outputs: Mapping[ServerName, Text] = Field(default_factory=dict)
    when: Condition | None = None

    @model_validator(mode="after")
    def _tool_or_instruction(self) -> Self:
        if (self.tool is None) == (self.instruction is None):
            raise ValueError("needs exactly one of tool, instruction")
        if self.tool is None and self.arguments:
            raise ValueError("'arguments' are for a tool; put the values into the instruction")
        for name, output in self.outputs.items():
            if self.tool is None:
                _regular_expression(output)
            elif not re.fullmatch(r"[\w-]+(\.[\w-]+)*", output):
                raise ValueError(f"output {name!r} is {output!r}; use a dotted path, for example issue.key")
        return self

    def templates(self) -> Iterator[tuple[str, str]]:
        """Every text that may contain placeholders, with its key."""
        yield from ((".".join(("arguments", *path)), text) for path, text in texts_in(self.arguments))
        if self.instruction is not None:
            yield "instruction", self.instruction
        if self.when is not None:
            yield "when.value", self.when.value


class Workflow(_DefinitionModel):
    name: ServerName
    title: Title
    description: Line
    keywords: tuple[Keyword, ...] = ()
    inputs: tuple[Input, ...] = ()
    steps: tuple[Step, ...] = Field(min_length=1, max_length=_MAX_STEPS)

    @field_validator("inputs", "steps")
    @classmethod
    def _names_differ(cls, entries: tuple[Input | Step, ...]) -> tuple[Input | Step, ...]:
        names = [entry.name for entry in entries]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"has more than one entry named {', '.join(repeated)}")
        return entries

    @model_validator(mode="after")
    def _references_are_known(self) -> Self:
        if problems := list(self._bad_references()):
            raise BadReferencesError(problems)
        return self

    def agents(self) -> tuple[str, ...]:
        """The agents of its steps, without duplicates, in order of first use."""
        return tuple(dict.fromkeys(step.agent for step in self.steps))

    def _bad_references(self) -> Iterator[tuple[str, str]]:
        for index, step in enumerate(self.steps):
            for key, text in step.templates():
                place = f"steps.{index}.{key}"
                try:
                    found = references(text)
                except TemplateError as error:
                    yield place, str(error)
                    continue
                if key == "when.value" and not found:
                    yield place, "has no placeholder, so the condition would always have the same result"
                yield from ((place, problem) for reference in found if (problem := self._problem(reference, index)))

    def _problem(self, reference: ValueReference, index: int) -> str | None:
        """The problem with a reference in the step at `index`, or None."""
        if reference.step is None:
            inputs = [declared.name for declared in self.inputs]
            return None if reference.name in inputs else _unknown(reference, "input", reference.name, inputs)
        earlier = {step.name: step for step in self.steps[:index]}
        if reference.step in earlier:
            outputs = list(earlier[reference.step].outputs)
            if reference.name in outputs:
                return None
            return _unknown(reference, f"output of the step {reference.step!r}", reference.name, outputs)
        if any(step.name == reference.step for step in self.steps[index:]):
            return f"{{{{ {reference} }}}} is not available yet; a step can use only outputs of earlier steps"
        return _unknown(reference, "earlier step", reference.step, list(earlier))


def read_workflow(file: Path) -> Workflow:
    """Read and validate one file."""
    content = read_keys(file, "workflow", Workflow.model_fields, WorkflowError)
    try:
        return Workflow.model_validate(content)
    except ValidationError as error:
        raise WorkflowError("\n".join(f"{file}: {problem}." for problem in _problems(error))) from None


def suggestion(name: str, known: Sequence[str]) -> str:
    """The end of an error message that suggests one of `known` for the misspelt `name`."""
    if near := difflib.get_close_matches(name.lower().replace("-", "_"), known, n=1):
        return f"did you mean {near[0]!r}"
    return f"known are {', '.join(known)}" if known else "there are none"


def value_text(value: object) -> str:
    """A value of a definition, for people: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _problems(error: ValidationError) -> Iterator[str]:
    for details in error.errors(include_url=False):
        cause = details.get("ctx", {}).get("error")
        if isinstance(cause, BadReferencesError):
            yield from (f"{key}: {problem}" for key, problem in cause.problems)
        elif details["type"] == "extra_forbidden":
            key = ".".join(map(str, details["loc"]))
            yield f"{key}: unknown key; allowed are {', '.join(_allowed_keys(details['loc']))}"
        else:
            yield describe_error(details)


def _allowed_keys(location: tuple[int | str, ...]) -> list[str]:
    match location[:-1]:
        case ("inputs", _):
            return list(Input.model_fields)
        case ("steps", _):
            return list(Step.model_fields)
        case ("steps", _, "when"):
            return list(Condition.model_fields)
        case _:
            return list(Workflow.model_fields)


def _unknown(reference: ValueReference, kind: str, name: str, known: Sequence[str]) -> str:
    return f"{{{{ {reference} }}}} refers to nothing: there is no {kind} {name!r}; {suggestion(name, known)}"


def _same(value: Any, other: Any) -> bool:
    # In Python True == 1; in a workflow they are different values.
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)
