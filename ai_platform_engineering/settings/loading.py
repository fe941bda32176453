"""Reads the settings from the environment and from a file, once."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dotenv import dotenv_values
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from ai_platform_engineering.settings.approval_overrides import OVERRIDES_VARIABLE, OverridesError, parse_overrides
from ai_platform_engineering.settings.fields import FLAG_VALUES, allowed, extra, flag
from ai_platform_engineering.settings.model import Settings
from ai_platform_engineering.settings.problems import SettingsError, wrong_value
from ai_platform_engineering.settings.providers import provider_problem


def load_settings(environ: Mapping[str, str] | None = None, env_file: Path | None = Path(".env")) -> Settings:
    """Settings from `env_file` overlaid by `environ` (the process's, if not given).

    An empty value counts as not set; one in `environ` also hides the file's, one in `SETTINGS_OVERRIDES` hides nothing.
    """
    stored = _stored(env_file)
    snapshot = _snapshot(stored, os.environ if environ is None else environ)
    values: dict[str, Any] = {name: snapshot[name] for name in fields_by_variable() if name in snapshot}
    for name, info in fields_by_variable().items():
        also = extra(info)["also"]
        if name not in values and also in snapshot:
            values[name] = snapshot[also]
    if "DATA_DIR" not in values and Path(snapshot.get("XDG_DATA_HOME", "")).is_absolute():
        values["DATA_DIR"] = Path(snapshot["XDG_DATA_HOME"]) / "platform-engineer"
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(*_sentences(error, snapshot)) from None
    settings._environ = snapshot
    settings._file_variables = frozenset(stored)
    if problems := _contradictions(settings):
        raise SettingsError(*problems)
    return settings


def parse_flag(variable: str, value: str) -> bool:
    """The value of a variable that is true or false, for variables that exist once per agent."""
    try:
        return flag(value.strip())
    except ValueError:
        raise SettingsError(wrong_value(variable, value, FLAG_VALUES)) from None


def known_variables() -> frozenset[str]:
    """The name of every setting, also the second names."""
    second_names = (extra(info)["also"] for info in fields_by_variable().values())
    return frozenset({*fields_by_variable(), *filter(None, second_names)})


def _stored(env_file: Path | None) -> dict[str, str | None]:
    if env_file is None or not env_file.is_file():
        return {}
    try:
        # Values are taken literally: a "$" in a password is a "$".
        return dotenv_values(env_file, interpolate=False)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{env_file} cannot be read as UTF-8 text: {type(error).__name__}.") from None


def _snapshot(stored: Mapping[str, str | None], environ: Mapping[str, str]) -> Mapping[str, str]:
    overrides = dotenv_values(stream=io.StringIO(environ.get("SETTINGS_OVERRIDES", "")), interpolate=False)
    return MappingProxyType(_without_blanks({**stored, **environ}) | _without_blanks(overrides))


def _without_blanks(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value.strip() for name, value in values.items() if value and value.strip()}


def fields_by_variable() -> dict[str, FieldInfo]:
    return {name.upper(): info for name, info in Settings.model_fields.items()}


def _sentences(error: ValidationError, snapshot: Mapping[str, str]) -> list[str]:
    fields = fields_by_variable()
    wrong = dict.fromkeys(str(detail["loc"][0]) for detail in error.errors(include_input=False))
    sentences = []
    for name in wrong:
        source = name if name in snapshot else extra(fields[name])["also"]
        sentences.append(wrong_value(source, snapshot[source], allowed(fields[name])))
    return sentences


def _contradictions(settings: Settings) -> list[str]:
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
    try:
        parse_overrides(settings.require_approval_overrides)
    except OverridesError as error:
        problems.append(wrong_value(OVERRIDES_VARIABLE, error.override, error.allowed))
    return problems
