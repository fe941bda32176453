"""Chat models by provider: which one an agent uses, and how each is made from the settings.

Provider packages are optional extras and are imported only when their provider is chosen.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from ai_platform_engineering.agents.manifest import ModelChoice
from ai_platform_engineering.settings import Provider, Settings, SettingsError, provider_problem, wrong_value
from ai_platform_engineering.utils.llm.offline import OfflineChatModel
from ai_platform_engineering.utils.llm.provider_class import provider_class

PROVIDERS: Final[tuple[Provider, ...]] = get_args(Provider)
_AZURE_API_VERSION = "2024-10-21"

# A server of one's own often asks for no key, but the client library insists on one.
_NO_KEY = SecretStr("not-needed")


def default_provider(settings: Settings) -> Provider:
    """The provider of everyone who asks for no other."""
    if settings.llm_provider is not None:
        return settings.llm_provider
    if settings.openai_api_key or settings.openai_endpoint:
        return "openai"
    if settings.anthropic_api_key:
        return "anthropic-claude"
    return "offline"


def is_offline(settings: Settings) -> bool:
    return default_provider(settings) == "offline"


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
        return OfflineChatModel(delay=settings.offline_model_delay)
    name = _model_name(settings, provider, agent, manifest_model)
    if name is None:
        raise SettingsError(
            f"{chosen_by}={provider} needs the name of a model: set {_MODEL_VARIABLES[provider]} or MODEL_NAME, "
            "or LLM_PROVIDER=offline for the offline model."
        )
    return _BUILDERS[provider](settings, name)


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
) -> str | None:
    if agent is not None and (name := settings.environ.get(f"{agent.upper()}_MODEL_NAME")):
        return name
    # A name in the manifest means a model of the manifest's provider, not of one that a variable put in its place.
    if manifest_model is not None and (manifest_model.provider or default_provider(settings)).lower() == provider:
        name = manifest_model.name
        if name:
            return name
    specific: str | None = getattr(settings, _MODEL_VARIABLES[provider].lower())
    return specific or settings.model_name


def _made(module: str, name: str, extra: str, **options: Any) -> BaseChatModel:
    try:
        chat_class = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise SettingsError(f"The package for {extra} is not installed: run make setup EXTRAS={extra}.") from error
    return provider_class(chat_class)(**{key: value for key, value in options.items() if value is not None})


def _openai(settings: Settings, model: str) -> BaseChatModel:
    key = settings.openai_api_key or (_NO_KEY if settings.openai_endpoint else None)
    return _made(
        "langchain_openai",
        "ChatOpenAI",
        "openai",
        model=model,
        api_key=key,
        base_url=_address(settings.openai_endpoint),
        temperature=settings.llm_temperature,
        timeout=settings.llm_timeout,
        max_retries=settings.llm_max_retries,
        streaming=True,
    )


def _azure_openai(settings: Settings, model: str) -> BaseChatModel:
    return _made(
        "langchain_openai",
        "AzureChatOpenAI",
        "openai",
        azure_deployment=model,
        azure_endpoint=_address(settings.azure_openai_endpoint),
        api_key=settings.azure_openai_api_key,
        api_version=settings.azure_openai_api_version or _AZURE_API_VERSION,
        temperature=settings.llm_temperature,
        timeout=settings.llm_timeout,
        max_retries=settings.llm_max_retries,
        streaming=True,
    )


def _anthropic(settings: Settings, model: str) -> BaseChatModel:
    return _made(
        "langchain_anthropic",
        "ChatAnthropic",
        "anthropic",
        model=model,
        api_key=settings.anthropic_api_key,
        temperature=settings.llm_temperature,
        timeout=settings.llm_timeout,
        max_retries=settings.llm_max_retries,
        streaming=True,
    )


def _bedrock(settings: Settings, model: str) -> BaseChatModel:
    return _made(
        "langchain_aws",
        "ChatBedrockConverse",
        "aws",
        model=model,
        region_name=settings.aws_region,
        temperature=settings.llm_temperature,
        timeout=settings.llm_timeout,
        max_retries=settings.llm_max_retries,
        streaming=True,
    )


def _gemini(settings: Settings, model: str) -> BaseChatModel:
    return _made(
        "langchain_google_genai",
        "ChatGoogleGenerativeAI",
        "google",
        model=model,
        api_key=settings.google_api_key,
        vertexai=False,
        temperature=settings.llm_temperature,
        timeout=settings.llm_timeout,
        max_retries=settings.llm_max_retries,
        streaming=True,
    )


def _vertexai(settings: Settings, model: str) -> BaseChatModel:
    return _made(
        "langchain_google_genai",
        "ChatGoogleGenerativeAI",
        "google",
        model=model,
        vertexai=True,
        project=settings.google_cloud_project,
        location=settings.google_cloud_location,
        temperature=settings.llm_temperature,
        timeout=settings.llm_timeout,
        max_retries=settings.llm_max_retries,
        streaming=True,
    )


def _groq(settings: Settings, model: str) -> BaseChatModel:
    return _made(
        "langchain_groq",
        "ChatGroq",
        "groq",
        model=model,
        api_key=settings.groq_api_key,
        temperature=settings.llm_temperature,
        timeout=settings.llm_timeout,
        max_retries=settings.llm_max_retries,
        streaming=True,
    )


def _ollama(settings: Settings, model: str) -> BaseChatModel:
    return _made(
        "langchain_ollama",
        "ChatOllama",
        "ollama",
        model=model,
        base_url=_address(settings.ollama_base_url),
        temperature=settings.llm_temperature,
        client_kwargs={"timeout": settings.llm_timeout},
    )


def _litellm(settings: Settings, model: str) -> BaseChatModel:
    # LiteLLM reads a list of prices from the network when it is imported, unless this variable is set.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    key = settings.litellm_api_key
    return _made(
        "langchain_litellm",
        "ChatLiteLLM",
        "litellm",
        model=model,
        api_base=_address(settings.litellm_api_base),
        api_key=key.get_secret_value() if key else None,
        temperature=settings.llm_temperature,
        request_timeout=settings.llm_timeout,
        max_retries=settings.llm_max_retries,
        streaming=True,
    )


def _address(value: object) -> str | None:
    return None if value is None else str(value)


_BUILDERS: Mapping[Provider, Callable[[Settings, str], BaseChatModel]] = {
    "openai": _openai,
    "azure-openai": _azure_openai,
    "anthropic-claude": _anthropic,
    "aws-bedrock": _bedrock,
    "google-gemini": _gemini,
    "gcp-vertexai": _vertexai,
    "groq": _groq,
    "ollama": _ollama,
    "litellm": _litellm,
}
_MODEL_VARIABLES: Mapping[Provider, str] = {
    "openai": "OPENAI_MODEL_NAME",
    "azure-openai": "AZURE_OPENAI_DEPLOYMENT",
    "anthropic-claude": "ANTHROPIC_MODEL_NAME",
    "aws-bedrock": "AWS_BEDROCK_MODEL_ID",
    "google-gemini": "GOOGLE_GEMINI_MODEL_NAME",
    "gcp-vertexai": "VERTEXAI_MODEL_NAME",
    "groq": "GROQ_MODEL_NAME",
    "ollama": "OLLAMA_MODEL_NAME",
    "litellm": "LITELLM_MODEL_NAME",
}
