"""Limits of one call, from the settings."""

from __future__ import annotations

from dataclasses import dataclass

from ai_platform_engineering.settings import Settings


@dataclass(frozen=True)
class Limits:
    """What one call may do."""

    timeout: float
    allow_private: bool
    dns_server: str | None

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        return cls(settings.netutils_timeout, settings.netutils_allow_private, settings.netutils_dns_server)
