"""Settings of the chat models and their providers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from ai_platform_engineering.settings.fields import (
    Address,
    Flag,
    OptionalAddress,
    OptionalSecret,
    Provider,
    SettingsGroup,
    lower,
    setting,
)


class LlmSettings(SettingsGroup):
    llm_provider: Annotated[Provider | None, BeforeValidator(lower)] = setting(
        "Model",
        "Provider of the chat model. `offline` is the built-in model, which needs no key and no network.",
        shown_default="`openai` when `OPENAI_API_KEY` or `OPENAI_ENDPOINT` is set, else `anthropic-claude` when "
        "`ANTHROPIC_API_KEY` is set, else `offline`",
    )
    model_name: str | None = setting(
        "Model",
        "Name of the model, for providers whose own variable (for example `OPENAI_MODEL_NAME`) is not set. Every "
        "provider except `offline` needs one of the two.",
    )
    llm_temperature: float | None = setting(
        "Model", "Sampling temperature of the model.", shown_default="the provider's default", ge=0, le=2
    )
    llm_timeout: float = setting(
        "Model",
        "Seconds one model call may take. A call that has already written text ends there and its text is used; "
        "otherwise the call fails.",
        300.0,
        gt=0,
        le=3600,
    )
    llm_idle_timeout: float = setting(
        "Model", "Seconds without output after which a streamed model call fails.", 120.0, gt=0, le=3600
    )
    llm_always_stream: Flag = setting(
        "Model",
        "Streams every call of an OpenAI model, also where only the complete text is used. For gateways that close "
        "a connection while it is idle.",
        False,
    )
    llm_max_retries: int = setting(
        "Model",
        "Number of retries of a model call after a rate limit, an error of the provider or a lost connection. 0 "
        "never retries.",
        2,
        ge=0,
        le=10,
    )
    llm_max_retry_wait: float = setting(
        "Model",
        "Longest wait before a retry, in seconds. The call fails when the provider asks for a longer wait.",
        60.0,
        ge=0,
        le=3600,
    )
    llm_max_output: int | None = setting(
        "Model",
        "Maximum number of tokens that a model may write in one call.",
        shown_default="the provider's default",
        ge=1,
    )
    llm_max_output_chars: int = setting(
        "Model",
        "Maximum number of characters that a model may write in one call. Longer text is cut there and used.",
        500_000,
        ge=1,
    )
    llm_context_tokens: int | None = setting(
        "Model",
        "Context window of the model in tokens: the prompt and the answer of one call. Long conversations are "
        "summarised to stay inside it.",
        shown_default="the window that LangChain knows for the model, else `128000`",
        ge=1000,
    )
    llm_compact_at: float = setting(
        "Model",
        "Share of the context window at which the older turns of a conversation are summarised.",
        0.7,
        ge=0.1,
        le=1,
    )
    llm_stream_usage: Flag = setting(
        "Model",
        "Asks OpenAI, Azure OpenAI and the server at `OPENAI_ENDPOINT` for the number of tokens of streamed answers "
        "(`stream_options`). Turn it off for a server that does not accept that; its calls are then counted without "
        "tokens.",
        True,
    )
    openai_endpoint: OptionalAddress = setting(
        "Model",
        "Base URL of OpenAI or of a server with the same API, for example `http://127.0.0.1:8080/v1`.",
        shown_default="OpenAI's API",
    )
    openai_api_key: OptionalSecret = setting("Model", "API key for OpenAI or for the server at `OPENAI_ENDPOINT`.")
    openai_model_name: str | None = setting("Model", "Model name for `openai`.")
    azure_openai_endpoint: OptionalAddress = setting("Model", "URL of the Azure OpenAI resource.")
    azure_openai_api_key: OptionalSecret = setting("Model", "API key for Azure OpenAI.")
    azure_openai_deployment: str | None = setting("Model", "Name of the Azure OpenAI deployment.")
    azure_openai_api_version: str | None = setting(
        "Model", "Version of the Azure OpenAI API.", shown_default="`2024-10-21`"
    )
    anthropic_api_key: OptionalSecret = setting("Model", "API key for Anthropic.")
    anthropic_model_name: str | None = setting("Model", "Model name for `anthropic-claude`.")
    aws_region: str | None = setting(
        "Model", "AWS region of Bedrock, for example `eu-west-1`.", fallback="AWS_DEFAULT_REGION"
    )
    aws_bedrock_model_id: str | None = setting("Model", "Model id or inference profile for `aws-bedrock`.")
    google_api_key: OptionalSecret = setting("Model", "API key for Google Gemini.")
    google_gemini_model_name: str | None = setting("Model", "Model name for `google-gemini`.")
    google_cloud_project: str | None = setting("Model", "Google Cloud project for Vertex AI.")
    google_cloud_location: str | None = setting(
        "Model", "Google Cloud location for Vertex AI, for example `europe-west1`."
    )
    vertexai_model_name: str | None = setting("Model", "Model name for `gcp-vertexai`.")
    groq_api_key: OptionalSecret = setting("Model", "API key for Groq.")
    groq_model_name: str | None = setting("Model", "Model name for `groq`.")
    ollama_base_url: Address = setting("Model", "URL of the Ollama server.", "http://127.0.0.1:11434")
    ollama_model_name: str | None = setting("Model", "Model name for `ollama`.")
    litellm_model_name: str | None = setting("Model", "Model name in LiteLLM's form, for example `openai/gpt-5`.")
    litellm_api_base: OptionalAddress = setting("Model", "URL of a LiteLLM proxy.")
    litellm_api_key: OptionalSecret = setting(
        "Model", "API key for the LiteLLM proxy or for the provider that LiteLLM calls."
    )
    offline_model_delay: float | None = setting(
        "Model",
        "Seconds that the offline model waits after each word, also inside agents.",
        None,
        ge=0,
        le=5,
        shown_default="agents do not wait; an answer of the supervisor is written within a second",
    )
