"""What a team's file says about its channels:

direct: true                  # whether direct messages are answered
defaults:                     # for channels that are not listed, and for what a listed one does not say
  enabled: false
channels:
  C0123ABCD:
    name: platform-help       # for whoever reads the file
    enabled: true
    answer: all               # or mentions
    prompt: Answer in German.
    approvers: [U0123ABCD]    # only they decide approvals
    forms: anyone             # or requester
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationError

from ai_platform_engineering.manifest import problem_of
from ai_platform_engineering.settings import SettingsError
from ai_platform_engineering.utils.yaml_files import read_keys

PROMPT_LIMIT: Final = 4000

Answering = Literal["mentions", "all"]
FormsBy = Literal["requester", "anyone"]


@dataclass(frozen=True, slots=True)
class Channel:
    """With `answer="all"` the bot reads every message, and speaks up when it knows an answer. `prompt` is for the
    supervisor, `approvers` are user ids, `forms` says who may answer a form."""

    enabled: bool = True
    answer: Answering = "mentions"
    prompt: str = ""
    approvers: tuple[str, ...] = ()
    forms: FormsBy = "requester"


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds in which channel; without a file, these."""

    listed: Mapping[str, Channel] = field(default_factory=dict)
    others: Channel = Channel()
    direct: Channel = Channel()


def read_rules(file: Path) -> Rules:
    """The rules in `file`; raises `SettingsError` that names the channel, the key and what is allowed."""
    content = read_keys(file, "list of channels", _File.model_fields, SettingsError)
    try:
        said = _File.model_validate(content)
    except ValidationError as error:
        problems = (_problem(details) for details in error.errors(include_url=False))
        raise SettingsError(*(f"{file}: {problem}." for problem in problems)) from None
    defaults = said.defaults.model_dump()
    return Rules(
        listed={name: Channel(**{**defaults, **entry.said()}) for name, entry in said.channels.items()},
        others=Channel(**defaults),
        # Approvals cannot be had past the approvers by asking in private. There all messages are for the bot, so that
        # it need not find out which are.
        direct=Channel(**{**defaults, "enabled": said.direct, "answer": "mentions"}),
    )


def _channel_id(text: str) -> str:
    if not re.fullmatch(r"[CG][A-Z0-9]+", text):
        raise ValueError("is not a channel's id; Slack shows it at the end of the channel's details, as C0123ABCD")
    return text


def _user_id(text: str) -> str:
    if not re.fullmatch(r"[UW][A-Z0-9]+", text):
        raise ValueError(f"{text!r} is not a member's id; Slack has it in the menu of their profile, as U0123ABCD")
    return text


def _nothing_said(value: Any) -> Any:
    # All of its lines are left out, or commented out.
    return {} if value is None else value


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Defaults(_Keys):
    enabled: bool = False
    answer: Answering = "mentions"
    prompt: Annotated[str, StringConstraints(strip_whitespace=True, max_length=PROMPT_LIMIT)] = ""
    approvers: tuple[Annotated[str, AfterValidator(_user_id)], ...] = ()
    forms: FormsBy = "requester"


class _Listed(_Defaults):
    name: str = ""

    def said(self) -> dict[str, Any]:
        # To list a channel is to opt in.
        return {"enabled": True, **self.model_dump(exclude_unset=True, exclude={"name"})}


class _File(_Keys):
    direct: bool = True
    defaults: Annotated[_Defaults, BeforeValidator(_nothing_said)] = _Defaults()
    channels: Annotated[
        dict[Annotated[str, AfterValidator(_channel_id)], Annotated[_Listed, BeforeValidator(_nothing_said)]],
        BeforeValidator(_nothing_said),
    ] = {}


def _problem(error: Mapping[str, Any]) -> str:
    location: tuple[int | str, ...] = error["loc"]
    if location[-1:] == ("[key]",):
        location = location[:-1]
    key = ".".join(map(str, location))
    match error["type"]:
        case "extra_forbidden":
            return f"{key}: unknown key; allowed are {_listed(location[:-1])}"
        case "model_type" | "dict_type":
            return f"{key}: must hold keys; allowed are {_listed(location)}"
        case "bool_type" | "bool_parsing":
            return f"{key}: {error['input']!r} is not allowed; use true or false"
        case "tuple_type":
            return f"{key}: must be a list, such as [U0123ABCD, U0123EFGH]"
        case "string_too_long":
            return f"{key}: has {len(error['input'])} characters; {PROMPT_LIMIT} are allowed"
        case _:
            return problem_of({**error, "loc": location})


def _listed(location: tuple[int | str, ...]) -> str:
    match location:
        case ("channels",):
            return "ids of channels, such as C0123ABCD"
        case ("channels", _):
            return ", ".join(_Listed.model_fields)
        case ("defaults",):
            return ", ".join(_Defaults.model_fields)
        case _:
            return ", ".join(_File.model_fields)
