from __future__ import annotations

import pytest

from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
from ai_platform_engineering.settings import SettingsError, load_settings


def policy(**environ: str) -> WebPolicy:
    return WebPolicy.of(load_settings(environ, env_file=None))


def test_every_setting_arrives() -> None:
    assert policy(
        FETCH_URL_ALLOW_PRIVATE="true",
        FETCH_URL_ALLOWED_HOSTS="docs.example.com, *.Bücher.example ,, [::1], 10.0.0.1",
        FETCH_URL_MAX_BYTES="2048",
        FETCH_URL_TIMEOUT="3",
        INGEST_MAX_PAGES="7",
        INGEST_PAGES_PER_SECOND="2",
    ) == WebPolicy(
        allow_private=True,
        allowed_hosts=("docs.example.com", "*.xn--bcher-kva.example", "::1", "10.0.0.1"),
        max_bytes=2048,
        timeout=3,
        max_pages=7,
        pages_per_second=2,
    )


def test_without_a_list_every_host_is_allowed() -> None:
    assert policy().refuses_host("example.com") is None


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("docs.example.com", True),
        ("a.example.org", True),
        ("b.a.example.org", True),
        ("example.org", False),
        ("evilexample.org", False),
        ("docs.example.com.evil.net", False),
        ("10.0.0.1", False),
    ],
)
def test_a_list_is_all_that_is_allowed(host: str, allowed: bool) -> None:
    reason = policy(FETCH_URL_ALLOWED_HOSTS="docs.example.com,*.example.org").refuses_host(host)
    assert (reason is None) == allowed
    assert allowed or "FETCH_URL_ALLOWED_HOSTS allows (docs.example.com, *.example.org)" in str(reason)


@pytest.mark.parametrize("host", ["https://example.com", "example.com:80", "*", "a b", "*.*.com"])
def test_what_is_no_host(host: str) -> None:
    with pytest.raises(SettingsError, match=r"FETCH_URL_ALLOWED_HOSTS=.* cannot be used: it must be host names"):
        policy(FETCH_URL_ALLOWED_HOSTS=host)
    with pytest.raises(SettingsError, match="--allow-host"):
        policy().allowing([host])


def test_more_hosts_restrict_nothing_that_was_allowed() -> None:
    wider = policy().allowing(["*.example.org"])
    assert wider.refuses_host("other.net") is None
    assert wider.lets_sitemaps_list("a.example.org")
    assert not wider.lets_sitemaps_list("other.net")
    listed = policy(FETCH_URL_ALLOWED_HOSTS="example.com").allowing(["example.org"])
    assert listed.refuses_host("example.org") is None
    assert listed.refuses_host("other.net")
    assert listed.lets_sitemaps_list("example.com")
