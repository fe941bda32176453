"""The settings that each model provider needs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ai_platform_engineering.settings.fields import Provider
from ai_platform_engineering.settings.model import Settings

# Every entry must be met, each by any one of its variables.
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


def provider_problem(settings: Settings, provider: Provider, chosen_by: str = "LLM_PROVIDER") -> str | None:
    """What is missing before `provider` can be used, as a sentence; `chosen_by` is the variable that names it."""
    missing = [
        " or ".join(alternatives)
        for alternatives in PROVIDER_REQUIREMENTS[provider]
        if not any(getattr(settings, name.lower()) for name in alternatives)
    ]
    if not missing:
        return None
    return f"{chosen_by}={provider} needs {' and '.join(missing)}: set it, or choose another provider."
