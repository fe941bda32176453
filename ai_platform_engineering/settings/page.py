"""Generates docs/configuration.md from the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, get_args

from pydantic.fields import FieldInfo

from ai_platform_engineering.settings.fields import FLAG_VALUES, Group, describe_allowed, field_extra
from ai_platform_engineering.settings.loading import fields_by_variable


@dataclass(frozen=True, slots=True)
class DynamicVariable:
    """A variable that exists once per agent. `<NAME>` is the agent's name in upper case."""

    pattern: str
    values: str
    default: str
    description: str


DYNAMIC_VARIABLES: Final = (
    DynamicVariable(
        "ENABLE_<NAME>",
        FLAG_VALUES,
        "on when its required variables or its address are set, or the sandbox is on",
        "Switches the agent on or off.",
    ),
    DynamicVariable(
        "<NAME>_AGENT_URL",
        "an http:// or https:// address",
        "`http://agent-<name>:8000`",
        "URL of the agent when it is remote. A name without a manifest adds a remote agent with this name.",
    ),
    DynamicVariable(
        "<NAME>_AGENT_HOST", "text", "`agent-<name>`", "Host of the remote agent when `<NAME>_AGENT_URL` is not set."
    ),
    DynamicVariable(
        "<NAME>_AGENT_PORT",
        "a whole number from 1 to 65535",
        "`8000`",
        "Port of the remote agent when `<NAME>_AGENT_URL` is not set.",
    ),
    DynamicVariable(
        "<NAME>_LLM_PROVIDER", "the values of `LLM_PROVIDER`", "`LLM_PROVIDER`", "Provider of this agent's chat model."
    ),
    DynamicVariable("<NAME>_MODEL_NAME", "text", "the provider's model", "Name of this agent's chat model."),
    DynamicVariable(
        "<NAME>_LLM_CONTEXT_TOKENS",
        "the values of `LLM_CONTEXT_TOKENS`",
        "`LLM_CONTEXT_TOKENS`",
        "Context window of this agent's model in tokens.",
    ),
    DynamicVariable(
        "<NAME>_LLM_COMPACT_AT",
        "the values of `LLM_COMPACT_AT`",
        "`LLM_COMPACT_AT`",
        "Share of this agent's context window at which its older turns are summarised.",
    ),
)


def configuration_page() -> str:
    """The text of docs/configuration.md: every variable with allowed values, default and description."""
    lines = [
        "# Configuration",
        "",
        "Settings are environment variables. They can also be in a file named `.env` in the working directory; the",
        "process environment overrides the file. An empty value counts as not set. Settings are read once, at start.",
        "An invalid value stops the start with an error message that names the variable and the allowed values.",
        "",
    ]
    for group in get_args(Group):
        rows = [
            (f"`{name}`", describe_allowed(info), _default(info), _description(info))
            for name, info in fields_by_variable().items()
            if field_extra(info)["group"] == group
        ]
        lines += [f"## {group}", "", *_table(rows), ""]
    rows = [(f"`{row.pattern}`", row.values, row.default, row.description) for row in DYNAMIC_VARIABLES]
    lines += [
        "## Per agent",
        "",
        "`<NAME>` is the name of the agent in upper case, for example `ENABLE_ARGOCD`. Each agent also reads the",
        "variables that its manifest lists under `requires`.",
        "",
        *_table(rows),
    ]
    return "\n".join(lines) + "\n"


def _default(info: FieldInfo) -> str:
    if shown := field_extra(info)["shown_default"]:
        return str(shown)
    match info.default:
        case None | "":
            return "not set"
        case bool(value):
            return f"`{str(value).lower()}`"
        case float(value):
            return f"`{value:g}`"
        case value:
            return f"`{value}`"


def _description(info: FieldInfo) -> str:
    fallback = field_extra(info)["fallback"]
    return f"{info.description} Falls back to `{fallback}`." if fallback else str(info.description)


def _table(rows: list[tuple[str, str, str, str]]) -> list[str]:
    return [
        "| Variable | Allowed values | Default | Description |",
        "|---|---|---|---|",
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows),
    ]
