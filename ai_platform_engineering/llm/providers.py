"""The choice and creation of the chat model of an agent.

Provider packages are optional extras. A package is imported when its provider is selected.
"""

from __future__ import annotations

import importlib
from typing import Final, get_args

from langchain_core.language_models import BaseChatModel

from ai_platform_engineering.compat.langchain_openai import stream_dicts, with_complete_deltas
from ai_platform_engineering.installation import install_command
from ai_platform_engineering.llm.failures import ModelOrigin
from ai_platform_engineering.llm.guarded_call import CallLimits
from ai_platform_engineering.llm.openai_http import shared_http_client
from ai_platform_engineering.llm.provider_class import guarded_model
from ai_platform_engineering.llm.provider_options import MODEL_VARIABLES, PROVIDER_SPECS
from ai_platform_engineering.manifest import ModelChoice
from ai_platform_engineering.offline_model import OfflineChatModel
from ai_platform_engineering.settings import Provider, Settings, SettingsError, provider_problem, wrong_value

PROVIDERS: Final[tuple[Provider, ...]] = get_args(Provider)
_OPENAI: Final = "langchain_openai"
_ANSWER_TIME = 0.8
"""Seconds that the offline model takes to stream the supervisor's answer."""
# The name of the model has a different field in each provider's class.
_NAME_FIELDS: Final = ("deployment_name", "model_name", "model", "model_id")


def default_provider(settings: Settings) -> Provider:
    """The provider of the supervisor, and of every agent without its own."""
    if settings.llm_provider is not None:
        return settings.llm_provider
    if settings.openai_api_key or settings.openai_endpoint:
        return "openai"
    if settings.anthropic_api_key:
        return "anthropic-claude"
    return "offline"


def is_offline(settings: Settings, agent: str | None = None, manifest_model: ModelChoice | None = None) -> bool:
    """Whether the supervisor, or the named agent, uses the offline model."""
    return _provider(settings, agent, manifest_model)[0] == "offline"


def chat_model(
    settings: Settings, agent: str | None = None, manifest_model: ModelChoice | None = None
) -> BaseChatModel:
    """The chat model of the supervisor, or of the named agent.

    The agent's own variables take precedence over its manifest, and the manifest over the common settings.
    """
    provider, chosen_by = _provider(settings, agent, manifest_model)
    if problem := provider_problem(settings, provider, chosen_by):
        raise SettingsError(problem)
    if provider == "offline":
        return _offline(settings, is_supervisor=agent is None)
    name, named_by = _model_name(settings, provider, agent, manifest_model)
    if name is None:
        raise SettingsError(
            f"{chosen_by}={provider} needs the name of a model: set {MODEL_VARIABLES[provider]} or MODEL_NAME, "
            "or LLM_PROVIDER=offline for the offline model."
        )
    return _provider_model(settings, provider, name, named_by)


def is_offline_model(model: BaseChatModel) -> bool:
    return isinstance(model, OfflineChatModel)


def reads_plain_results(model: BaseChatModel) -> bool:
    """Whether the model reads the results of tools as they are: it is a program, and follows no instructions."""
    return getattr(model, "plain_results", False) is True


def model_label(settings: Settings, agent: str | None = None, manifest_model: ModelChoice | None = None) -> str:
    """For example `offline` or `openai gpt-5`. Raises `SettingsError` if the model cannot be created."""
    model = chat_model(settings, agent, manifest_model)
    if is_offline_model(model):
        return "offline"
    name = next((value for field in _NAME_FIELDS if (value := getattr(model, field, None))), "")
    return f"{model.asdict()['_type'].removesuffix('-chat')} {name}".strip()


def model_name(settings: Settings) -> tuple[Provider, str]:
    """The provider and the name of the supervisor's model, without creating it."""
    provider = default_provider(settings)
    if provider == "offline":
        return provider, "offline"
    return provider, _model_name(settings, provider, None, None)[0] or ""


def _offline(settings: Settings, *, is_supervisor: bool) -> BaseChatModel:
    """Only the supervisor's answer is slowed down, as people read it while it is streamed."""
    if settings.offline_model_delay is not None:
        return OfflineChatModel(delay=settings.offline_model_delay)
    return OfflineChatModel(answer_time=_ANSWER_TIME if is_supervisor else 0.0)


def _provider(settings: Settings, agent: str | None, manifest_model: ModelChoice | None) -> tuple[Provider, str]:
    """The provider, and the setting or manifest key that selected it."""
    if agent is not None and (value := settings.environ.get(variable := f"{agent.upper()}_LLM_PROVIDER")):
        return _known(variable, value), variable
    if manifest_model is not None and manifest_model.provider:
        source = f"model.provider of agent {agent}" if agent else "model.provider"
        return _known(source, manifest_model.provider), source
    return default_provider(settings), "LLM_PROVIDER"


def _known(source: str, value: str) -> Provider:
    provider = value.lower()
    if provider not in PROVIDERS:
        raise SettingsError(wrong_value(source, value, f"one of {', '.join(PROVIDERS)}"))
    return provider


def _model_name(
    settings: Settings, provider: Provider, agent: str | None, manifest_model: ModelChoice | None
) -> tuple[str | None, str]:
    """The name of the model, and the setting or manifest key that it comes from."""
    if agent is not None and (name := settings.environ.get(variable := f"{agent.upper()}_MODEL_NAME")):
        return name, variable
    # A model name in the manifest belongs to the manifest's provider, not to a provider that a variable selects.
    if manifest_model is not None and (manifest_model.provider or default_provider(settings)).lower() == provider:
        name = manifest_model.name
        if name:
            return name, f"model.name of agent {agent}" if agent else "model.name"
    specific: str | None = getattr(settings, (variable := MODEL_VARIABLES[provider]).lower())
    return (specific, variable) if specific else (settings.model_name, "MODEL_NAME")


def _provider_model(settings: Settings, provider: Provider, name: str, named_by: str) -> BaseChatModel:
    spec = PROVIDER_SPECS[provider](settings, name)
    try:
        chat_class = getattr(importlib.import_module(spec.module), spec.class_name)
    except ImportError as error:
        raise SettingsError(f"The package for {spec.extra} is not installed: {install_command(spec.extra)}.") from error
    if spec.prepare is not None:
        spec.prepare()
    origin = ModelOrigin(spec.title, name, spec.key_setting, named_by, spec.address_setting)
    limits = CallLimits(
        timeout=settings.llm_timeout,
        idle_timeout=settings.llm_idle_timeout,
        max_retries=settings.llm_max_retries,
        max_retry_wait=settings.llm_max_retry_wait,
        max_output_chars=settings.llm_max_output_chars,
        whole_answers=spec.module == _OPENAI and not settings.llm_always_stream,
    )
    options = {key: value for key, value in spec.options.items() if value is not None}
    if spec.module != _OPENAI:
        return guarded_model(chat_class, options, origin, limits)
    if (client := shared_http_client()) is not None:
        options["http_async_client"] = client
    model = guarded_model(with_complete_deltas(chat_class), options, origin, limits)
    stream_dicts(model)
    return model
