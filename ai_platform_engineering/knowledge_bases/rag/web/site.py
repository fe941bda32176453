"""A site: the pages of one host below one path, and their canonical addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Self

import httpx

from ai_platform_engineering.knowledge_bases.rag.web.links import Links
from ai_platform_engineering.knowledge_bases.rag.web.urls import AddressError, page_url

# Suffixes of files without readable text. An address with another suffix, or none, may be a page.
_FILE_SUFFIX: Final = re.compile(
    r"\.(?:7z|apk|atom|avi|bin|bmp|bz2|css|csv|dmg|docx?|eot|exe|gif|gz|ico|iso|jar|jpe?g|js|json|map|mkv|mov|mp[34]|mpeg"
    r"|msi|ogg|otf|png|pptx?|rar|rpm|rss|svg|tar|tgz|tiff?|ttf|wasm|wav|webm|webp|whl|woff2?|xlsx?|xml|xz|zip|zst)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Site:
    """`below` is the path prefix of its pages and ends with a slash."""

    start: httpx.URL
    below: str

    @classmethod
    def around(cls, start: httpx.URL) -> Self:
        """`/docs/`, `/docs` and `/docs/index.html` all start the site below `/docs/`."""
        path = PurePosixPath(start.path)
        folder = start.path if start.path.endswith("/") else f"{path.parent if path.suffix else path}/"
        return cls(start, folder if folder != "//" else "/")

    def contains(self, url: httpx.URL) -> bool:
        same_server = (url.scheme, url.host, url.port) == (self.start.scheme, self.start.host, self.start.port)
        return same_server and f"{url.path}/".startswith(self.below)

    def targets(self, page: httpx.URL, links: Links) -> Iterator[httpx.URL]:
        """The links of a page that lead to pages of the site."""
        base = _joined(page, links.base or "") or page
        for target in links.targets:
            url = _joined(base, target)
            if url is None or _FILE_SUFFIX.fullmatch(PurePosixPath(url.path).suffix):
                continue
            if self.contains(url := self._with_site_scheme(url)):
                yield url

    def canonical_url(self, page: httpx.URL, links: Links) -> httpx.URL:
        """The address that the page declares as its own, if it only spells the same path differently. Otherwise `page`.

        A declared address with another path is more often wrong than right.
        """
        declared = _joined(page, links.canonical or "")
        if declared is None:
            return page
        declared = self._with_site_scheme(declared)
        return declared if self.contains(declared) and _without_index(declared) == _without_index(page) else page

    def _with_site_scheme(self, url: httpx.URL) -> httpx.URL:
        """Many sites still link to their pages with http:// after a move to https://."""
        if url.host == self.start.host and url.port is None and self.start.port is None:
            return url.copy_with(scheme=self.start.scheme)
        return url


def _joined(base: httpx.URL, target: str) -> httpx.URL | None:
    try:
        return page_url(target, str(base))
    except AddressError:
        return None


def _without_index(url: httpx.URL) -> str:
    path = PurePosixPath(url.path)
    return str(path.parent if path.name in ("index.html", "index.htm") else path)
