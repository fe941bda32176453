"""All settings of the product, read and validated once at start.

A command calls `load_settings` and passes the object on. No other code reads the environment.
`python -m ai_platform_engineering.settings` prints docs/configuration.md.
"""

from ai_platform_engineering.settings.conversation_settings import ADDRESS_VARIABLES, CheckpointType
from ai_platform_engineering.settings.fields import (
    MIN_KEY_LENGTH,
    EmbeddingsProvider,
    Group,
    Provider,
    describe_allowed,
)
from ai_platform_engineering.settings.loading import (
    PROVIDER_REQUIREMENTS,
    SettingsError,
    known_variables,
    load_settings,
    parse_flag,
    provider_problem,
    secret_variables,
    wrong_value,
)
from ai_platform_engineering.settings.memory_settings import MEMORY_SERVERS
from ai_platform_engineering.settings.model import Settings
from ai_platform_engineering.settings.page import DYNAMIC_VARIABLES, configuration_page

__all__ = [
    "ADDRESS_VARIABLES",
    "DYNAMIC_VARIABLES",
    "MEMORY_SERVERS",
    "MIN_KEY_LENGTH",
    "PROVIDER_REQUIREMENTS",
    "CheckpointType",
    "EmbeddingsProvider",
    "Group",
    "Provider",
    "Settings",
    "SettingsError",
    "configuration_page",
    "describe_allowed",
    "known_variables",
    "load_settings",
    "parse_flag",
    "provider_problem",
    "secret_variables",
    "wrong_value",
]
