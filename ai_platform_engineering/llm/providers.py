"""Chat models by provider: which one an agent uses.

Provider packages are optional extras and are imported only when their provider is chosen.
"""

from __future__ import annotations

import importlib
from typing import Final, get_args

from langchain_core.language_models import BaseChatModel

from ai_platform_engineering.llm.compat.openai_chunks import with_dict_chunks
from ai_platform_engineering.llm.compat.openai_deltas import with_whole_deltas
from ai_platform_engineering.llm.failures import ModelOrigin
from ai_platform_engineering.llm.guarded_call import CallLimits
from ai_platform_engineering.llm.openai_http import shared_http_client
from ai_platform_engineering.llm.provider_class import guarded_model
from ai_platform_engineering.llm.provider_options import MODEL_VARIABLES, RECIPES
from ai_platform_engineering.manifest import ModelChoice
from ai_platform_engineering.offline_model import OfflineChatModel
from ai_platform_engineering.settings import Provider, Settings, SettingsError, provider_problem, wrong_value
from ai_platform_engineering.utils.extras import install_command

PROVIDERS: Final[tuple[Provider, ...]] = get_args(Provider)
_OPENAI: Final = "langchain_openai"
_ANSWER_TIME = 0.8
"""Seconds over which the offline model spreads the words of an answer."""


def default_provider(settings: Settings) -> Provider:
    """The provider of everyone who asks for no other."""
    if settings.llm_provider is not None:
        return settings.llm_provider
    if settings.openai_api_key or settings.openai_endpoint:
        return "openai"
    if settings.anthropic_api_key:
        return "anthropic-claude"
    return "offline"


def is_offline(settings: Settings, agent: str | None = None, manifest_model: ModelChoice | None = None) -> bool:
    """Whether the supervisor, or an agent, is driven by the offline model."""
    return _provider(settings, agent, manifest_model)[0] == "offline"


def chat_model(
    settings: Settings, agent: str | None = None, manifest_model: ModelChoice | None = None
) -> BaseChatModel:
    """The chat model of the supervisor, or of an agent.

    An agent's own variables come first, then its manifest, then what holds for everyone.
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
    return _made(settings, provider, name, named_by)


def is_offline_model(model: BaseChatModel) -> bool:
    return isinstance(model, OfflineChatModel)


def _offline(settings: Settings, *, is_supervisor: bool) -> BaseChatModel:
    """The offline model. People read the supervisor's answer while it is written, so only that is paced."""
    if settings.offline_model_delay is not None:
        return OfflineChatModel(delay=settings.offline_model_delay)
    return OfflineChatModel(answer_time=_ANSWER_TIME if is_supervisor else 0.0)


def _provider(settings: Settings, agent: str | None, manifest_model: ModelChoice | None) -> tuple[Provider, str]:
    """The provider, and what named it."""
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
    """The name of the model, and what named it."""
    if agent is not None and (name := settings.environ.get(variable := f"{agent.upper()}_MODEL_NAME")):
        return name, variable
    # A name in the manifest means a model of the manifest's provider, not of one that a variable put in its place.
    if manifest_model is not None and (manifest_model.provider or default_provider(settings)).lower() == provider:
        name = manifest_model.name
        if name:
            return name, f"model.name of agent {agent}" if agent else "model.name"
    specific: str | None = getattr(settings, (variable := MODEL_VARIABLES[provider]).lower())
    return (specific, variable) if specific else (settings.model_name, "MODEL_NAME")


def _made(settings: Settings, provider: Provider, name: str, named_by: str) -> BaseChatModel:
    recipe = RECIPES[provider](settings, name)
    try:
        chat_class = getattr(importlib.import_module(recipe.module), recipe.class_name)
    except ImportError as error:
        raise SettingsError(
            f"The package for {recipe.extra} is not installed: {install_command(recipe.extra)}."
        ) from error
    if recipe.prepare is not None:
        recipe.prepare()
    origin = ModelOrigin(recipe.title, name, recipe.key_setting, named_by, recipe.address_setting)
    limits = CallLimits(
        timeout=settings.llm_timeout,
        idle_timeout=settings.llm_idle_timeout,
        max_retries=settings.llm_max_retries,
        max_retry_wait=settings.llm_max_retry_wait,
        max_output_chars=settings.llm_max_output_chars,
        whole_answers=recipe.module == _OPENAI and not settings.llm_always_stream,
    )
    options = {key: value for key, value in recipe.options.items() if value is not None}
    if recipe.module != _OPENAI:
        return guarded_model(with_whole_deltas(chat_class), options, origin, limits)
    if (client := shared_http_client()) is not None:
        options["http_async_client"] = client
    model = guarded_model(with_whole_deltas(chat_class), options, origin, limits)
    with_dict_chunks(model)
    return model
