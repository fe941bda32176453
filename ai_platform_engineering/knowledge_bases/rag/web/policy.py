"""The rules for web access: allowed hosts, rate and size limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from ai_platform_engineering.settings import Settings, SettingsError, wrong_value
from ai_platform_engineering.utils.addresses import Address, host_name, literal, refusal

_HOSTS_VARIABLE = "FETCH_URL_ALLOWED_HOSTS"
_PRIVATE_VARIABLE = "FETCH_URL_ALLOW_PRIVATE"


@dataclass(frozen=True, slots=True)
class WebPolicy:
    """`allowed_hosts` has names, addresses, and patterns such as `*.example.com`; empty allows all hosts. A sitemap may
    list pages of its own host, of `allowed_hosts` and of `sitemap_hosts`."""

    allow_private: bool = False
    allowed_hosts: tuple[str, ...] = ()
    max_bytes: int = 5_000_000
    timeout: float = 20.0
    max_pages: int = 1000
    pages_per_second: float = 5.0
    sitemap_hosts: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        return cls(
            allow_private=settings.fetch_url_allow_private,
            allowed_hosts=_hosts(settings.fetch_url_allowed_hosts.split(","), _HOSTS_VARIABLE),
            max_bytes=settings.fetch_url_max_bytes,
            timeout=settings.fetch_url_timeout,
            max_pages=settings.ingest_max_pages,
            pages_per_second=settings.ingest_pages_per_second,
        )

    def allowing(self, hosts: Iterable[str], named_by: str = "--allow-host") -> Self:
        """A copy that also allows these hosts. `named_by` is the option that names them."""
        more = _hosts(hosts, named_by)
        allowed = (*self.allowed_hosts, *more) if self.allowed_hosts else ()
        return replace(self, allowed_hosts=allowed, sitemap_hosts=(*self.sitemap_hosts, *more))

    def lets_sitemaps_list(self, host: str) -> bool:
        return any(_covers(pattern, host) for pattern in (*self.allowed_hosts, *self.sitemap_hosts))

    def refuses_host(self, host: str) -> str | None:
        """The reason why pages of a host may not be read, or None. `host` is an ASCII name or an address."""
        if not self.allowed_hosts or any(_covers(pattern, host) for pattern in self.allowed_hosts):
            return None
        return f"not one of the hosts that {_HOSTS_VARIABLE} allows ({', '.join(self.allowed_hosts)})"

    def refuses_address(self, address: Address) -> str | None:
        return refusal(address, allow_private=self.allow_private, allowed_by=_PRIVATE_VARIABLE)


def _hosts(texts: Iterable[str], named_by: str) -> tuple[str, ...]:
    given = [text.strip() for text in texts]
    return tuple(_host(text, named_by) for text in given if text)


def _host(text: str, named_by: str) -> str:
    wildcard = "*." if text.startswith("*.") else ""
    bare = text.removeprefix(wildcard)
    address = literal(bare.removeprefix("[").removesuffix("]"))
    name = host_name(bare) if address is None else str(address)
    if not name:
        allowed = "host names such as docs.example.com or *.example.com, comma-separated, without a scheme or a port"
        raise SettingsError(wrong_value(named_by, text, allowed))
    return wildcard + name


def _covers(pattern: str, host: str) -> bool:
    return host.endswith(pattern.removeprefix("*")) if pattern.startswith("*.") else host == pattern
