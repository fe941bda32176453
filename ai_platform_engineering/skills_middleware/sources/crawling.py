"""Lists the skills of a repository that a client names, without storing anything."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.skill import SkillProblem
from ai_platform_engineering.skills_middleware.sources.git_address import (
    GitAddress,
    GitAddressError,
    is_loopback,
    parse_git_address,
    redacted_entry,
)
from ai_platform_engineering.skills_middleware.sources.git_commands import Git, GitError
from ai_platform_engineering.skills_middleware.sources.reading import collect
from ai_platform_engineering.skills_middleware.sources.repository import BareRepository

HubType = Literal["github", "gitlab"]

CRAWL_SECONDS: Final = 30.0
MAX_CRAWL_SIZE: Final = 50 * 2**20

_HOSTS: Final[dict[HubType, str]] = {"github": "github.com", "gitlab": "gitlab.com"}
_SHORTHAND: Final = re.compile(r"[\w][\w.-]*(?:/[\w][\w.-]*)+")


class CrawlRefusedError(ValueError):
    """The address is not allowed. The text names the allowed ones."""


class CrawlFailedError(Exception):
    """The repository could not be read. The text gives the reason, without credentials."""


@dataclass(frozen=True, slots=True)
class CrawledSkill:
    path: str
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Crawled:
    commit: str
    skills: tuple[CrawledSkill, ...]
    problems: tuple[SkillProblem, ...]


async def crawl(settings: Settings, address: str, *, hub: HubType = "github") -> Crawled:
    """The skills in a repository: `https://host/path`, with `@ref` and `#folder` as in SKILLS_GIT, or `owner/name`.

    Raises `CrawlRefusedError` for an address that is not allowed, `CrawlFailedError` for one that cannot be read.
    SKILLS_GIT_TOKEN is not sent, because the client chooses the address.
    """
    wanted = allowed_address(settings, address, hub)
    directory = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="skills-crawl-"))
    try:
        repository = BareRepository(Git.for_address(wanted), directory)
        async with asyncio.timeout(CRAWL_SECONDS):
            commit = await repository.fetch(wanted, CRAWL_SECONDS, MAX_CRAWL_SIZE)
            readings = await repository.readings(commit, wanted.folder, f"{wanted.address}@{commit}")
    except GitError as error:
        raise CrawlFailedError(f"{wanted} cannot be read: {error}") from error
    except TimeoutError:
        raise CrawlFailedError(f"{wanted} cannot be read within {CRAWL_SECONDS:g} s.") from None
    finally:
        await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
    loaded = collect(readings, commit)
    paths = {id(result): path for path, result in readings}
    skills = (CrawledSkill(paths[id(skill)], skill.name, skill.description) for skill in loaded.skills)
    return Crawled(commit, tuple(skills), loaded.problems)


def allowed_address(settings: Settings, address: str, hub: HubType = "github") -> GitAddress:
    """The address to fetch; raises `CrawlRefusedError` if it is not allowed."""
    text = address.strip()
    if _SHORTHAND.fullmatch(re.split("[@#]", text, maxsplit=1)[0]):
        text = f"https://{_HOSTS[hub]}/{text}"
    try:
        wanted = parse_git_address(text)
    except GitAddressError as error:
        raise CrawlRefusedError(str(error)) from error
    if wanted.user is not None or wanted.password is not None:
        raise CrawlRefusedError(f"{redacted_entry(text)} has credentials. Only public repositories can be read.")
    hosts = [host.strip().lower() for host in settings.skills_crawl_hosts.split(",") if host.strip()]
    if not _is_allowed(wanted, hosts):
        allowed = f"Allowed are https:// addresses of {', '.join(hosts)}" if hosts else "No host is allowed"
        raise CrawlRefusedError(f"{redacted_entry(text)} may not be read. {allowed}; SKILLS_CRAWL_HOSTS sets them.")
    if wanted.host in _HOSTS.values() and not wanted.address.endswith(".git"):
        # GitLab redirects an address without .git, and Git is configured not to follow redirects.
        return replace(wanted, address=f"{wanted.address.rstrip('/')}.git")
    return wanted


def _is_allowed(wanted: GitAddress, hosts: list[str]) -> bool:
    if "://" not in wanted.address:
        return False
    url = urlsplit(wanted.address)
    if is_loopback(wanted.host):
        return url.scheme in {"http", "https"} and wanted.host in {host.partition(":")[0] for host in hosts}
    host = wanted.host if url.port in {None, 443} else f"{wanted.host}:{url.port}"
    return url.scheme == "https" and host in hosts
