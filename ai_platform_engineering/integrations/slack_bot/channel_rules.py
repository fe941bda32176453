"""The schema of the channel rules file:

direct: true                  # whether direct messages are answered
defaults:                     # for unlisted channels, and for keys that a listed one omits
  enabled: false
channels:
  C0123ABCD:
    name: platform-help       # a comment for readers of the file
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

from ai_platform_engineering.manifest import describe_error
from ai_platform_engineering.settings import SettingsError
from ai_platform_engineering.utils.yaml_files import read_keys

PROMPT_LIMIT: Final = 4000

Answering = Literal["mentions", "all"]
FormsBy = Literal["requester", "anyone"]


@dataclass(frozen=True, slots=True)
class Channel:
    """The rules of one channel. With `answer="all"` the bot reads every message, and replies when it knows an answer.
    `prompt` is for the supervisor, `approvers` are user ids, `forms` says who may answer a form."""

    enabled: bool = True
    answer: Answering = "mentions"
    prompt: str = ""
    approvers: tuple[str, ...] = ()
    forms: FormsBy = "requester"


@dataclass(frozen=True, slots=True)
class ChannelRules:
    """The rules of all channels. The defaults apply without a file."""

    listed: Mapping[str, Channel] = field(default_factory=dict)
    others: Channel = Channel()
    direct: Channel = Channel()


def read_rules(file: Path) -> ChannelRules:
    """The rules in `file`. Raises `SettingsError` with the channel, the key and the allowed values."""
    content = read_keys(file, "list of channels", _File.model_fields, SettingsError)
    try:
        rules = _File.model_validate(content)
    except ValidationError as error:
        problems = (_problem(details) for details in error.errors(include_url=False))
        raise SettingsError(*(f"{file}: {problem}." for problem in problems)) from None
    defaults = rules.defaults.model_dump()
    return ChannelRules(
        listed={name: Channel(**{**defaults, **entry.rules()}) for name, entry in rules.channels.items()},
        others=Channel(**defaults),
        # The default approvers also apply to direct messages, so that a private question cannot bypass them. Every
        # direct message is for the bot, so `answer` has no effect there.
        direct=Channel(**{**defaults, "enabled": rules.direct, "answer": "mentions"}),
    )


def _channel_id(text: str) -> str:
    if not re.fullmatch(r"[CG][A-Z0-9]+", text):
        raise ValueError("is not a channel's id; Slack shows it at the end of the channel's details, as C0123ABCD")
    return text


def _user_id(text: str) -> str:
    if not re.fullmatch(r"[UW][A-Z0-9]+", text):
        raise ValueError(f"{text!r} is not a member's id; Slack has it in the menu of their profile, as U0123ABCD")
    return text


def _empty_if_none(value: Any) -> Any:
    # A key without a value, for example because all lines below it are commented out.
    return {} if value is None else value


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Defaults(_StrictModel):
    enabled: bool = False
    answer: Answering = "mentions"
    prompt: Annotated[str, StringConstraints(strip_whitespace=True, max_length=PROMPT_LIMIT)] = ""
    approvers: tuple[Annotated[str, AfterValidator(_user_id)], ...] = ()
    forms: FormsBy = "requester"


class _Listed(_Defaults):
    name: str = ""

    def rules(self) -> dict[str, Any]:
        # Listing a channel enables it.
        return {"enabled": True, **self.model_dump(exclude_unset=True, exclude={"name"})}


class _File(_StrictModel):
    direct: bool = True
    defaults: Annotated[_Defaults, BeforeValidator(_empty_if_none)] = _Defaults()
    channels: Annotated[
        dict[Annotated[str, AfterValidator(_channel_id)], Annotated[_Listed, BeforeValidator(_empty_if_none)]],
        BeforeValidator(_empty_if_none),
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
            return describe_error({**error, "loc": location})


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
