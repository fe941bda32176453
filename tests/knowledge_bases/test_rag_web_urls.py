from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.knowledge_bases.rag.web.urls import AddressError, page_url, shown


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        (" https://example.com:443/a#part ", "https://example.com/a"),
        ("http://example.com:80/", "http://example.com/"),
        ("http://example.com:8080/", "http://example.com:8080/"),
        ("http://example.com./a/../b/./c", "http://example.com/b/c"),
        ("http://bücher.example/straße?q=ä", "http://xn--bcher-kva.example/stra%C3%9Fe?q=%C3%A4"),
        ("http://example.com/%7Eme/a%2fb?", "http://example.com/~me/a%2Fb"),
        ("http://example.com/?b=1&a=2", "http://example.com/?b=1&a=2"),
        ("http://[::FFFF:1.2.3.4]/", "http://[::ffff:102:304]/"),
    ],
)
def test_one_page_has_one_address(text: str, written: str) -> None:
    assert str(page_url(text)) == written


@pytest.mark.parametrize(
    ("target", "written"),
    [
        ("b.html", "http://example.com/docs/b.html"),
        ("/b", "http://example.com/b"),
        ("?page=2", "http://example.com/docs/a.html?page=2"),
        ("//other.example/x", "http://other.example/x"),
        ("#part", "http://example.com/docs/a.html"),
    ],
)
def test_links_of_a_page(target: str, written: str) -> None:
    assert str(page_url(target, "http://example.com/docs/a.html")) == written


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, "only addresses with http:// or https://") for text in ("", "example.com", "file:///etc/passwd")),
        *((text, "only addresses with http:// or https://") for text in ("http://", "javascript:alert(1)", "/a")),
        *(
            (text, "user name or a password")
            for text in ("http://a:b@example.com/", r"http://good.example\@evil.example")
        ),
        *((text, "not a host name") for text in ("http://a..b/", "http://-a.example/")),
        *((text, "not a web address") for text in ("http://[::1", "http://example.com:port/", "http://a\x00b/")),
        ("http://example.com:0/", "0 is not a port"),
        ("http://example.com/" + "a" * 5000, "too long"),
    ],
)
def test_what_is_not_asked_for(text: str, said: str) -> None:
    with pytest.raises(AddressError, match=re.escape(said)):
        page_url(text)


def test_credentials_are_not_shown() -> None:
    assert "hunter2" not in shown("https://me:hunter2@example.com/")
    with pytest.raises(AddressError) as raised:
        page_url("ftp://me:hunter2@example.com/")
    assert "hunter2" not in str(raised.value)
    assert len(shown("http://example.com/" + "a" * 3000)) < 300


@given(st.text() | st.from_regex(r"https?://[a-z.%:@\[\]0-9-]{1,20}/[ -~]{0,20}", fullmatch=True))
def test_any_text_is_an_address_or_none(text: str) -> None:
    try:
        url = page_url(text)
    except AddressError:
        return
    assert page_url(str(url)) == url
