"""The file `policy.yaml`: schema, validation, and the rules in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from ai_platform_engineering.approvals.deciders import Deciders
from ai_platform_engineering.approvals.effects import Effect
from ai_platform_engineering.policy.decisions import KINDS, Action, Kind, Policy, Rule
from ai_platform_engineering.policy.tool_pattern import ALLOWED, PatternError, ToolPattern
from ai_platform_engineering.settings import SettingsError
from ai_platform_engineering.utils.yaml_files import read_keys, validation_sentences


def _tool_pattern(text: Any) -> Any:
    try:
        return ToolPattern.parse(text) if isinstance(text, str) else text
    except PatternError:
        raise ValueError(f"{text!r} must be {ALLOWED}") from None


Names = Annotated[tuple[str, ...], Field(min_length=1)]


class _RuleModel(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    name: str = ""
    who: Names
    action: Action
    agents: tuple[str, ...] = ()
    tools: tuple[Annotated[ToolPattern, BeforeValidator(_tool_pattern)], ...] = ()
    effects: frozenset[Effect] = frozenset()
    workflows: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    knowledge: tuple[str, ...] = ()
    approvers: tuple[str, ...] = ()
    four_eyes: bool = False

    @model_validator(mode="after")
    def _check(self) -> _RuleModel:
        if not (self.tools or any(getattr(self, kind) for kind in KINDS)):
            raise ValueError(f"must name tools, {', '.join(KINDS)}")
        if self.action == "approve" and any(getattr(self, kind) for kind in KINDS):
            raise ValueError("approve is for tools only")
        if self.action != "approve" and (self.approvers or self.four_eyes):
            raise ValueError("approvers and four_eyes belong to the action approve")
        if self.effects and not self.tools:
            raise ValueError("effects belong to tools")
        return self

    def rule(self, number: int) -> Rule:
        things: dict[Kind, tuple[str, ...]] = {kind: found for kind in KINDS if (found := getattr(self, kind))}
        return Rule(
            self.name or f"rule {number}",
            frozenset(self.who),
            self.action,
            self.tools,
            self.effects,
            things,
            Deciders.parse(self.approvers, four_eyes=self.four_eyes),
        )


class _FileModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: Literal[1]
    default: Literal["allow", "deny"] = "allow"
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    rules: tuple[_RuleModel, ...] = ()


def read_policy(path: Path) -> Policy:
    """Raises `SettingsError` with the place in the file and the allowed values."""
    content = read_keys(path, "policy", _FileModel.model_fields, SettingsError)
    try:
        found = _FileModel.model_validate(content)
    except ValidationError as error:
        raise SettingsError(*validation_sentences(path, error, _allowed, {"rules": "rule"})) from None
    rules = tuple(rule.rule(number) for number, rule in enumerate(found.rules, 1))
    return Policy(rules, found.default, {name: frozenset(subjects) for name, subjects in found.groups.items()})


def _allowed(place: Sequence[str | int]) -> Iterable[str]:
    return _RuleModel.model_fields if place else _FileModel.model_fields
