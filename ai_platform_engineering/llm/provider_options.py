"""The chat class of each provider and its constructor options, from the settings.

The packages' own retries are off: they wait without a notice, and each package has other rules.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import SecretStr

from ai_platform_engineering.settings import Provider, Settings

_AZURE_API_VERSION: Final = "2024-10-21"

# A self-hosted server often needs no key, but the client library requires one.
_NO_KEY: Final = SecretStr("not-needed")

# For packages that count attempts instead of retries, or replace 0 by their default.
_ONE_ATTEMPT: Final = 1


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """A provider's chat class, its options (None if not set), and the names for error messages."""

    module: str
    class_name: str
    extra: str
    options: Mapping[str, Any]
    title: str
    key_setting: str
    address_setting: str | None = None
    prepare: Callable[[], None] | None = None
    """Called after the import of the package, before the model is created."""


def _common(settings: Settings) -> dict[str, Any]:
    return {
        "temperature": settings.llm_temperature,
        "timeout": settings.llm_timeout,
        "max_tokens": settings.llm_max_output,
        "max_retries": 0,
        "streaming": True,
    }


def _openai(settings: Settings, model: str) -> ProviderSpec:
    endpoint = settings.openai_endpoint
    options = {
        "model": model,
        "api_key": settings.openai_api_key or (_NO_KEY if endpoint else None),
        "base_url": _address(endpoint),
        "stream_chunk_timeout": 0,
        "stream_usage": settings.llm_stream_usage,
    }
    title = "the server at OPENAI_ENDPOINT" if endpoint else "OpenAI"
    address = "OPENAI_ENDPOINT" if endpoint else None
    return ProviderSpec(
        "langchain_openai", "ChatOpenAI", "openai", _common(settings) | options, title, "OPENAI_API_KEY", address
    )


def _azure_openai(settings: Settings, model: str) -> ProviderSpec:
    options = {
        "azure_deployment": model,
        "azure_endpoint": _address(settings.azure_openai_endpoint),
        "api_key": settings.azure_openai_api_key,
        "api_version": settings.azure_openai_api_version or _AZURE_API_VERSION,
        "stream_chunk_timeout": 0,
        "stream_usage": settings.llm_stream_usage,
    }
    return ProviderSpec(
        "langchain_openai",
        "AzureChatOpenAI",
        "openai",
        _common(settings) | options,
        "Azure OpenAI",
        "AZURE_OPENAI_API_KEY",
        "AZURE_OPENAI_ENDPOINT",
    )


def _anthropic(settings: Settings, model: str) -> ProviderSpec:
    options = _common(settings) | {"model": model, "api_key": settings.anthropic_api_key}
    return ProviderSpec("langchain_anthropic", "ChatAnthropic", "anthropic", options, "Anthropic", "ANTHROPIC_API_KEY")


def _bedrock(settings: Settings, model: str) -> ProviderSpec:
    # The client reads in a thread that cannot be cancelled. The thread ends when the read times out.
    read_timeout = min(settings.llm_timeout, settings.llm_idle_timeout)
    options = {"model": model, "region_name": settings.aws_region, "timeout": math.ceil(read_timeout)}
    return ProviderSpec(
        "langchain_aws",
        "ChatBedrockConverse",
        "aws",
        _common(settings) | options,
        "Amazon Bedrock",
        "the AWS credentials",
        "AWS_REGION",
    )


def _gemini(settings: Settings, model: str) -> ProviderSpec:
    options = {"model": model, "api_key": settings.google_api_key, "vertexai": False, "max_retries": _ONE_ATTEMPT}
    return ProviderSpec(
        "langchain_google_genai",
        "ChatGoogleGenerativeAI",
        "google",
        _common(settings) | options,
        "Gemini",
        "GOOGLE_API_KEY",
    )


def _vertexai(settings: Settings, model: str) -> ProviderSpec:
    options = {
        "model": model,
        "vertexai": True,
        "project": settings.google_cloud_project,
        "location": settings.google_cloud_location,
        "max_retries": _ONE_ATTEMPT,
    }
    return ProviderSpec(
        "langchain_google_genai",
        "ChatGoogleGenerativeAI",
        "google",
        _common(settings) | options,
        "Vertex AI",
        "the Google Cloud credentials",
        "GOOGLE_CLOUD_LOCATION",
    )


def _groq(settings: Settings, model: str) -> ProviderSpec:
    options = _common(settings) | {"model": model, "api_key": settings.groq_api_key}
    return ProviderSpec("langchain_groq", "ChatGroq", "groq", options, "Groq", "GROQ_API_KEY")


def _ollama(settings: Settings, model: str) -> ProviderSpec:
    options = {
        "model": model,
        "base_url": _address(settings.ollama_base_url),
        "temperature": settings.llm_temperature,
        "num_predict": settings.llm_max_output,
        "client_kwargs": {"timeout": settings.llm_timeout},
    }
    return ProviderSpec(
        "langchain_ollama", "ChatOllama", "ollama", options, "Ollama", "OLLAMA_BASE_URL", "OLLAMA_BASE_URL"
    )


def _litellm(settings: Settings, model: str) -> ProviderSpec:
    # Without this variable, LiteLLM downloads a price list when it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    key = settings.litellm_api_key
    options = _common(settings) | {
        "model": model,
        "api_base": _address(settings.litellm_api_base),
        "api_key": key.get_secret_value() if key else None,
        "request_timeout": settings.llm_timeout,
        "timeout": None,
        "max_retries": _ONE_ATTEMPT,
        # The retries of the clients that LiteLLM uses internally.
        "model_kwargs": {"max_retries": 0},
    }
    address = "LITELLM_API_BASE" if settings.litellm_api_base else None
    return ProviderSpec(
        "langchain_litellm", "ChatLiteLLM", "litellm", options, "LiteLLM", "LITELLM_API_KEY", address, _silence_litellm
    )


def _silence_litellm() -> None:
    """LiteLLM prints advice about every error to standard output, where `chat --json` writes its events."""
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info = True


def _address(value: object) -> str | None:
    return None if value is None else str(value)


PROVIDER_SPECS: Final[Mapping[Provider, Callable[[Settings, str], ProviderSpec]]] = {
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
MODEL_VARIABLES: Final[Mapping[Provider, str]] = {
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
