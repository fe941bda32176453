"""The rules for web access: allowed hosts, rate and size limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.outbound.policy import OutboundPolicy, covers, host_patterns


@dataclass(frozen=True, kw_only=True)
class WebPolicy(OutboundPolicy):
    """A sitemap may list pages of its own host, of `allowed_hosts` and of `sitemap_hosts`."""

    variables: str = "FETCH_URL"
    max_bytes: int = 5_000_000
    timeout: float = 20.0
    max_pages: int = 1000
    pages_per_second: float = 5.0
    sitemap_hosts: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        return cls(
            allow_private=settings.fetch_url_allow_private,
            allowed_hosts=host_patterns(settings.fetch_url_allowed_hosts.split(","), "FETCH_URL_ALLOWED_HOSTS"),
            max_bytes=settings.fetch_url_max_bytes,
            timeout=settings.fetch_url_timeout,
            max_pages=settings.ingest_max_pages,
            pages_per_second=settings.ingest_pages_per_second,
        )

    def allowing(self, hosts: Iterable[str], named_by: str = "--allow-host") -> Self:
        """A copy that also allows these hosts. `named_by` is the option that names them."""
        more = host_patterns(hosts, named_by)
        allowed = (*self.allowed_hosts, *more) if self.allowed_hosts else ()
        return replace(self, allowed_hosts=allowed, sitemap_hosts=(*self.sitemap_hosts, *more))

    def lets_sitemaps_list(self, host: str) -> bool:
        return covers((*self.allowed_hosts, *self.sitemap_hosts), host)
