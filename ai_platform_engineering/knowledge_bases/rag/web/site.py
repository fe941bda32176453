"""A site: the pages of one host below one path, and which address is the one of a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Self

import httpx

from ai_platform_engineering.knowledge_bases.rag.web.links import Links
from ai_platform_engineering.knowledge_bases.rag.web.urls import AddressError, page_url

# Files that pages link to and nobody reads. What has another suffix, or none, may be a page.
_NO_PAGE: Final = re.compile(
    r"\.(?:7z|apk|atom|avi|bin|bmp|bz2|css|csv|dmg|docx?|eot|exe|gif|gz|ico|iso|jar|jpe?g|js|json|map|mkv|mov|mp[34]|mpeg"
    r"|msi|ogg|otf|png|pptx?|rar|rpm|rss|svg|tar|tgz|tiff?|ttf|wasm|wav|webm|webp|whl|woff2?|xlsx?|xml|xz|zip|zst)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Site:
    """`below` ends with a slash."""

    start: httpx.URL
    below: str

    @classmethod
    def around(cls, start: httpx.URL) -> Self:
        """`/docs/` and `/docs` stand for what is below them, `/docs/index.html` for what is beside it."""
        path = PurePosixPath(start.path)
        folder = start.path if start.path.endswith("/") else f"{path.parent if path.suffix else path}/"
        return cls(start, folder if folder != "//" else "/")

    def holds(self, url: httpx.URL) -> bool:
        here = (url.scheme, url.host, url.port) == (self.start.scheme, self.start.host, self.start.port)
        return here and f"{url.path}/".startswith(self.below)

    def targets(self, page: httpx.URL, links: Links) -> Iterator[httpx.URL]:
        """The pages of the site that a page of it links to."""
        base = _joined(page, links.base or "") or page
        for target in links.targets:
            url = _joined(base, target)
            if url is None or _NO_PAGE.fullmatch(PurePosixPath(url.path).suffix):
                continue
            if self.holds(url := self._as_here(url)):
                yield url

    def place(self, page: httpx.URL, links: Links) -> httpx.URL:
        """The address of a page: what it says of itself, where that is another way to write the same path.

        A page that calls quite another page its own address is more often mistaken than right.
        """
        said = _joined(page, links.canonical or "")
        if said is None:
            return page
        said = self._as_here(said)
        return said if self.holds(said) and _bare(said) == _bare(page) else page

    def _as_here(self, url: httpx.URL) -> httpx.URL:
        """With the scheme of the site: pages are linked to with http:// long after they have moved to https://."""
        if url.host == self.start.host and url.port is None and self.start.port is None:
            return url.copy_with(scheme=self.start.scheme)
        return url


def _joined(base: httpx.URL, target: str) -> httpx.URL | None:
    try:
        return page_url(target, str(base))
    except AddressError:
        return None


def _bare(url: httpx.URL) -> str:
    path = PurePosixPath(url.path)
    return str(path.parent if path.name in ("index.html", "index.htm") else path)
