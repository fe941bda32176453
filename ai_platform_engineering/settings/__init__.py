"""Every setting of the product, read once and validated once.

A command calls `load_settings` and passes the object on; nothing else reads the environment.
`python -m ai_platform_engineering.settings` prints docs/configuration.md.
"""

from ai_platform_engineering.settings.fields import MIN_KEY_LENGTH, EmbeddingsProvider, Group, Provider
from ai_platform_engineering.settings.loading import known_variables, load_settings, parse_flag
from ai_platform_engineering.settings.model import Settings
from ai_platform_engineering.settings.page import DYNAMIC_VARIABLES, configuration_page
from ai_platform_engineering.settings.problems import SettingsError, wrong_value
from ai_platform_engineering.settings.providers import PROVIDER_REQUIREMENTS, provider_problem

__all__ = [
    "DYNAMIC_VARIABLES",
    "MIN_KEY_LENGTH",
    "PROVIDER_REQUIREMENTS",
    "EmbeddingsProvider",
    "Group",
    "Provider",
    "Settings",
    "SettingsError",
    "configuration_page",
    "known_variables",
    "load_settings",
    "parse_flag",
    "provider_problem",
    "wrong_value",
]
