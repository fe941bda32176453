"""Reads the settings from the environment and the `.env` file, and reports invalid values."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_args

from dotenv import dotenv_values
from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo

from ai_platform_engineering.settings.approval_overrides import OVERRIDES_VARIABLE, OverridesError, parse_overrides
from ai_platform_engineering.settings.conversation_settings import ADDRESS_VARIABLES
from ai_platform_engineering.settings.fields import FLAG_VALUES, Provider, describe_allowed, field_extra, flag
from ai_platform_engineering.settings.memory_settings import MEMORY_SERVERS
from ai_platform_engineering.settings.model import Settings

MASK: Final = "********"

_SECRET_NAME = re.compile(r"TOKEN(?!S)|KEY|SECRET|PASSWORD|DATABASE_URL|MONGODB_URI|REDIS_URL|POSTGRES_DSN")

# A provider needs one variable of each inner tuple.
PROVIDER_REQUIREMENTS: Final[Mapping[Provider, tuple[tuple[str, ...], ...]]] = MappingProxyType(
    {
        "offline": (),
        "openai": (("OPENAI_API_KEY", "OPENAI_ENDPOINT"),),
        "azure-openai": (("AZURE_OPENAI_ENDPOINT",), ("AZURE_OPENAI_API_KEY",), ("AZURE_OPENAI_DEPLOYMENT",)),
        "anthropic-claude": (("ANTHROPIC_API_KEY",),),
        "aws-bedrock": (("AWS_REGION",),),
        "google-gemini": (("GOOGLE_API_KEY",),),
        "gcp-vertexai": (("GOOGLE_CLOUD_PROJECT",),),
        "groq": (("GROQ_API_KEY",),),
        "ollama": (("OLLAMA_MODEL_NAME", "MODEL_NAME"),),
        "litellm": (("LITELLM_MODEL_NAME", "MODEL_NAME"),),
    }
)


class SettingsError(ValueError):
    """The settings are invalid. `problems` has one message per problem, without secrets."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def load_settings(environ: Mapping[str, str] | None = None, env_file: Path | None = Path(".env")) -> Settings:
    """Load settings from `env_file`, overridden by `environ` (default: the process environment).

    An empty value counts as not set. In `environ` it also hides the file's value, in `SETTINGS_OVERRIDES` it does not.
    """
    file_values = _read_env_file(env_file)
    snapshot = _merge_sources(file_values, os.environ if environ is None else environ)
    values: dict[str, Any] = {name: snapshot[name] for name in fields_by_variable() if name in snapshot}
    for name, info in fields_by_variable().items():
        fallback = field_extra(info)["fallback"]
        if name not in values and fallback in snapshot:
            values[name] = snapshot[fallback]
    if "DATA_DIR" not in values and Path(snapshot.get("XDG_DATA_HOME", "")).is_absolute():
        values["DATA_DIR"] = Path(snapshot["XDG_DATA_HOME"]) / "platform-engineer"
    if "LOGINS_FILE" not in values and Path(snapshot.get("XDG_CONFIG_HOME", "")).is_absolute():
        values["LOGINS_FILE"] = Path(snapshot["XDG_CONFIG_HOME"]) / "platform-engineer" / "logins.json"
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(*_validation_problems(error, snapshot)) from None
    settings._environ = snapshot
    settings._file_variables = frozenset(file_values)
    if problems := _cross_field_problems(settings):
        raise SettingsError(*problems)
    return settings


def parse_flag(variable: str, value: str) -> bool:
    """Parse the value of a boolean variable that exists once per agent."""
    try:
        return flag(value.strip())
    except ValueError:
        raise SettingsError(wrong_value(variable, value, FLAG_VALUES)) from None


def known_variables() -> frozenset[str]:
    """The names of all settings, including fallback variables."""
    fallbacks = (field_extra(info)["fallback"] for info in fields_by_variable().values())
    return frozenset({*fields_by_variable(), *filter(None, fallbacks)})


def secret_variables() -> frozenset[str]:
    """The names of the settings whose values are secrets, including fallback variables."""
    secrets = {name: info for name, info in fields_by_variable().items() if SecretStr in get_args(info.annotation)}
    fallbacks = (field_extra(info)["fallback"] for info in secrets.values())
    return frozenset({*secrets, *filter(None, fallbacks)})


def wrong_value(variable: str, value: str, allowed: str) -> str:
    """The message for an invalid value. Secrets are masked."""
    return f"{variable}={_shown(variable, value)} cannot be used: it must be {allowed}."


def provider_problem(settings: Settings, provider: Provider, chosen_by: str = "LLM_PROVIDER") -> str | None:
    """A message that names the missing settings of `provider`, or None. `chosen_by` is the variable that selects it."""
    missing = [
        " or ".join(alternatives)
        for alternatives in PROVIDER_REQUIREMENTS[provider]
        if not any(getattr(settings, name.lower()) for name in alternatives)
    ]
    if not missing:
        return None
    return f"{chosen_by}={provider} needs {' and '.join(missing)}: set it, or choose another provider."


def _read_env_file(env_file: Path | None) -> dict[str, str | None]:
    if env_file is None or not env_file.is_file():
        return {}
    try:
        # No interpolation: a "$" in a password stays a "$".
        return dotenv_values(env_file, interpolate=False)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{env_file} cannot be read as UTF-8 text: {type(error).__name__}.") from None


def _merge_sources(file_values: Mapping[str, str | None], environ: Mapping[str, str]) -> Mapping[str, str]:
    overrides = dotenv_values(stream=io.StringIO(environ.get("SETTINGS_OVERRIDES", "")), interpolate=False)
    return MappingProxyType(_without_blanks({**file_values, **environ}) | _without_blanks(overrides))


def _without_blanks(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value.strip() for name, value in values.items() if value and value.strip()}


def fields_by_variable() -> dict[str, FieldInfo]:
    return {name.upper(): info for name, info in Settings.model_fields.items()}


def _validation_problems(error: ValidationError, snapshot: Mapping[str, str]) -> list[str]:
    fields = fields_by_variable()
    invalid = dict.fromkeys(str(detail["loc"][0]) for detail in error.errors(include_input=False))
    problems: dict[str, None] = {}
    for name in invalid:
        source = name if name in snapshot else field_extra(fields[name])["fallback"]
        problems[wrong_value(source, snapshot[source], describe_allowed(fields[name]))] = None
    return [*problems]


def _cross_field_problems(settings: Settings) -> list[str]:
    problems = []
    if settings.llm_provider and (problem := provider_problem(settings, settings.llm_provider)):
        problems.append(problem)
    if settings.mcp_restart_backoff_max < settings.mcp_restart_backoff:
        problems.append(
            wrong_value(
                "MCP_RESTART_BACKOFF_MAX",
                f"{settings.mcp_restart_backoff_max:g}",
                f"at least MCP_RESTART_BACKOFF, which is {settings.mcp_restart_backoff:g}",
            )
        )
    kind = settings.checkpoint_type
    if kind in ADDRESS_VARIABLES and not settings.checkpoint_address(kind):
        problems.append(
            f"LANGGRAPH_CHECKPOINT_TYPE={kind} needs {ADDRESS_VARIABLES[kind]}: set it, or choose another type."
        )
    memories = settings.langgraph_store_type
    if memories in MEMORY_SERVERS and settings.memory_address(memories) is None:
        variables = " or ".join(settings.memory_variables(memories))
        problems.append(f"LANGGRAPH_STORE_TYPE={memories} needs {variables}: set it, or choose another type.")
    if kind == "memory" and settings.require_persistence:
        problems.append(
            "REQUIRE_PERSISTENCE=true does not fit conversations in memory: choose another LANGGRAPH_CHECKPOINT_TYPE, "
            "or unset CONVERSATIONS."
        )
    if settings.event_log == "postgres" and settings.event_log_postgres_dsn is None:
        problems.append(
            f"EVENT_LOG=postgres needs EVENT_LOG_POSTGRES_DSN or {ADDRESS_VARIABLES['postgres']}: set one of them, or "
            "choose another event log."
        )
    if settings.oidc_client_id is not None and settings.a2a_oauth_issuer is None:
        problems.append("OIDC_CLIENT_ID needs A2A_OAUTH_ISSUER, the OpenID Connect provider: set it as well.")
    if settings.slack_sessions == "postgres" and settings.slack_sessions_postgres_dsn is None:
        problems.append(
            "SLACK_SESSIONS=postgres needs SLACK_SESSIONS_POSTGRES_DSN: set it, or choose another SLACK_SESSIONS."
        )
    try:
        parse_overrides(settings.require_approval_overrides)
    except OverridesError as error:
        problems.append(wrong_value(OVERRIDES_VARIABLE, error.override, error.allowed))
    return problems


def _shown(variable: str, value: str) -> str:
    if _SECRET_NAME.search(variable):
        return MASK
    without_credentials = re.sub(r"(?<=//)[^/@\s]*@", f"{MASK}@", value)
    return without_credentials if len(without_credentials) <= 200 else f"{without_credentials[:200]}..."
