"""The policy that the settings name."""

from __future__ import annotations

from ai_platform_engineering.policy.decisions import Policy
from ai_platform_engineering.settings import Settings


def load_policy(settings: Settings) -> Policy:
    """Without a file, a policy that has no rules. Raises `SettingsError` if the file is wrong."""
    if settings.policy_file is None:
        return Policy()
    # Imported on demand: the schema of the file takes some time to build.
    from ai_platform_engineering.policy.file import read_policy  # noqa: PLC0415

    return read_policy(settings.policy_file)
