"""What to call the chat model in front of people: its provider and its name."""

from __future__ import annotations

from ai_platform_engineering.llm.providers import chat_model, is_offline_model
from ai_platform_engineering.manifest import ModelChoice
from ai_platform_engineering.settings import Settings

# Each provider's class has its own word for the name of the model.
_NAME_FIELDS = ("deployment_name", "model_name", "model", "model_id")


def model_label(settings: Settings, agent: str | None = None, manifest_model: ModelChoice | None = None) -> str:
    """For example `offline` or `openai gpt-5`. Raises `SettingsError` where the model cannot be made."""
    model = chat_model(settings, agent, manifest_model)
    if is_offline_model(model):
        return "offline"
    name = next((value for field in _NAME_FIELDS if (value := getattr(model, field, None))), "")
    return f"{model._llm_type.removesuffix('-chat')} {name}".strip()
