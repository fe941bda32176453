from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from ai_platform_engineering.knowledge_bases.rag.web.client import WebClient
from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
from ai_platform_engineering.knowledge_bases.rag.web.robots import Robots, RobotsRules
from ai_platform_engineering.knowledge_bases.rag.web.urls import page_url
from ai_platform_engineering.knowledge_bases.rag.web.visiting import HostRateLimiter
from tests.knowledge_bases.websites import Answer, Served, redirect, website

ANYWHERE = WebPolicy(allow_private=True, timeout=60)


async def rules(robots: Served | None, policy: WebPolicy = ANYWHERE) -> tuple[RobotsRules, list[str]]:
    async with website({} if robots is None else {"/robots.txt": robots}) as site, WebClient(policy) as client:
        found = Robots(client)
        first, second = await asyncio.gather(*(found.rules(page_url(site.url(path))) for path in ("/a", "/b?c")))
        assert first is second
        return first, site.paths


def refuses(found: RobotsRules, path: str) -> str | None:
    return found.refusal(page_url(f"http://example.com{path}"))


async def test_pages_that_programs_may_not_read() -> None:
    found, asked = await rules("User-agent: *\nDisallow: /private/\nAllow: /private/open\nDisallow: /*.pdf$\n")
    assert refuses(found, "/private/a") == "the robots.txt of example.com disallows it"
    assert refuses(found, "/a.pdf")
    for path in ("/", "/private/open/x", "/a.pdf?b"):
        assert refuses(found, path) is None
    assert asked == ["/robots.txt"]


async def test_our_own_group_goes_before_that_for_all() -> None:
    found, _ = await rules("User-agent: *\nDisallow: /\n\nUser-agent: Platform-Engineer\nDisallow: /no\n")
    assert refuses(found, "/yes") is None
    assert refuses(found, "/no")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
async def test_no_rules_allow_everything(status: int) -> None:
    found, _ = await rules(Answer(status=status))
    assert refuses(found, "/") is None


@pytest.mark.parametrize(
    "answer",
    [Answer(status=500), Answer(status=503), Answer(status=429), Answer(b"U", stalls=True), Answer(b"#" * 600_000)],
)
async def test_rules_that_cannot_be_read_allow_nothing(answer: Answer) -> None:
    found, _ = await rules(answer, replace(ANYWHERE, timeout=0.3) if answer.stalls else ANYWHERE)
    assert "robots.txt of example.com could not be read, so none of its pages may be read" in str(refuses(found, "/"))


async def test_redirects_are_followed() -> None:
    pages: dict[str, Served] = {"/robots.txt": redirect("/real"), "/real": "User-agent: *\nDisallow: /"}
    async with website(pages) as site, WebClient(ANYWHERE) as client:
        found = await Robots(client).rules(page_url(site.url()))
    assert refuses(found, "/")


@pytest.mark.parametrize(
    "text", ["<html><body>not found</body></html>", "", "\x00\x01", "\ufeffUser-agent: x\nDisallow: /"]
)
async def test_what_says_nothing_to_us(text: str) -> None:
    found, _ = await rules(text)
    assert refuses(found, "/") is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("Crawl-delay: 2.5", 2.5), ("Crawl-delay: 3600", 30), ("Request-rate: 1/4", 4), ("Crawl-delay: soon", 0), ("", 0)],
)
async def test_how_fast(text: str, seconds: float) -> None:
    found, _ = await rules(f"User-agent: *\n{text}\n")
    assert found.delay == seconds


async def test_each_port_has_its_own() -> None:
    none: Served = "User-agent: *\nDisallow: /"
    async with website({"/robots.txt": none}) as closed, website({}) as opened, WebClient(ANYWHERE) as client:
        robots = Robots(client)
        assert (await robots.rules(page_url(closed.url()))).refusal(page_url(closed.url()))
        assert (await robots.rules(page_url(opened.url()))).refusal(page_url(opened.url())) is None


class TestRateLimit:
    async def test_requests_to_one_host_follow_each_other(self) -> None:
        limiter, began, turns = HostRateLimiter(20), time.monotonic(), []

        async def visit(host: str) -> None:
            await limiter.wait(host)
            turns.append((host, time.monotonic() - began))

        await asyncio.gather(*(visit(host) for host in ("a", "a", "a", "a", "b")))
        waits = [seconds for host, seconds in turns if host == "a"]
        assert all(seconds >= number * 0.05 - 0.001 for number, seconds in enumerate(waits))
        assert {host for host, _ in turns[:2]} == {"a", "b"}

    async def test_a_host_may_ask_for_more_time(self) -> None:
        limiter, began = HostRateLimiter(1000), time.monotonic()
        await limiter.wait("a", delay=0.1)
        await limiter.wait("a")
        assert time.monotonic() - began >= 0.1
        limiter.pause("a", 0.1)
        await limiter.wait("a")
        assert time.monotonic() - began >= 0.2
