"""docs/configuration.md, from the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, get_args

from pydantic.fields import FieldInfo

from ai_platform_engineering.settings.fields import FLAG_VALUES, Group, allowed, extra
from ai_platform_engineering.settings.loading import fields_by_variable


@dataclass(frozen=True, slots=True)
class DynamicVariable:
    """Variables that exist once per agent; `<NAME>` is the agent's name in capitals."""

    pattern: str
    values: str
    default: str
    meaning: str


DYNAMIC_VARIABLES: Final = (
    DynamicVariable("ENABLE_<NAME>", FLAG_VALUES, "on when the agent is configured", "Switches the agent on or off."),
    DynamicVariable(
        "<NAME>_AGENT_URL",
        "an http:// or https:// address",
        "`http://agent-<name>:8000`",
        "Where the agent runs when it is remote. A name without a manifest becomes a remote agent.",
    ),
    DynamicVariable("<NAME>_AGENT_HOST", "text", "`agent-<name>`", "Host of the agent when no URL is given."),
    DynamicVariable(
        "<NAME>_AGENT_PORT", "a whole number from 1 to 65535", "`8000`", "Port of the agent when no URL is given."
    ),
    DynamicVariable("<NAME>_LLM_PROVIDER", "as `LLM_PROVIDER`", "`LLM_PROVIDER`", "Which chat model this agent uses."),
    DynamicVariable("<NAME>_MODEL_NAME", "text", "the provider's model", "Model this agent uses."),
)


def configuration_page() -> str:
    """docs/configuration.md: every variable with what it may be, its default and its meaning."""
    lines = [
        "# Configuration",
        "",
        "Settings are environment variables. A file named `.env` in the working directory is read first and the",
        "process environment overrides it. An empty value counts as not set. They are read once, at start; a value",
        "that cannot be used stops the start with a sentence that says what is allowed.",
        "",
    ]
    for group in get_args(Group):
        rows = [
            (f"`{name}`", allowed(info), _default(info), _meaning(info))
            for name, info in fields_by_variable().items()
            if extra(info)["group"] == group
        ]
        lines += [f"## {group}", "", *_table(rows), ""]
    rows = [(f"`{row.pattern}`", row.values, row.default, row.meaning) for row in DYNAMIC_VARIABLES]
    lines += [
        "## Per agent",
        "",
        "`<NAME>` is the name of the agent in capitals, for example `ENABLE_ARGOCD`. Each agent also reads the",
        "variables that its manifest lists under `requires`.",
        "",
        *_table(rows),
    ]
    return "\n".join(lines) + "\n"


def _default(info: FieldInfo) -> str:
    if shown := extra(info)["shown_default"]:
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


def _meaning(info: FieldInfo) -> str:
    also = extra(info)["also"]
    return f"{info.description} `{also}` is read when this is not set." if also else str(info.description)


def _table(rows: list[tuple[str, str, str, str]]) -> list[str]:
    return [
        "| Variable | Allowed | Default | Meaning |",
        "|---|---|---|---|",
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows),
    ]
